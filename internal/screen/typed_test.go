package screen

import (
	"strings"
	"testing"
)

// coloured is the end of a screen of Claude Code with that in its prompt, as a terminal gives it with its colours.
func coloured(prompt, own string) string {
	rule := strings.Repeat("─", 60)
	return "\x1b[38;5;231m●\x1b[39m hi, done\n\n\x1b[38;5;246m✻\x1b[39m \x1b[38;5;246mWorked for 1s\x1b[39m\n\n" +
		"\x1b[38;5;244m" + rule + "\n\x1b[39m❯\u00a0" + prompt + "\x1b[0m\x1b[39m\x1b[49m\n\x1b[38;5;244m" + rule + "\n\x1b[39m  \x1b[38;5;246m" + own + "\x1b[39m\n"
}

const cursor = "\x1b[7m \x1b[0m"

func TestWhatWasTypedIsToldFromWhatIsSuggested(t *testing.T) {
	for name, c := range map[string]struct{ prompt, own, typed string }{
		"nothing":                        {cursor, "? for shortcuts · ← for agents", ""},
		"nothing, and another hint":      {cursor, "ctrl+y to paste deleted text", ""},
		"a prompt that Esc has put back": {"add a changelog entry" + cursor, "⏸ manual mode on", "add a changelog entry"},
		"the same on more lines":         {"add one line\n  and a second one\n  - and a third" + cursor, "paste again to expand", "add one line and a second one - and a third"},
		"a paste":                        {"[Pasted text #3 +30 lines]" + cursor, "⏸ manual mode on", "[Pasted text #3 +30 lines]"},
		"the cursor within":              {"half \x1b[7ma\x1b[27m sentence", "⏸ manual mode on", "half sentence"},
		"coloured letters":               {"\x1b[38;5;2mgo\x1b[39m \x1b[38;2;2;7;2mon" + cursor, "⏸ manual mode on", "go on"},
		"a suggestion":                   {"\x1b[7mR\x1b[0m\x1b[2mun the tests\x1b[0m", "⏸ manual mode on", ""},
		"a suggestion with a colour":     {"\x1b[2;7mR\x1b[27;2;38;5;246mun the\x1b[0;2m tests\x1b[22m", "a status line", ""},
		"a suggestion that goes on":      {"\x1b[7mR\x1b[0;2mun the\n  tests\x1b[0m", "⏸ manual mode on", ""},
		"a suggestion beside the hint":   {"Try something", "? for shortcuts", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := coloured(c.prompt, c.own)
			if typed, proven := Typed("claude", text); typed != c.typed || proven != (c.typed != "") {
				t.Errorf("typed is %q, proven %v, want %q", typed, proven, c.typed)
			}
		})
	}
}

func TestNothingIsProvenToBeTypedWithoutColoursOrAPrompt(t *testing.T) {
	plain := strings.Join(read(coloured("Run the tests", "⏸ manual mode on")), "\n")
	if typed, proven := Typed("claude", plain); typed != "Run the tests" || proven {
		t.Errorf("without colours: %q, proven %v", typed, proven)
	}
	for name, c := range map[string]struct{ agent, text string }{
		"another client":       {"codex", coloured("Run the tests", "⏸ manual mode on")},
		"no box":               {"claude", "\x1b[31m$ Run the tests\x1b[0m"},
		"nothing":              {"claude", ""},
		"more than any screen": {"claude", strings.Repeat("\n", linesUp) + coloured("Run the tests", "⏸ manual mode on")},
		"a dialog":             {"claude", " Trust it?\n\n \x1b[1m❯ 1. Yes\x1b[0m\n   2. No\n\n Enter to confirm · Esc to cancel\n"},
	} {
		if typed, proven := Typed(c.agent, c.text); typed != "" || proven {
			t.Errorf("%s: %q, proven %v", name, typed, proven)
		}
	}
}
