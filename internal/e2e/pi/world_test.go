//go:build e2e

package pi

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/daemon"
	"vx/internal/e2e/clients"
	"vx/internal/e2e/openai"
	"vx/internal/e2e/tmux"
	"vx/internal/proc"
	"vx/internal/state"
)

// A world is everything one test may touch.
type world struct {
	t       *testing.T
	release clients.Pi
	model   *openai.Server
	dir     string // holds all that follows
	home    string
	project string
	env     []string // the whole environment of Pi and of commands
}

// newWorld is a project with the extension, whose commanders wait, and a Pi that has a model and a key. Its test runs beside
// others.
func newWorld(t *testing.T, r clients.Pi) *world {
	t.Helper()
	t.Parallel()
	dir, err := os.MkdirTemp("", "vx-pi-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, release: r, dir: dir, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "proj")}
	t.Cleanup(w.clean)
	w.model = openai.Start(t)
	w.env = []string{
		"PATH=" + filepath.Dir(r.Command(t)[0]) + ":/usr/bin:/bin", "HOME=" + w.home, "TMPDIR=" + w.path("tmp"), "TERM=xterm-256color", "LANG=C.UTF-8",
		"VEXILLUM_HOME=" + w.path("state"),
	}
	w.env = append(w.env, clients.PiEnv...)
	w.write(w.path("tmp/.keep"), "")
	clients.PiConfig(t, w.home, w.model.URL)
	w.write(w.agent("extensions/.keep"), "")
	w.copyFile(buildVX(t), filepath.Join(w.home, ".local", "bin", "vx"), 0o755)
	w.newProject(w.project)
	return w
}

// newProject makes a repository with the extension, whose commanders wait outside of herdr's panes too.
func (w *world) newProject(root string) {
	w.t.Helper()
	w.write(filepath.Join(root, "README"), "a project\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin"}} {
		if _, status := w.run(root, "/usr/bin/git", args...); status != 0 {
			w.t.Fatalf("git %q: %d", args, status)
		}
	}
	w.vxIn(root, "init", "--harness", "pi", "--await", "always", "--yes")
}

// install puts the extension into a folder.
func (w *world) install(dir string) {
	w.t.Helper()
	w.copyFile(filepath.FromSlash("../../../install/extensions/pi/vexillum-wake.ts"), filepath.Join(dir, "vexillum-wake.ts"), 0o600)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// agent is a path in Pi's own folder.
func (w *world) agent(name string) string { return filepath.Join(w.home, ".pi", "agent", name) }

func (w *world) write(name, data string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) copyFile(from, to string, mode os.FileMode) {
	w.t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(to, string(data))
	if err := os.Chmod(to, mode); err != nil {
		w.t.Fatal(err)
	}
}

// state is vx's, as vx sees it.
func (w *world) state() *state.Dir {
	w.t.Helper()
	dir, err := state.LookAt(w.path("state"))
	if err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// awaits are those of a project that wait or hold, oldest first.
func (w *world) awaits(root string) []awaiter.Entry {
	w.t.Helper()
	dir := w.state()
	live, _, err := awaiter.Look(dir, dir.Project(root))
	if err != nil {
		w.t.Fatal(err)
	}
	return live
}

// awaiting waits until the project's commanders wait in this number, and returns their awaits.
func (w *world) awaiting(n int) []awaiter.Entry {
	w.t.Helper()
	var live []awaiter.Entry
	w.eventually("as many awaits as commanders", func() bool {
		live = w.awaits(w.project)
		for _, e := range live {
			if _, holding := e.Holding(); holding {
				return false
			}
		}
		return len(live) == n
	})
	return live
}

// children are the processes of vx's awaits in this world, registered or not.
func (w *world) children() []proc.ID {
	w.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		w.t.Fatal(err)
	}
	var found []proc.ID
	for _, e := range entries {
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || !strings.HasPrefix(strings.TrimSuffix(cwd, " (deleted)"), w.dir+"/") {
			continue
		}
		if line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && strings.Contains(string(line), "\x00await\x00") {
			if id, err := proc.Find(number(e.Name())); err == nil {
				found = append(found, id)
			}
		}
	}
	return found
}

// clean ends what is left in this world, then removes it; a failed test keeps it for a look.
func (w *world) clean() {
	for _, id := range w.children() {
		if h, err := proc.Open(id); err == nil {
			h.Signal(9)
			h.Close()
		}
	}
	dir, err := state.LookAt(w.path("state"))
	if err == nil {
		_, err = daemon.Stop(context.Background(), dir) // an await has started it; it works in no folder
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, daemon.ErrNone) {
		w.t.Error(err)
	}
	if w.t.Failed() {
		w.t.Logf("kept %s; the model was told:\n%s", w.dir, w.model.Dump())
		return
	}
	// What was just ended may still be writing.
	for range 20 {
		if os.RemoveAll(w.dir) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Errorf("%s could not be removed", w.dir)
}

// patience is far beyond what any step takes, so that a busy machine fails nothing.
const patience = 90 * time.Second

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if ok() {
			return
		}
	}
	w.t.Fatalf("not within %s: %s", patience, what)
}

// open opens Pi in a folder, trusted where that is asked, and returns without waiting for it.
func (w *world) open(dir string, env []string, args ...string) *tmux.Pane {
	w.t.Helper()
	return w.openWith(dir, append(w.release.Trusting(w.t), args...), env...)
}

func (w *world) openWith(dir string, words []string, env ...string) *tmux.Pane {
	w.t.Helper()
	return tmux.Start(w.t, tmux.Command{Dir: dir, Env: append(append([]string{}, w.env...), env...), Args: words, Width: 160, Height: 50})
}

// start opens Pi in the project and waits until one more commander waits.
func (w *world) start(args ...string) *tmux.Pane {
	w.t.Helper()
	before := len(w.awaits(w.project))
	p := w.open(w.project, nil, args...)
	w.awaiting(before + 1)
	return p
}
