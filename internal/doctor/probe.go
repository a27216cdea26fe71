package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/daemon"
	"vx/internal/state"
	"vx/internal/wake"
)

const (
	probeLimit = 10 * time.Second // for each step; all of them take a fraction of a second
	probeTitle = "vx doctor --probe"
	probeID    = "vx-doctor-probe" // of the session that is played
)

// probe plays Claude Code: it starts the registered command as a hook in a project of its own, sends it a wake, and looks
// at what comes out. State directory and project are scratch; HOME is the user's, so that the command finds the vx that it
// always finds.
func probe(ctx context.Context, p *Patient) []Result {
	command := ""
	for _, f := range p.files {
		if len(f.own) > 0 {
			command = f.own[0].command
			break
		}
	}
	if command == "" {
		return warning("vx init", "no hook is registered that could be tried")
	}
	took, err := deliver(ctx, command)
	if err != nil {
		return failure("vx upgrade, then vx doctor --probe again", "%v", err)
	}
	return ok("a wake was read %.1f ms after it was put", float64(took.Microseconds())/1000)
}

// deliver is one wake through the command; it returns the time from the put to the end of the text.
func deliver(ctx context.Context, command string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "vx-probe-")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return 0, fmt.Errorf("scratch project: %w", err)
	}
	project, err := scratchProject(dir)
	if err != nil {
		return 0, fmt.Errorf("scratch project: %w", err)
	}
	took, err := play(ctx, command, project)
	// The hook has seen to it that a sentinel runs in the scratch directory, too.
	if _, serr := daemon.Stop(context.WithoutCancel(ctx), project.State()); err == nil && !errors.Is(serr, daemon.ErrNone) {
		err = serr
	}
	if log, lerr := readTail(project.State().Join("hook.log")); err != nil && lerr == nil {
		err = fmt.Errorf("%w; the hook logged %.300q", err, lastLine(log))
	}
	return took, err
}

func lastLine(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return lines[len(lines)-1]
}

// play starts a session and sends it the wake.
func play(ctx context.Context, command string, project *state.Project) (time.Duration, error) {
	s, err := startSession(command, project)
	if err != nil {
		return 0, fmt.Errorf("the hook did not start: %w", err)
	}
	defer s.close()
	if err := s.awaits(ctx, project); err != nil {
		return 0, err
	}
	var put time.Time
	q := wake.Open(project)
	q.Before = func(step wake.Step) error {
		if step == wake.Put {
			put = time.Now()
		}
		return nil
	}
	if _, err := q.Put(ctx, wake.Wake{Title: probeTitle, Producer: probeTitle}); err != nil {
		return 0, err
	}
	if !s.hook.await(ctx, probeLimit) {
		return 0, fmt.Errorf("a wake was put, and the hook had not ended %s later", probeLimit)
	}
	if err := s.close(); err != nil {
		return 0, err
	}
	if err := s.verdict(q); err != nil {
		return 0, err
	}
	return s.stderr.last.Sub(put), nil
}

// scratchProject is a project in dir that waits everywhere, in a state directory of its own.
func scratchProject(dir string) (*state.Project, error) {
	root := filepath.Join(dir, "project")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	d, err := state.OpenAt(filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	p := d.Project(root)
	if err := wake.Open(p).Ensure(); err != nil {
		return nil, err
	}
	return p, p.Update(func(c *state.Config) { c.Await = "always" })
}

// session is the part of Claude Code: a hook that runs, and what it prints.
type session struct {
	hook           *child
	stdout, stderr *stream
	closed         bool
}

// startSession starts the command as the client starts an async Stop hook: by sh -c, with a line of JSON on stdin, and
// with sockets for what it prints.
func startSession(command string, p *state.Project) (s *session, err error) {
	input, err := json.Marshal(map[string]any{
		"session_id": probeID, "transcript_path": "", "cwd": p.Root, "hook_event_name": "Stop", "stop_hook_active": false,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = p.Root
	cmd.Env = append(foreignEnv(),
		"VEXILLUM_HOME="+p.State().Path(), "CLAUDECODE=1", "CLAUDE_PROJECT_DIR="+p.Root, "CLAUDE_PID="+strconv.Itoa(os.Getpid()),
		"CLAUDE_CODE_SESSION_ID="+probeID, "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ATTENDED=1")
	cmd.Stdin = bytes.NewReader(append(input, '\n'))
	s = &session{}
	var theirs [2]*os.File
	for i, end := range []**stream{&s.stdout, &s.stderr} {
		if *end, theirs[i], err = newStream(); err != nil {
			return nil, errors.Join(err, s.closeStreams())
		}
	}
	cmd.Stdout, cmd.Stderr = theirs[0], theirs[1]
	s.hook, err = start(cmd)
	err = errors.Join(err, theirs[0].Close(), theirs[1].Close())
	if err != nil {
		return nil, errors.Join(err, s.closeStreams())
	}
	return s, nil
}

// foreignEnv is the environment without what says whose turn, pane or state this is.
func foreignEnv() []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		ours := false
		for _, prefix := range []string{"CLAUDE", "HERDR_", "VX_", "VEXILLUM_"} {
			ours = ours || strings.HasPrefix(name, prefix)
		}
		if !ours {
			env = append(env, e)
		}
	}
	return env
}

// awaits waits for the hook to be registered as an await.
func (s *session) awaits(ctx context.Context, p *state.Project) error {
	for deadline := time.Now().Add(probeLimit); ; time.Sleep(askInterval) {
		live, _, err := awaiter.Look(p.State(), p)
		switch {
		case err != nil:
			return err
		case len(live) > 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case s.hook.ended():
			err := s.close()
			return errors.Join(fmt.Errorf("the hook did not wait: exit %d, %.300q", s.hook.cmd.ProcessState.ExitCode(), s.stderr.String()), err)
		case time.Now().After(deadline):
			return fmt.Errorf("the hook had not registered %s after its start", probeLimit)
		}
	}
}

// verdict says what is not as the client needs it.
func (s *session) verdict(q *wake.Queue) error {
	var decision struct{ Decision, Reason string }
	text := s.stderr.String()
	waiting, err := q.Count()
	switch {
	case s.hook.cmd.ProcessState.ExitCode() != 2:
		return fmt.Errorf("the hook ended with %d, want 2; it printed %.300q", s.hook.cmd.ProcessState.ExitCode(), text)
	case !strings.Contains(text, probeTitle):
		return fmt.Errorf("the hook printed %.300q, without the wake", text)
	case json.Unmarshal([]byte(s.stdout.String()), &decision) != nil, decision.Decision != "block", decision.Reason != text:
		return fmt.Errorf("the hook printed %.300q to stdout, want the decision with the same text", s.stdout.String())
	case err != nil:
		return err
	case waiting != 0:
		return errors.New("the wake that was printed waits still")
	}
	return nil
}

// close ends the hook if it runs still, and reads what it printed to the end.
func (s *session) close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.hook.finish(), s.closeStreams())
}

func (s *session) closeStreams() error {
	var errs []error
	for _, end := range []*stream{s.stdout, s.stderr} {
		if end != nil {
			errs = append(errs, end.close())
		}
	}
	return errors.Join(errs...)
}

// stream reads what comes out of a socket.
type stream struct {
	head
	last time.Time // when the latest bytes came
	file *os.File
	done chan error
}

// newStream makes a pair of sockets, and reads from one; the other is for a child.
func newStream() (*stream, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("sockets: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("sockets: %w", err), unix.Close(fds[0]), unix.Close(fds[1]))
	}
	s := &stream{file: os.NewFile(uintptr(fds[0]), "socket"), done: make(chan error, 1)}
	go func() {
		_, err := io.Copy(s, s.file)
		s.done <- err
	}()
	return s, os.NewFile(uintptr(fds[1]), "socket"), nil
}

func (s *stream) Write(p []byte) (int, error) {
	s.last = time.Now()
	return s.head.Write(p)
}

// close waits for the end of what is written by processes that have ended. Somebody who left the group may live on with
// the other end; nobody waits for him.
func (s *stream) close() error {
	s.file.SetReadDeadline(time.Now().Add(time.Second))
	err := <-s.done
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, s.file.Close())
}
