package screen

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzRead(f *testing.F) {
	f.Add("claude", summary+box("", manual), calm, "Go on")
	f.Add("claude", "\x1b[38;5;1m✻ Baking…\x1b]0;", busy, "")
	f.Add("codex", codexScreen("› Go on\n\n\n◦ Working (5s • esc"), "⠙ Fix it | proj", "")
	f.Add("pi", piScreen(" needs-decision: Red or blue?\n - Red"), "", "needs-decision: <question>")
	f.Add("opencode", opencodeScreen("     Done.\n\n     ▣  Build · mock-1"), "", "")
	f.Add("claude", "\xff\x00\x1b[", "\x1b", "\x00")
	f.Fuzz(func(t *testing.T, agent, text, title, prompt string) {
		for _, agent := range append(Agents(), agent) {
			r := Read(agent, text, title)
			switch r.State {
			case Idle, Working, Background, Blocked:
				if r.By == "" || r.Evidence == "" {
					t.Errorf("%s: %+v has no evidence", agent, r)
				}
			case Unknown:
			default:
				t.Errorf("%s: %+v is no state", agent, r)
			}
			question, options, ok := Decision(agent, text, prompt)
			if ok && question == "" || !ok && question+strings.Join(options, "") != "" {
				t.Errorf("%s: %q %q %v", agent, question, options, ok)
			}
			for _, s := range append(options, question, r.Evidence) {
				if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\n") || utf8.RuneCountInString(s) > questionCap {
					t.Errorf("%s: %q is not clean", agent, s)
				}
			}
		}
	})
}

// Megabytes of anything cost about what one megabyte costs. The guard against more than that is the test's own end:
// what is quadratic in these does not come to it.
func TestMegabytesOfAnythingAreRead(t *testing.T) {
	for _, piece := range []string{"\x00", "\xff", "\x1b", "\x1b]", "\x1b[", "\x1bP\x1b", "─", "│ ", "─\n", "❯ \n", "›\n", "┃\n", "╹▀▀▀\n", "✻ ", "\n", "needs-decision: a\n", "  - a\n", "あ", "· ", " · 1 "} {
		text := string(bytes.Repeat([]byte(piece), 4<<20/len(piece)))
		for _, agent := range Agents() {
			for _, screen := range []string{text, text + box("", manual), text + "\n\n" + strings.Repeat("─", 60) + "\n\n" + strings.Repeat("─", 60)} {
				if r := Read(agent, screen, text[:1000]); r.State == "" {
					t.Errorf("%s, %q: no state", agent, piece)
				}
				Decision(agent, screen, text)
			}
		}
	}
}
