package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// runAtHome gives all tests one home, so that they can wait side by side.
func runAtHome(m *testing.M) int {
	flag.Parse()
	home, err := os.MkdirTemp("", "vx-sentinel-")
	if err == nil {
		err = errors.Join(os.Setenv("HOME", home), os.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(home, ".claude")), flag.Set("test.parallel", "8"))
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(home, ".claude", "sessions"), 0o700)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(home)
	return m.Run()
}

// speed is how much faster than real the time of these tests goes, the sentinel's and the fake herdr's.
const speed = 10

// soon is longer than anything takes that is waited for; it costs time only where something is wrong.
const soon = 40 * time.Second

// world is a machine with a state directory, a herdr and a sentinel.
type world struct {
	t      *testing.T
	dir    *state.Dir
	herdr  *herdrtest.Server
	shop   *state.Project
	tasks  *task.Store
	log    logged
	heard  heard
	stop   context.CancelFunc
	ended  chan struct{}
	sweeps atomic.Int64
	news   func(*wake.Wake) (string, error)
}

// logged keeps what the sentinel logs, for tests that fail.
type logged struct{ t *testing.T }

func (l logged) Write(p []byte) (int, error) {
	l.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

// heard is what commanders were told.
type heard struct {
	mu    sync.Mutex
	wakes []wake.Wake
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	dir, err := state.OpenAt(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, log: logged{t}}
	w.herdr = herdrtest.New(t, herdrtest.Options{Speed: speed, Validate: schema.Validate, ReadGrace: 200 * time.Millisecond})
	w.shop = w.project("shop")
	w.tasks = task.Open(w.shop)
	return w
}

// project makes a repository and its project.
func (w *world) project(name string) *state.Project {
	w.t.Helper()
	root, err := filepath.EvalSymlinks(w.t.TempDir())
	if err != nil {
		w.t.Fatal(err)
	}
	root = filepath.Join(root, name)
	w.git(".", "init", "-q", "-b", "main", root)
	w.commit(root)
	p := w.dir.Project(root)
	if err := wake.Open(p).Ensure(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=v", "-c", "user.email=v@x", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) commit(dir string) { w.git(dir, "commit", "-q", "--allow-empty", "-m", "work") }

// worker is a task and its soldier.
type worker struct {
	*world
	*herdrtest.Pane
	id   string
	camp string
}

// screen is what the pane of a Pi at rest shows.
func screen(says string) string {
	rule := strings.Repeat("─", 80)
	return " " + says + "\n\n" + rule + "\n\n" + rule + "\n~/proj (main)\n↑1.2k ↓300 $0.01 2.1%/200k (auto)                                       mock-1\n"
}

// dispatch gives a mission to a soldier, who begins to work.
func (w *world) dispatch(name string, more ...func(*task.Task)) *worker {
	w.t.Helper()
	return w.dispatchIn(w.herdr, w.shop, name, more...)
}

func (w *world) dispatchIn(srv *herdrtest.Server, p *state.Project, name string, more ...func(*task.Task)) *worker {
	w.t.Helper()
	camp := filepath.Join(p.Dir, "camps", name)
	w.git(p.Root, "worktree", "add", "-q", "-b", "vx/"+name, camp)
	pane := srv.Agent(herdrtest.Agent{Kind: "pi", Name: name, CWD: camp, Screen: screen("Hello.")})
	t := task.Task{
		Kind: wake.KindMission, Prompt: "work", Title: "Task " + name, Status: task.Running, Agent: "pi", PromptedAt: time.Now(),
		Camp: &task.Camp{Path: camp, Branch: "vx/" + name, Base: "main"}, Head: w.git(camp, "rev-parse", "HEAD"),
		Herdr: &task.Herdr{Socket: srv.Socket, Pane: pane.ID, Agent: name, TerminalID: w.terminal(srv, pane.ID), StateChangeSeq: pane.Seq()},
	}
	for _, change := range more {
		change(&t)
	}
	added, err := task.Open(p).Add(context.Background(), t)
	if err != nil {
		w.t.Fatal(err)
	}
	pane.Working()
	return &worker{w, pane, added.ID, camp}
}

// finish ends the turn of a soldier who has delivered.
func (s *worker) finish(says string) {
	s.commit(s.camp)
	s.rest(says)
}

// rest ends the turn.
func (s *worker) rest(says string) {
	s.Show(screen(says))
	s.Idle()
}

func (s *worker) task() task.Task {
	s.t.Helper()
	for _, store := range []*task.Store{s.tasks} {
		if t, err := store.Get(s.id); err == nil {
			return t
		}
	}
	s.t.Fatalf("no task %s", s.id)
	return task.Task{}
}

// becomes waits for a status.
func (s *worker) becomes(want task.Status) task.Task {
	s.t.Helper()
	s.until(fmt.Sprintf("task %s is %s", s.id, want), func() bool { return s.task().Status == want })
	return s.task()
}

// stays looks for some time of the sentinel's that a task keeps its status.
func (s *worker) stays(want task.Status, most time.Duration) {
	s.t.Helper()
	s.passes(most)
	if got := s.task(); got.Status != want {
		s.t.Fatalf("%s, want %s (note %q)", got.Status, want, got.Note)
	}
}

// passes lets time of the sentinel's go by.
func (w *world) passes(d time.Duration) { time.Sleep(d / speed) }

func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(soon); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not in time: %s", what)
		}
	}
}

// start starts a sentinel, and a commander who listens.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.stop, w.ended = cancel, make(chan struct{})
	s := newSentinel(Config{
		Dir: w.dir, Log: slog.New(slog.NewTextHandler(w.log, nil)), Over: func() string { w.sweeps.Add(1); return "" },
		News: func(*state.Dir, *state.Project) func(*wake.Wake) (string, error) { return w.news },
	}, speed)
	go func() {
		defer close(w.ended)
		if err := s.run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	w.t.Cleanup(w.end)
}

func (w *world) end() {
	w.stop()
	<-w.ended
}

// listen takes what waits for a project's commander.
func (w *world) listen(p *state.Project) []wake.Wake {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(p.Dir, "wakes", "*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.heard.mu.Lock()
	defer w.heard.mu.Unlock()
	for _, name := range names {
		taken := filepath.Join(w.t.TempDir(), "wake")
		if os.Rename(name, taken) != nil {
			continue
		}
		data, err := os.ReadFile(taken)
		var told wake.Wake
		if err == nil {
			err = json.Unmarshal(data, &told)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.heard.wakes = append(w.heard.wakes, told)
	}
	return w.heard.wakes
}

// told waits until the commander of the shop has heard these, oldest first: "old -> new", or "dialog".
func (w *world) told(want ...string) []wake.Wake {
	w.t.Helper()
	var got []string
	w.until(fmt.Sprintf("told %q", want), func() bool {
		got = nil
		for _, k := range w.listen(w.shop) {
			if k.Dialog != "" {
				got = append(got, "dialog")
				continue
			}
			got = append(got, k.OldStatus+" -> "+k.NewStatus)
		}
		return len(got) >= len(want)
	})
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.t.Fatalf("told %q, want %q", got, want)
	}
	return w.heard.wakes
}

// terminal is the id of a pane's terminal, asked as any client would.
func (w *world) terminal(srv *herdrtest.Server, pane string) string {
	w.t.Helper()
	p, err := client(srv).Pane(context.Background(), pane)
	if err != nil {
		w.t.Fatal(err)
	}
	return p.TerminalID
}

func nullLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
