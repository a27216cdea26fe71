package screen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Of the recorded screens those are called empty whose prompt is: none of a client that works, waits at a dialog or has
// something running, none with something typed, and most of the others.
func TestNoPromptWithSomethingInItIsCalledEmpty(t *testing.T) {
	// Taken before the first letter was there, or while the client's own help or a suggestion stood there.
	before := []string{"idle-shortcuts-help-1", "idle-suggestion-1", "2.1.332/40x20/idle-typed-half-1", "2.1.332/60x18/idle-slash-menu-1"}
	typed := []string{"half", "typed", "pasted", "menu", "suggestion", "shortcuts", "bash-mode", "memory", "rewind"}
	for _, agent := range []string{"claude", "opencode", "pi"} {
		paths, err := filepath.Glob("../../testdata/screens/" + agent + "-*/*/*.txt")
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d screens, %v", agent, len(paths), err)
		}
		empty, idle := 0, 0
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(path)
			blank := strings.HasPrefix(name, "idle-")
			for _, word := range typed {
				blank = blank && !strings.Contains(name, word)
			}
			if blank {
				idle++
			}
			switch got := Empty(agent, string(data)); {
			case strings.HasPrefix(name, "exited-"): // a terminal keeps what was drawn last
			case got && !blank && !slices.ContainsFunc(before, func(part string) bool { return strings.Contains(path, part) }):
				t.Errorf("%s is called empty", path)
			case got && !blank:
			case got:
				empty++
			}
		}
		t.Logf("%s: %d of %d found", agent, empty, idle)
		if empty*10 < idle*6 {
			t.Errorf("%s: of %d idle screens %d are found empty", agent, idle, empty)
		}
	}
}

func TestASuggestionIsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prompt string
		want   bool
	}{
		"nothing":      {cursor, true},
		"a suggestion": {"\x1b[7mR\x1b[0m\x1b[2mun the tests\x1b[0m", true},
		"a sentence":   {"add a changelog entry" + cursor, false},
		"one letter":   {"a" + cursor, false},
	} {
		if got := Empty("claude", coloured(c.prompt, "⏸ manual mode on")); got != c.want {
			t.Errorf("%s: empty is %v", name, got)
		}
	}
	if Empty("codex", coloured(cursor, "")) || Empty("claude", "$ ") || Empty("pi", "") || Empty("opencode", "┃\n╹▀▀▀▀\n") {
		t.Error("what is not known is called empty")
	}
}
