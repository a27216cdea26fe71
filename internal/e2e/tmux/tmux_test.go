//go:build e2e

package tmux_test

import (
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/e2e/tmux"
)

// echo repeats what it is told until it is told to leave.
const echo = `echo "ready $GREETING $0"; while read -r line; do [ "$line" = leave ] && exit; echo "heard $line"; done`

func start(t *testing.T) *tmux.Pane {
	t.Helper()
	p := tmux.Start(t, tmux.Command{
		Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin", "GREETING=it's"}, Args: []string{"/bin/sh", "-c", echo, "a \"b\" $c"}, Width: 90, Height: 20,
	})
	p.WaitScreen(t, `ready it's a "b" $c`)
	return p
}

func TestAProgramIsTypedToAndRead(t *testing.T) {
	p := start(t)
	if lines := strings.Count(p.Screen()+"\n", "\n"); lines > 20 {
		t.Errorf("the screen has %d lines, want 20 at most", lines)
	}
	p.Say("--hello; it's $HOME")
	p.WaitScreen(t, "heard --hello; it's $HOME")
	if !p.Alive() {
		t.Fatal("the program has ended, they say")
	}
	p.Say("leave")
	p.WaitEnd()
	if s := p.Screen(); !strings.Contains(s, "heard --hello") {
		t.Errorf("the screen went with the program: %q", s)
	}
}

func TestAProgramIsKilledOrHungUp(t *testing.T) {
	for name, end := range map[string]func(*tmux.Pane){"killed": (*tmux.Pane).Kill, "hung up": (*tmux.Pane).HangUp} {
		t.Run(name, func(t *testing.T) {
			p, other := start(t), start(t)
			end(p)
			if p.Alive() {
				t.Error("it lives on")
			}
			other.Say("still here")
			other.WaitScreen(t, "heard still here")
		})
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var p *tmux.Pane
	t.Run("a test", func(t *testing.T) { p = start(t) })
	if p.Alive() {
		t.Error("the program outlived its test")
	}
	left, err := filepath.Glob(filepath.Join(tmp, "vx-tmux-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q is left (%v)", left, err)
	}
}
