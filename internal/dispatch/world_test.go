package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
	"vx/internal/state"
	"vx/internal/task"
)

// A prompt box, as the recogniser knows it.
var idleScreen = "\n" + strings.Repeat("─", 60) + "\n❯\u00a0\n" + strings.Repeat("─", 60) + "\n  ? for shortcuts\n"

const dialogScreen = " Do you trust the files in this folder?\n\n ❯ 1. Yes, proceed\n   2. No, exit\n\n Enter to confirm · Esc to cancel\n"

// world is a repository with one commit on main, a state directory, and a herdr in which a commander's pane is.
type world struct {
	*testing.T
	*Desk
	herdr     *herdrtest.Server
	dir       *state.Dir
	repo      string
	commander *herdrtest.Pane
	env       map[string]string
	ensured   int
	said      []string
}

func newWorld(t *testing.T) *world { return newWorldOf(t, 20) }

func newWorldOf(t *testing.T, profile int) *world {
	t.Helper()
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"HOME": at, "CLAUDE_CONFIG_DIR": filepath.Join(at, "claude"), "GIT_CONFIG_NOSYSTEM": "1", "XDG_CONFIG_HOME": filepath.Join(at, "none"),
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@localhost", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@localhost",
	} {
		t.Setenv(name, value)
	}
	w := &world{T: t, repo: filepath.Join(at, "shop")}
	if w.dir, err = state.OpenAt(filepath.Join(at, "state")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.repo, 0o700); err != nil {
		t.Fatal(err)
	}
	w.git(w.repo, "init", "-q", "-b", "main")
	w.commit(w.repo, "file", "one\n")
	w.herdr = herdrtest.New(t, herdrtest.Options{Profile: profile, Speed: 50, Validate: schema.Validate})
	w.herdr.OnLaunch("claude", func(p *herdrtest.Pane, _ herdrtest.Launch) []herdrtest.Step {
		return []herdrtest.Step{{State: herdrtest.Idle, Screen: idleScreen, Title: "✳ Claude Code"}}
	})
	w.commander = w.herdr.Agent(herdrtest.Agent{CWD: w.repo})
	w.env = map[string]string{"HERDR_PANE_ID": w.commander.ID, "HERDR_SOCKET_PATH": w.herdr.Socket, "HOME": at}
	w.Desk = &Desk{
		Project: w.dir.Project(w.repo), Git: w.repo, Getenv: func(name string) string { return w.env[name] },
		Sentinel: func(context.Context, *state.Dir) error { w.ensured++; return nil },
		Progress: func(s string) { w.said = append(w.said, s) },
		times:    times{look: 10 * time.Millisecond, start: 30 * time.Second, answer: 30 * time.Second, gone: time.Second},
	}
	return w
}

func (w *world) git(dir string, args ...string) string {
	w.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(path, text string) {
	w.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) commit(dir, name, text string) {
	w.Helper()
	w.write(filepath.Join(dir, name), text)
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-q", "-m", "change "+name)
}

// dispatched is a task that has just been given to a soldier, who works.
func (w *world) dispatched(o Order) (task.Task, *herdrtest.Pane) {
	w.Helper()
	if o.Prompt == "" {
		o.Prompt = "Add a changelog entry"
	}
	r, err := w.Dispatch(w.Context(), o)
	if err != nil {
		w.Fatal(err)
	}
	pane := w.herdr.Pane(r.Task.Herdr.Pane)
	w.until("the prompt arrives", func() bool { return len(pane.Prompts()) > 0 })
	return r.Task, pane
}

// ended is a task whose soldier has come to rest with a commit, and whose end was told so.
func (w *world) ended(as task.Status) (task.Task, *herdrtest.Pane) {
	w.Helper()
	t, pane := w.dispatched(Order{})
	w.commit(t.Camp.Path, "changelog", "entry\n")
	pane.Idle()
	return w.become(t, as), pane
}

func (w *world) become(t task.Task, as task.Status) task.Task {
	w.Helper()
	t, err := w.tasks().Update(w.Context(), t.ID, t.Status, func(t *task.Task) error {
		t.Status = as
		if as == task.Blocked {
			t.Decision = &task.Decision{Question: "Keep the fields?", AskedAt: time.Now()}
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *world) get(id string) task.Task {
	w.Helper()
	t, err := w.tasks().Get(id)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *world) until(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%s: it does not come to that", what)
		}
	}
}

// everything is what has to be as before when an order was not carried out: of git, of herdr, and of the state directory.
func (w *world) everything() string {
	w.Helper()
	all := []string{w.git(w.repo, "for-each-ref"), w.git(w.repo, "worktree", "list"), w.git(w.repo, "status", "--porcelain", "--branch"), w.git(w.repo, "config", "--list")}
	for _, p := range w.herdr.Panes() {
		all = append(all, p.CurrentID())
	}
	err := filepath.WalkDir(w.dir.Path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, "lock") || strings.HasPrefix(e.Name(), "project.") {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, fmt.Sprintf("%s: %s", path, data))
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// refused checks that an error is an explanation with a way out.
func (w *world) refused(err error, words ...string) {
	w.Helper()
	h, ok := errors.AsType[interface {
		error
		Hint() string
	}](err)
	if !ok || h.Hint() == "" {
		w.Errorf("%v has no hint", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error()+"\n"+h.Hint(), word) {
			w.Errorf("no %q in %q, hint %q", word, err, h.Hint())
		}
	}
}

func (w *world) warned(r Result, words string) {
	w.Helper()
	if !slices.ContainsFunc(r.Warnings, func(s string) bool { return strings.Contains(s, words) }) {
		w.Errorf("no %q in the warnings %q", words, r.Warnings)
	}
}
