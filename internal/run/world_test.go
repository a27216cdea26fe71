package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"vx/internal/state"
	"vx/internal/wake"
)

// TestMain lets the test binary be vx run: a Command as JSON stands in $RUN_TEST.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == MonitorName {
		os.Exit(Monitor(os.Args[2:]))
	}
	spec := os.Getenv("RUN_TEST")
	if spec == "" {
		// Under nohup a hang-up is ignored, by children too; what is caught here is not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		os.Exit(m.Run())
	}
	os.Unsetenv("RUN_TEST")
	c := Command{Tail: 10, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Queue: queueAt(os.Getenv("RUN_PROJECT"))}
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	status, err := c.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vx:", err)
	}
	os.Exit(status)
}

func queueAt(project string) *wake.Queue {
	dir, err := state.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	return wake.Open(dir.Project(project))
}

// deadline is generous: nothing is proven by how long something took.
const deadline = 30 * time.Second

// world is a project, a state directory and a vx run in it.
type world struct {
	t       *testing.T
	project string
	queue   *wake.Queue
	env     []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "vx-run")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	t.Setenv("VEXILLUM_HOME", filepath.Join(dir, "state"))
	w := &world{t: t, project: filepath.Join(dir, "shop")}
	t.Cleanup(func() { // a vx that outlives its test may still be writing
		w.eventually("the files are removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.project, 0o700); err != nil {
		t.Fatal(err)
	}
	w.queue = queueAt(w.project)
	w.env = append(os.Environ(), "RUN_PROJECT="+w.project, "PS1=$ ", "TERM=xterm", "LC_ALL=C")
	return w
}

// vx is the test binary as vx run with a command.
func (w *world) vx(c Command) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = w.project
	cmd.Env = append(w.env, "RUN_TEST="+w.spec(c))
	return cmd
}

func (w *world) spec(c Command) string {
	spec := map[string]any{"Args": c.Args, "Title": c.Title, "Key": c.Key, "Direct": c.Direct}
	if c.Tail != 0 {
		spec["Tail"] = c.Tail
	}
	data, err := json.Marshal(spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func sh(script string) Command { return Command{Args: []string{"sh", "-c", script}} }

// waiting are the wakes of the queue.
func (w *world) waiting() []wake.Wake {
	w.t.Helper()
	l, err := w.queue.List(0)
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Waiting
}

// only is the one wake of the queue.
func (w *world) only() wake.Wake {
	w.t.Helper()
	all := w.waiting()
	if len(all) != 1 {
		w.t.Fatalf("%d wakes wait, want one: %+v", len(all), all)
	}
	return all[0]
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// screen is a terminal with a process in it, which leads a session of its own there.
type screen struct {
	*world
	master, slave *os.File
	cmd           *exec.Cmd
	mu            sync.Mutex
	text          bytes.Buffer
	seen          int
	before        unix.Termios // the terminal's modes at the start
	ended         chan struct{}
}

func (w *world) onScreen(cmd *exec.Cmd) *screen {
	w.t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	whole := master
	if master, err = pollable(master); err != nil { // a file that can be closed while it is read
		w.t.Fatal(err)
	}
	whole.Close()
	s := &screen{world: w, master: master, slave: slave, cmd: cmd, ended: make(chan struct{})}
	s.before = s.modes()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 30, Cols: 90}); err != nil {
		w.t.Fatal(err)
	}
	cmd.Stdin = slave
	if cmd.Stdout == nil {
		cmd.Stdout = slave
	}
	if cmd.Stderr == nil {
		cmd.Stderr = slave
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go s.read()
	go func() { cmd.Wait(); close(s.ended) }()
	w.t.Cleanup(func() {
		cmd.Process.Kill()
		<-s.ended
		slave.Close()
		master.Close()
	})
	return s
}

func (s *screen) read() {
	block := make([]byte, 4096)
	for {
		n, err := s.master.Read(block)
		s.mu.Lock()
		s.text.Write(block[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// shown is what was printed so far.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// expect waits until text appears behind what was expected before.
func (s *screen) expect(text string) {
	s.t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		all := s.text.String()
		i := strings.Index(all[s.seen:], text)
		if i >= 0 {
			s.seen += i + len(text)
		}
		s.mu.Unlock()
		if i >= 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%q never appears on the screen:\n%q", text, all)
		}
	}
}

func (s *screen) typed(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) status() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(deadline):
		s.t.Fatalf("does not end; the screen:\n%s", s.shown())
	}
	return s.cmd.ProcessState.ExitCode()
}

// leave ends the shell once it has the keys again: what is typed before is the command's.
func (s *screen) leave() {
	s.t.Helper()
	s.expect("$ ")
	s.typed("wait; exit\n")
	s.status()
}

// modes are the terminal's.
func (s *screen) modes() unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.slave.Fd()), getTermios)
	if err != nil {
		s.t.Fatal(err)
	}
	return *m
}
