//go:build e2e

package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/daemon"
	"vx/internal/e2e/openai"
	"vx/internal/e2e/tmux"
	"vx/internal/proc"
	"vx/internal/state"
)

// A world is everything one test may touch.
type world struct {
	t       *testing.T
	program string
	model   *openai.Server
	dir     string // holds all that follows
	home    string
	project string
	env     []string // the whole environment of OpenCode and of commands
}

// newWorld is a project with the plugin, whose commanders wait, and an OpenCode that has a model and a key. Its test runs
// beside others.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	dir, err := os.MkdirTemp("", "vx-opencode-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, program: program(t), dir: dir, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "proj")}
	t.Cleanup(w.clean)
	w.model = openai.Start(t)
	w.env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + w.home, "TMPDIR=" + w.path("tmp"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/sh",
		"VEXILLUM_HOME=" + w.path("state"),
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
	}
	w.write(w.path("tmp/.keep"), "")
	w.configure()
	w.copyFile(buildVX(t), w.vx(), 0o755)
	w.newProject(w.project)
	return w
}

// newProject makes a repository with the plugin, whose commanders wait outside of herdr's panes too.
func (w *world) newProject(root string) {
	w.t.Helper()
	w.write(filepath.Join(root, "README"), "a project\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin"}} {
		if _, status := w.run(root, "/usr/bin/git", args...); status != 0 {
			w.t.Fatalf("git %q: %d", args, status)
		}
	}
	w.vxIn(root, "init", "--harness", "opencode", "--await", "always", "--yes")
}

// configure gives OpenCode the model on loopback, with a key that is none, and no registry: at its first start it fetches
// the types for plugins, and it waits for a registry that does not answer, but not for one that refuses.
func (w *world) configure() {
	w.t.Helper()
	w.write(filepath.Join(w.home, ".npmrc"), "registry=http://127.0.0.1:9/\nfetch-retries=0\n")
	config, err := json.Marshal(map[string]any{
		"model": "mock/mock-1", "small_model": "mock/mock-1", "autoupdate": false, "share": "disabled", "enabled_providers": []string{"mock"},
		"provider": map[string]any{"mock": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": map[string]any{"baseURL": w.model.URL, "apiKey": "not-a-key"},
			"models": map[string]any{"mock-1": map[string]any{"name": "mock-1", "tool_call": true, "limit": map[string]any{"context": 100000, "output": 4096}}},
		}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(w.home, ".config", "opencode", "opencode.json"), string(config))
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, data string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) exists(name string) bool {
	_, err := os.Lstat(w.path(name))
	return err == nil
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.RemoveAll(name); err != nil {
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

// plugin puts another plugin beside that of vx. OpenCode asks plugins in the order of their names.
func (w *world) plugin(name, source string) {
	w.t.Helper()
	w.write(filepath.Join(w.project, ".opencode", "plugin", name), source)
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
func (w *world) awaiting(n int) []awaiter.Entry { w.t.Helper(); return w.awaitingIn(w.project, n) }

func (w *world) awaitingIn(root string, n int) []awaiter.Entry {
	w.t.Helper()
	var live []awaiter.Entry
	w.eventually("as many awaits as commanders", func() bool {
		live = w.awaits(root)
		return len(live) == n && !holds(live)
	})
	return live
}

// held waits until an await holds a delivery.
func (w *world) held() {
	w.t.Helper()
	w.eventually("a delivery in hand", func() bool { return holds(w.awaits(w.project)) })
}

func holds(awaits []awaiter.Entry) bool {
	for _, e := range awaits {
		if _, holding := e.Holding(); holding {
			return true
		}
	}
	return false
}

// registered waits until a commander of the project is known to vx by its plugin, in the session.
func (w *world) registered(session string) commander.Entry {
	w.t.Helper()
	var found commander.Entry
	w.eventually("a registered commander", func() bool {
		dir := w.state()
		known, err := commander.Look(dir, dir.Project(w.project))
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range known {
			if e.Server != nil && e.Session == session {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// children are the processes of vx's awaits in this world, registered or not.
func (w *world) children() []proc.ID {
	w.t.Helper()
	return w.processes(func(line string) bool { return strings.Contains(line, "\x00await\x00") })
}

// processes are those that work in this world.
func (w *world) processes(which func(line string) bool) []proc.ID {
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
		if line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && which(string(line)) {
			if id, err := proc.Find(number(e.Name())); err == nil {
				found = append(found, id)
			}
		}
	}
	return found
}

// clean ends what is left in this world, then removes it; a failed test keeps it for a look.
func (w *world) clean() {
	for _, id := range w.processes(func(string) bool { return true }) {
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

// open opens OpenCode's terminal interface in a folder.
func (w *world) open(dir string, args ...string) *tmux.Pane {
	w.t.Helper()
	return tmux.Start(w.t, tmux.Command{Dir: dir, Env: w.env, Args: append([]string{w.program}, args...), Width: 140, Height: 45})
}

// start opens OpenCode in the project, has a turn, and waits until it waits for wakes.
func (w *world) start(args ...string) *tmux.Pane {
	w.t.Helper()
	before := len(w.awaits(w.project))
	p := w.open(w.project, args...)
	w.turn(p, "hello there")
	w.awaiting(before + 1)
	return p
}

// turn has a person say something, and waits until the model is asked.
func (w *world) turn(p *tmux.Pane, text string) {
	w.t.Helper()
	p.WaitScreen(w.t, "ctrl+p commands")
	before := w.model.Turns(text)
	p.Say(text)
	w.eventually("the turn", func() bool { return w.model.Turns(text) > before })
}

// busy leaves OpenCode in the middle of an answer that ends when gate 1 is opened.
func (w *world) busy(p *tmux.Pane) {
	w.t.Helper()
	w.model.Shut(1)
	w.turn(p, "GATE1 please")
}
