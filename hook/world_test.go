package hook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

const patient = 90 * time.Second // a condition that does not come true by then never does

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patient); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A world is a HOME with a project in it, and vx in ~/.local/bin.
type world struct {
	t       *testing.T
	home    string
	dir     *state.Dir
	project *state.Project
	env     map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: home}
	t.Setenv("HOME", home)
	t.Setenv("VEXILLUM_HOME", filepath.Join(home, "state"))
	if w.dir, err = state.Open(); err != nil {
		t.Fatal(err)
	}
	w.project = w.dir.Project(w.repository("shop"))
	bin := filepath.Join(home, ".local", "bin")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.Symlink(os.Args[0], filepath.Join(bin, "vx"))); err != nil {
		t.Fatal(err)
	}
	w.env = map[string]string{
		"HOME": home, "VEXILLUM_HOME": w.dir.Path(), "PATH": "/usr/bin:/bin",
		"HERDR_WORKSPACE_ID": "w1", "HERDR_PANE_ID": "p1", "HERDR_SOCKET_PATH": "/none.sock",
		"CLAUDE_PROJECT_DIR": w.project.Root, "CLAUDE_CODE_ENTRYPOINT": "cli",
	}
	return w
}

// repository makes a git root in the home directory.
func (w *world) repository(name string) string {
	w.t.Helper()
	root := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Join(root, ".git"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return root
}

// with is the world's environment, changed: "NAME=value", or "NAME" to take it out.
func (w *world) with(changes ...string) []string {
	env := map[string]string{}
	for k, v := range w.env {
		env[k] = v
	}
	for _, c := range changes {
		if k, v, set := strings.Cut(c, "="); set {
			env[k] = v
		} else {
			delete(env, k)
		}
	}
	var list []string
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}

// stop is the line that Claude Code writes to a Stop hook.
func stop(session string, active bool) string {
	return fmt.Sprintf(`{"session_id":%q,"transcript_path":"","cwd":"/","hook_event_name":"Stop","stop_hook_active":%v}`+"\n", session, active)
}

// A hookProcess is a hook as the client runs it: a session of its own, sockets as its streams.
type hookProcess struct {
	cmd            *exec.Cmd
	in             *os.File // the client's ends
	stdout, stderr *os.File
	done           sync.WaitGroup
	outs, errs     bytes.Buffer
}

// result is how a hook ended.
type result struct {
	Status         int // -1: by a signal
	Stdout, Stderr string
}

func socketpair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return os.NewFile(uintptr(fds[0]), "client's end"), os.NewFile(uintptr(fds[1]), "hook's end"), nil
}

// startHook runs cmd as a hook. An input that ends in "…" is left open, all others end.
func startHook(cmd *exec.Cmd, input string) (*hookProcess, error) {
	h := &hookProcess{cmd: cmd}
	var err error
	var theirs [3]*os.File
	for i, ours := range []**os.File{&h.in, &h.stdout, &h.stderr} {
		if *ours, theirs[i], err = socketpair(); err != nil {
			return nil, err
		}
		defer theirs[i].Close()
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	text, open := strings.CutSuffix(input, "…")
	io.WriteString(h.in, text)
	if !open {
		h.in.Close()
	}
	return h, nil
}

// wait takes in what the hook prints, and how it ends. One that does not end is killed, and shows so in its status.
func (h *hookProcess) wait() result {
	defer time.AfterFunc(patient, func() { h.cmd.Process.Kill() }).Stop()
	h.done.Go(func() { io.Copy(&h.outs, h.stdout) })
	h.done.Go(func() { io.Copy(&h.errs, h.stderr) })
	h.done.Wait()
	h.cmd.Wait()
	return result{h.cmd.ProcessState.ExitCode(), h.outs.String(), h.errs.String()}
}

// hang closes the client's ends of stdout and stderr.
func (h *hookProcess) hang() {
	h.stdout.Close()
	h.stderr.Close()
}

// start runs the hook itself in the project; the test process is its client.
func (w *world) start(mode, input string, changes ...string) *hookProcess {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], "sentinel", mode)
	cmd.Dir = w.project.Root
	cmd.Env = w.with(changes...)
	return w.launch(cmd, input)
}

func (w *world) launch(cmd *exec.Cmd, input string) *hookProcess {
	w.t.Helper()
	h, err := startHook(cmd, input)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		h.in.Close()
		h.hang()
	})
	return h
}

// awaits are the registered awaits of the project.
func (w *world) awaits() []awaiter.Entry {
	w.t.Helper()
	list, err := awaiter.List(w.dir, w.project)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) waitFor(n int) []awaiter.Entry {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%d awaits", n), func() bool { return len(w.awaits()) == n })
	return w.awaits()
}

// put puts a wake into the project's queue.
func (w *world) put(title string) {
	w.t.Helper()
	if _, err := wake.Open(w.project).Put(context.Background(), wake.Wake{Title: title}); err != nil {
		w.t.Fatal(err)
	}
}

// terminate ends the project's awaits the polite way.
func (w *world) terminate() {
	w.t.Helper()
	for _, e := range w.awaits() {
		if err := e.Terminate(); err != nil && !errors.Is(err, proc.ErrGone) {
			w.t.Fatal(err)
		}
	}
}

// holds checks how many wakes wait, and how many are on their way.
func (w *world) holds(waiting, claimed, emitted int) {
	w.t.Helper()
	l, err := wake.Open(w.project).List(0)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(l.Waiting) != waiting || len(l.Claimed) != claimed || len(l.Emitted) != emitted || len(l.Bad) != 0 {
		w.t.Errorf("the queue holds %d waiting, %d claimed, %d emitted, %d bad, want %d, %d, %d, 0",
			len(l.Waiting), len(l.Claimed), len(l.Emitted), len(l.Bad), waiting, claimed, emitted)
	}
}

// log is what the hook wrote to its log.
func (w *world) log() string {
	data, _ := os.ReadFile(filepath.Join(w.dir.Path(), logName))
	return string(data)
}

// silent checks that the hook ended without a word, and not as a delivery.
func silent(t *testing.T, r result) {
	t.Helper()
	if r.Status == 2 || r.Stdout != "" || r.Stderr != "" {
		t.Errorf("it ended with %d, stdout %q, stderr %q", r.Status, r.Stdout, r.Stderr)
	}
}

func quiet(t *testing.T, r result) {
	t.Helper()
	silent(t, r)
	if r.Status != 0 {
		t.Errorf("it ended with %d, want 0", r.Status)
	}
}

// delivers checks that the hook ended with a delivery of these titles.
func delivers(t *testing.T, r result, titles ...string) {
	t.Helper()
	if r.Status != 2 {
		t.Errorf("it ended with %d, want 2", r.Status)
	}
	var line struct{ Decision, Reason string }
	if err := json.Unmarshal([]byte(r.Stdout), &line); err != nil || strings.Count(r.Stdout, "\n") != 1 {
		t.Errorf("stdout is not one line of JSON: %q", r.Stdout)
	}
	if line.Decision != "block" || line.Reason != r.Stderr {
		t.Errorf("stdout says %q %q, stderr %q", line.Decision, line.Reason, r.Stderr)
	}
	for _, title := range titles {
		if !strings.Contains(r.Stderr, title) {
			t.Errorf("stderr lacks %q: %q", title, r.Stderr)
		}
	}
}

func gone(t *testing.T, id proc.ID) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d is gone", id.PID), func() bool { return id.Status() == proc.Gone })
}

// A client is a process of its own that runs hooks, and can be stopped and killed.
type client struct {
	t     *testing.T
	cmd   *exec.Cmd
	id    proc.ID
	hooks []proc.ID // the shells that it started
	lines *bufio.Reader
}

func (w *world) client(count int, input string, command ...string) *client {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = w.project.Root
	cmd.Env = w.with("VXTEST_ROLE=client")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGCONT)
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := &client{t: w.t, cmd: cmd, lines: bufio.NewReader(out)}
	var err error
	if c.id, err = proc.Find(cmd.Process.Pid); err != nil {
		w.t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(spec{command, input, count}); err != nil {
		w.t.Fatal(err)
	}
	for range count {
		var pid int
		if _, err := fmt.Fscanln(c.lines, &pid); err != nil {
			w.t.Fatal(err)
		}
		id, err := proc.Find(pid)
		if err != nil && !errors.Is(err, proc.ErrGone) {
			w.t.Fatal(err)
		}
		c.hooks = append(c.hooks, id)
	}
	return c
}

// next is how the next of its hooks ended.
func (c *client) next() result {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	var r result
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *client) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}
