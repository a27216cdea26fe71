package run

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stream passes on what the command prints to one place.
type stream struct {
	name     string
	from     *os.File
	entry    *os.File // the command's end, closed here once it runs
	to       *os.File
	lines    *lines
	terminal *terminal // nil for a pipe
	busy     atomic.Bool

	ended chan struct{} // closed when relay has returned; what follows is valid then
	open  bool          // somebody still holds the other end
	deaf  bool          // nobody reads what is passed on any more
	err   error         // why not all was passed on
}

// relay passes on until the other end is closed, the reader is gone, or the read deadline is set.
func (s *stream) relay() {
	defer close(s.ended)
	block := make([]byte, 32<<10)
	held := 0 // bytes at the start of block that wait for what follows them
	for {
		s.busy.Store(false)
		n, err := s.from.Read(block[held:])
		s.busy.Store(true)
		s.lines.Write(block[held : held+n])
		data := block[:held+n]
		held = 0
		if s.terminal != nil {
			data = s.terminal.asPrinted(data)
			if err == nil && bytes.HasSuffix(data, []byte{'\r'}) && s.readable() {
				data, held = data[:len(data)-1], 1
			}
		}
		if !s.pass(data) {
			return
		}
		if held > 0 {
			block[0] = '\r'
		}
		if err != nil {
			s.open = errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
	}
}

// pass prints what was read. It is false when nobody reads it any more, so that the command is to notice too.
func (s *stream) pass(data []byte) bool {
	if len(data) > 0 && !s.deaf {
		_, err := s.to.Write(data)
		switch {
		case errors.Is(err, syscall.EPIPE):
			s.deaf = true
			s.from.Close()
			return false
		case errors.Is(err, syscall.EIO) && s.terminal != nil:
			// The terminal has hung up. The command learns it by SIGHUP; its last lines are still worth keeping.
			s.deaf = true
		case err != nil && s.err == nil:
			s.err = fmt.Errorf("%s: %w", s.name, errors.Unwrap(err))
		}
	}
	return true
}

// readable reports whether more can be read at once.
func (s *stream) readable() (yes bool) {
	raw, err := s.from.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		yes = err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
	})
	return yes
}

// settle waits until what was printed so far is passed on, but no longer than patience.
func (s *stream) settle(patience time.Duration) {
	for end := time.Now().Add(patience); time.Now().Before(end) && (s.busy.Load() || s.readable()); {
		time.Sleep(2 * time.Millisecond)
	}
}

// handOver leaves the passing on to a cat where a process that the command left behind still holds its output open.
func (s *stream) handOver() error {
	if !s.open || s.deaf {
		return nil
	}
	if s.terminal != nil {
		s.terminal.plain()
	}
	cat := exec.Command("cat")
	cat.Stdin, cat.Stdout = s.from, s.to
	if raw, err := s.from.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.SetNonblock(int(fd), false) })
	}
	if err := cat.Start(); err != nil {
		return fmt.Errorf("%s: what the command left behind is not read on: %w", s.name, err)
	}
	return cat.Process.Release()
}
