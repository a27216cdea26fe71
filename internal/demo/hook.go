package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hook is a hook as Claude Code runs it: a shell in a session of its own, sockets for stdin, stdout and stderr.
type hook struct {
	cmd            *exec.Cmd
	stdout, stderr stream
	ours           []*os.File    // our ends of the sockets
	done           chan struct{} // closed when it has ended and all is read

	mu     sync.Mutex
	silent bool // both streams are at their ends; from now on it may have been waited for
}

// stream is what comes out of one socket.
type stream struct {
	bytes.Buffer
	first time.Time // when the first byte came
}

func startHook(command string, input []byte, env []string) (h *hook, err error) {
	h = &hook{cmd: exec.Command("/bin/sh", "-c", command), done: make(chan struct{})}
	h.cmd.Env, h.cmd.Dir = env, "/"
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			h.close()
		}
	}()
	for range 3 {
		mine, its, err := socketpair()
		if err != nil {
			return nil, fmt.Errorf("socket pair: %w", err)
		}
		h.ours, theirs = append(h.ours, mine), append(theirs, its)
	}
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	go h.follow()
	if _, err := h.ours[0].Write(append(input, '\n')); err != nil {
		return h, err
	}
	return h, h.ours[0].Close()
}

func socketpair() (mine, its *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	// Only what does not block can be closed while somebody reads it.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return os.NewFile(uintptr(fds[0]), "hook"), os.NewFile(uintptr(fds[1]), "hook"), nil
}

// follow reads both streams to their ends, and then waits for the end of the process.
func (h *hook) follow() {
	defer close(h.done)
	out := make(chan struct{})
	go func() {
		defer close(out)
		h.stdout.read(h.ours[1])
	}()
	h.stderr.read(h.ours[2])
	<-out
	h.mu.Lock()
	h.silent = true
	h.mu.Unlock()
	h.cmd.Wait()
}

func (s *stream) read(r io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		if n > 0 && s.first.IsZero() {
			s.first = time.Now()
		}
		s.Write(buf[:n])
		if err != nil {
			return
		}
	}
}

func (h *hook) ended() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// status is the exit status; -1 after a signal. The hook has ended.
func (h *hook) status() int { return h.cmd.ProcessState.ExitCode() }

// describe says how the hook ended and what came out of it.
func (h *hook) describe() string {
	return fmt.Sprintf("%v with %s on stderr and %s on stdout", h.cmd.ProcessState, oneLine(h.stderr.String()), oneLine(h.stdout.String()))
}

// kill ends what is left of the hook: the shell's whole session, which is ours.
func (h *hook) kill() {
	if h == nil {
		return
	}
	h.mu.Lock()
	if !h.silent {
		// It was not waited for yet, so that the group's number is its own.
		unix.Kill(-h.cmd.Process.Pid, unix.SIGKILL)
	}
	h.mu.Unlock()
	h.cmd.Process.Kill()
	h.close()
	<-h.done
}

func (h *hook) close() {
	for _, f := range h.ours {
		f.Close()
	}
}
