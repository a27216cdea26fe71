//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vx/internal/daemon"
	"vx/internal/lock"
	"vx/internal/state"
)

// fakeKey is approved in the client's own record, by its last 20 characters, so that the client asks no question.
const fakeKey = "sk-ant-api03-fake-key-for-the-local-mock-0000000000"

// A world is everything one test may touch.
type world struct {
	t       *testing.T
	version string
	binary  string // the client at that version
	api     *api
	dir     string // holds all that follows
	home    string
	project string
	env     []string // the whole environment of clients, hooks and commands
}

func newWorld(t *testing.T, version string) *world {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: its path is too long for tmux's socket.
	dir, err := os.MkdirTemp("", "vx-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, version: version, binary: clientBinary(t, version), dir: dir, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "proj")}
	t.Cleanup(w.clean)
	w.api = newAPI(t)
	for _, d := range []string{w.path("tmp"), filepath.Join(w.home, ".claude"), w.project} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The server stays when its last terminal is closed: a new one could not start while the old one leaves.
	w.writeFile(w.path("tmux.conf"), "set -g exit-empty off\n", 0o600)
	w.env = []string{
		"PATH=/usr/bin:/bin", "HOME=" + w.home, "TMPDIR=" + w.path("tmp"), "TERM=xterm-256color", "LANG=C.UTF-8",
		"VEXILLUM_HOME=" + w.path("state"),
		"ANTHROPIC_BASE_URL=" + w.api.URL, "ANTHROPIC_API_KEY=" + fakeKey,
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}
	w.writeJSON(filepath.Join(w.home, ".claude.json"), map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark", "numStartups": 5, "autoUpdates": false,
		"customApiKeyResponses": map[string]any{"approved": []string{fakeKey[len(fakeKey)-20:]}, "rejected": []string{}},
		"projects": map[string]any{w.project: map[string]any{
			"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": []string{}}},
	})
	w.settings(map[string]any{"allow": []string{"Bash"}})
	return w
}

// settings are the user's own, with these permissions.
func (w *world) settings(permissions map[string]any) {
	w.t.Helper()
	permissions["defaultMode"] = "default"
	permissions["disableAutoMode"] = "disable" // else 2.1.332 offers it one day, by a dialog of its own
	w.writeJSON(filepath.Join(w.home, ".claude", "settings.json"), map[string]any{"permissions": permissions})
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) writeJSON(name string, v any) {
	w.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	w.writeFile(name, string(data), 0o600)
}

func (w *world) writeFile(name, data string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), mode); err != nil {
		w.t.Fatal(err)
	}
}

// clean ends what still runs in this world, then removes it; a failed test keeps it for a look.
func (w *world) clean() {
	w.tmux("kill-server")
	for _, p := range processesIn(w.dir) {
		p.kill(w.dir)
	}
	w.stopSentinel()
	if w.t.Failed() {
		w.t.Logf("kept %s; the model was told:\n%s", w.dir, w.api.dump())
		return
	}
	// What was just killed may still be writing.
	for range 20 {
		if os.RemoveAll(w.dir) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Errorf("%s could not be removed", w.dir)
}

// stopSentinel ends the sentinel that an await has started; it works in no folder.
func (w *world) stopSentinel() {
	dir, err := state.LookAt(w.path("state"))
	if err == nil {
		_, err = daemon.Stop(context.Background(), dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, daemon.ErrNone) {
		w.t.Error(err)
	}
}

// alone keeps every sentinel away from this world: what happens to its deliveries and awaits is their own doing.
func (w *world) alone() {
	w.t.Helper()
	held, err := lock.Try(w.path("state/sentinel.lock"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { held.Unlock() })
}

// tmux runs a command of this world's own tmux server and returns what it prints.
func (w *world) tmux(args ...string) (string, error) {
	// A server that a test has stopped does not answer.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-S", w.path("tmux"), "-f", w.path("tmux.conf")}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, w.env, time.Second
	out, err := cmd.Output()
	return strings.TrimRight(string(out), "\n"), err
}

// transcripts returns the sessions' transcripts, with their text.
func (w *world) transcripts() map[string]string {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.home, ".claude", "projects", "*", "*.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		texts[name] = string(data)
	}
	return texts
}

// inTranscript waits until a transcript has a row that holds all the parts.
func (w *world) inTranscript(parts ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("a row with %q", parts), func() bool { return w.hasRow(parts...) })
}

func (w *world) hasRow(parts ...string) bool {
	w.t.Helper()
	missing := func(line string) func(string) bool {
		return func(part string) bool { return !strings.Contains(line, part) }
	}
	for _, text := range w.transcripts() {
		for line := range strings.Lines(text) {
			if !slices.ContainsFunc(parts, missing(line)) {
				return true
			}
		}
	}
	return false
}

// server is this world's tmux server.
func (w *world) server() process {
	w.t.Helper()
	out, err := w.tmux("display-message", "-p", "#{pid}")
	pid, perr := strconv.Atoi(out)
	if err != nil || perr != nil {
		w.t.Fatalf("tmux's pid: %v, %q", err, out)
	}
	return processOf(pid)
}

// patience is far beyond what any step takes, so that a busy machine fails nothing.
const patience = 60 * time.Second

// eventually waits for a condition.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	w.eventuallyOr(what, ok, func() string { return "" })
}

// eventuallyOr says, when the condition does not come, what there is instead.
func (w *world) eventuallyOr(what string, ok func() bool, instead func() string) {
	w.t.Helper()
	w.within(patience, what, ok, instead)
}

func (w *world) within(d time.Duration, what string, ok func() bool, instead func() string) {
	w.t.Helper()
	pause := 25 * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pause) {
		if ok() {
			return
		}
		// A look costs a process as a rule, and what is not there soon is waited for by many tests at once.
		pause = min(pause+pause/4, 250*time.Millisecond)
	}
	w.t.Fatalf("not within %s: %s; %s\n%s", d, what, instead(), w.screens())
}

func (w *world) screens() string {
	panes, _ := w.tmux("list-panes", "-a", "-F", "#{pane_id}")
	var b strings.Builder
	for _, pane := range strings.Fields(panes) {
		text, _ := w.tmux("capture-pane", "-p", "-t", pane)
		b.WriteString("--- screen\n" + text + "\n")
	}
	return b.String()
}
