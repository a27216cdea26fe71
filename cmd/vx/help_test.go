//go:build !windows

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// vx is this test binary as vx, in a HOME of its own.
func vx(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("vx") // testscript.Main has put it there
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "VEXILLUM_HOME="+home+"/state")
	return cmd
}

// grammarOf is the grammar as kong sees it.
func grammarOf(t *testing.T) *kong.Node {
	t.Helper()
	app, err := kong.New(&grammar{}, kong.Name("vx"))
	if err != nil {
		t.Fatal(err)
	}
	return app.Model.Node
}

func TestHelpOfEveryCommandFitsAScreen(t *testing.T) {
	for _, c := range commands(grammarOf(t)) {
		out, err := vx(t, append(strings.Fields(c.path), "--help")...).Output()
		if err != nil {
			t.Errorf("vx %s --help: %v", c.path, err)
		}
		lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
		if len(lines) > 24 {
			t.Errorf("the help of vx %s has %d lines:\n%s", c.path, len(lines), out)
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("the help of vx %s is too wide: %q", c.path, line)
			}
		}
	}
}

func TestEveryCommandAndFlagIsExplainedInOneSentence(t *testing.T) {
	sentence := func(s string) bool {
		return s != "" && strings.HasSuffix(s, ".") && strings.ToUpper(s[:1]) == s[:1] || strings.HasPrefix(s, "message (")
	}
	for _, c := range commands(grammarOf(t)) {
		for _, child := range c.children {
			if !sentence(child.Help) {
				t.Errorf("vx %s %s: %q", c.path, child.Name, child.Help)
			}
		}
		for _, f := range c.flags {
			if !sentence(f.Help) {
				t.Errorf("vx %s --%s: %q", c.path, f.Name, f.Help)
			}
		}
	}
}
