//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheSameHookInTwoScopesRunsOnceAndTellsOnce(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.vx("init", "--scope", "user", "--yes")
		// What the hook finds first keeps count.
		w.writeFile(w.path("bin/vx"), "#!/bin/sh\necho \"$*\" >>"+w.path("calls")+"\nexec "+filepath.Join(w.home, ".local/bin/vx")+" \"$@\"\n", 0o700)
		calls := func() []string {
			data, _ := os.ReadFile(w.path("calls"))
			return strings.Fields(strings.ReplaceAll(string(data), " ", "-"))
		}
		c := w.startIn(w.project, []string{"PATH=" + w.path("bin") + ":/usr/bin:/bin"})
		c.prompt("hello there")
		w.awaiting(1)
		w.vx("wake", "send", "--title", "news for one", "--wait")
		w.woken("news for one")
		w.delivered("news for one", 1)
		if want := []string{"sentinel-await", "sentinel-await"}; !slices.Equal(calls(), want) {
			t.Errorf("after two turns the hook has run as %q, want %q", calls(), want)
		}
		if out, _ := w.tryVX("doctor"); !strings.Contains(out, "hold the same command, which Claude Code runs once") {
			t.Errorf("vx doctor does not explain it:\n%s", out)
		}
	})
}

// The hook is committed with the project, so it runs also where vx is not.
func TestATeammateWithoutVXIsLeftAlone(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		if err := os.Rename(filepath.Join(w.home, ".local", "bin", "vx"), w.path("vx-away")); err != nil {
			t.Fatal(err)
		}
		for _, there := range []string{"/usr/bin/vx", "/bin/vx", "/opt/homebrew/bin/vx", "/usr/local/bin/vx", "/home/linuxbrew/.linuxbrew/bin/vx"} {
			if exists(there) {
				t.Fatalf("%s is there: this test shows nothing", there)
			}
		}
		hook := addMarker(w, "stop-hooks-ran")
		cmd := exec.Command("/bin/sh", "-c", hook)
		cmd.Dir, cmd.Env = w.project, w.env
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.HasPrefix(stderr.String(), "vx: not found") {
			t.Errorf("the hook says %q on stdout and %q on stderr, and ends with %v", stdout.String(), stderr.String(), err)
		}

		c := w.start()
		for i, line := range []string{"hello there", "hello again"} {
			c.prompt(line)
			w.eventually("the turn's Stop hooks", func() bool {
				data, _ := os.ReadFile(w.path("stop-hooks-ran"))
				return strings.Count(string(data), "\n") == i+1
			})
			c.becomes("idle")
		}
		if n := w.api.turns(""); n != 2 {
			t.Errorf("the model was called %d times, want twice\n%s", n, w.api.dump())
		}
		if w.api.turns("not found") > 0 || w.hasRow(`"enqueue"`) {
			t.Errorf("the model was told of the hook's complaint\n%s", w.api.dump())
		}
		w.awaiting(0)
	})
}

// addMarker registers one more Stop hook in the project, which adds a line to a file half a second later than the
// others began, and returns the command that was there.
func addMarker(w *world, name string) (command string) {
	w.t.Helper()
	path := filepath.Join(w.project, ".claude", "settings.json")
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	type hook map[string]any
	var s struct {
		Hooks map[string][]struct {
			Hooks []hook `json:"hooks"`
		} `json:"hooks"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		w.t.Fatal(err)
	}
	stop := s.Hooks["Stop"]
	command = stop[0].Hooks[0]["command"].(string)
	stop[0].Hooks = append(stop[0].Hooks, hook{"type": "command", "command": "sleep 0.5; echo ran >>" + w.path(name)})
	w.writeJSON(path, s)
	return command
}
