//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/e2e/clients"
	"vx/internal/e2e/openai"
	"vx/internal/e2e/tmux"
)

// A Claude Code and a Pi that work in one project have one queue: each wake is told by one of them, once.
func TestCommandersOfTwoHarnessesShareTheirWakes(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.vx("init", "--harness", "claude,pi", "--yes")
		c := w.session()
		model := openai.Start(t)
		clients.PiConfig(t, w.home, model.URL)
		words := clients.PiToday.Trusting(t)
		env := append([]string{"PATH=" + filepath.Dir(words[0]) + ":/usr/bin:/bin"}, clients.PiEnv...)
		for _, e := range w.env {
			if !strings.HasPrefix(e, "PATH=") && !strings.HasPrefix(e, "ANTHROPIC_") {
				env = append(env, e)
			}
		}
		tmux.Start(t, tmux.Command{Dir: w.project, Env: env, Args: words, Width: 160, Height: 50})
		w.awaiting(2)
		const warning = "[warn] commanders share one wake queue - 2 commanders are live in this project (claude, pi)"
		if out, _ := w.tryVX("doctor"); !strings.Contains(out, warning) {
			t.Errorf("vx doctor does not warn of two commanders:\n%s", out)
		}
		if out := w.vx("commander", "list"); !strings.Contains(out, "claude ") || !strings.Contains(out, "pi ") {
			t.Errorf("vx commander list does not name both:\n%s", out)
		}

		byPi := 0
		told := func(title string) {
			t.Helper()
			w.eventually("the end of the wake "+title, func() bool {
				story := w.story(title)
				return len(story) > 0 && story[len(story)-1].Event == "delivered" && model.Turns(title)+w.api.turns(title) > 0
			})
			if n := model.Turns(title); n+w.api.turns(title) != 1 {
				t.Errorf("%q was told in %d turns of Claude Code and %d of Pi, want one", title, w.api.turns(title), n)
			} else {
				byPi += n
			}
		}
		var titles []string
		for i := range 6 {
			titles = append(titles, fmt.Sprintf("news number %d.", i))
			w.send(titles[i])
		}
		for _, title := range titles {
			told(title)
		}
		t.Logf("Pi told %d of %d", byPi, len(titles))

		w.awaiting(2)
		c.end("SIGKILL")
		w.awaiting(1)
		byPi = 0
		w.send("news for the one")
		told("news for the one")
		if byPi != 1 {
			t.Error("Pi, alone, did not tell it")
		}
		if out, _ := w.tryVX("doctor"); strings.Contains(out, "share one wake queue") {
			t.Errorf("vx doctor warns of one commander:\n%s", out)
		}
	})
}
