package screen

import (
	"slices"
	"strings"
	"testing"
)

// claudeScreen is a conversation above an idle prompt, 60 columns wide.
func claudeScreen(conversation string) string {
	rule := strings.Repeat("─", 60)
	return conversation + "\n\n" + rule + "\n❯\u00a0\n" + rule + "\n  ? for shortcuts · ← for agents\n"
}

func codexScreen(conversation string) string {
	return conversation + "\n\n\n› Ask Codex to do anything\n\n  gpt-5.2-codex default · ~/proj · Fix it                    \n  ← for agents · ? for shortcuts        ⚠ 1 warning · f2 to view\n"
}

func piScreen(conversation string) string {
	rule := strings.Repeat("─", 60)
	return conversation + "\n\n" + rule + "\n\n" + rule + "\n~/proj (main)\n↑17k ↓700 1.3%/100k (auto)              mock-1 • medium\n"
}

func opencodeScreen(conversation string) string {
	return conversation + "\n\n  ┃\n  ┃\n  ┃\n  ┃  Build · mock-1 Mock\n  ╹" + strings.Repeat("▀", 56) + "\n   /home/u/proj             1.3K (1%)  ctrl+p commands\n"
}

func TestAQuestionIsReadFromTheLastTurn(t *testing.T) {
	const framed = "Fix the parser.\n\nIf you cannot go on without an answer, end with a line\nneeds-decision: <question>\nand stop."
	for _, c := range []struct {
		name, agent, text, prompt, question string
		options                             []string
	}{
		{name: "after the bullet", agent: "claude", text: claudeScreen("❯ Go on\n\n● needs-decision: Keep the fields?\n\n✻ Baked for 4s"), question: "Keep the fields?"},
		{name: "in a later paragraph", agent: "claude", text: claudeScreen("❯ Go on\n\n● The parser drops them.\n\n  needs-decision: Keep the fields?\n\n✻ Baked for 4s"), question: "Keep the fields?"},
		{name: "with options", agent: "claude", text: claudeScreen("❯ Go on\n\n● needs-decision: Which one?\n\n  Options:\n  1. Keep the empty fields\n  2. Drop them\n\n✻ Baked for 4s"),
			question: "Which one?", options: []string{"Keep the empty fields", "Drop them"}},
		{name: "with wrapped lines", agent: "claude", text: claudeScreen("❯ Go on\n\n● needs-decision: Shall I keep the empty fields that the\n  parser finds or drop them?\n  - Keep all of them, those of the header of the file\n    too\n  - Drop\n\n✻ Baked for 4s"),
			question: "Shall I keep the empty fields that the parser finds or drop them?",
			options:  []string{"Keep all of them, those of the header of the file too", "Drop"}},
		{name: "whose answer's beginning is out of view", agent: "claude", text: claudeScreen("  and so on.\n\n  needs-decision: Keep the fields?\n\n✻ Baked for 4s"), prompt: framed, question: "Keep the fields?"},
		{name: "with wide characters", agent: "claude", text: claudeScreen("❯ 続けて\n\n● needs-decision: 空のフィールドを残しますか、それとも捨てます\n  か?\n\n✻ Baked for 4s"), question: "空のフィールドを残しますか、それとも捨てます か?"},
		{name: "after the prompt that has the template", agent: "claude", text: claudeScreen("❯ Fix the parser.\n\n  If you cannot go on without an answer, end with a line\n  needs-decision: <question>\n  and stop.\n\n● needs-decision: Keep the fields?\n\n✻ Baked for 4s"), prompt: framed, question: "Keep the fields?"},
		{name: "in the words that the prompt gave", agent: "claude", text: claudeScreen("❯ Fix it\n\n● needs-decision: Red or blue?\n\n✻ Baked for 4s"), prompt: "Fix it. In doubt end with\nneeds-decision: Red or blue?", question: "Red or blue?"},
		{name: "of the last two", agent: "claude", text: claudeScreen("❯ Go on\n\n● needs-decision: Keep the fields?\n\n● Bash(ls)\n  ⎿  a\n\n● needs-decision: And the commas?\n\n✻ Baked for 4s"), question: "And the commas?"},
		{name: "in bold", agent: "pi", text: piScreen(" Go on\n\n\n **needs-decision:** Keep the fields?"), question: "Keep the fields?"},
		{name: "with a type in it", agent: "claude", text: claudeScreen("● needs-decision: Shall Parse return Option<String>?\n\n✻ Baked for 4s"), question: "Shall Parse return Option<String>?"},
		{name: "with its options in view and its head not", agent: "codex", text: codexScreen("› Go on\n  so far.\n\n  needs-decision: Keep the fields?\n\n  1. Yes\n  2. No\n\n  Worked for 4s • 16:29"), question: "Keep the fields?", options: []string{"Yes", "No"}},
		{name: "of codex", agent: "codex", text: codexScreen("\n› Go on\n\n\n• The parser drops them.\n\n  needs-decision: Keep the fields?\n\n  Worked for 4s • 16:29"), question: "Keep the fields?"},
		{name: "of pi", agent: "pi", text: piScreen(" Go on\n\n\n The parser drops them.\n\n needs-decision: Keep the fields?\n\n - Keep\n - Drop"), question: "Keep the fields?", options: []string{"Keep", "Drop"}},
		{name: "of opencode", agent: "opencode", text: opencodeScreen("  ┃\n  ┃  Go on\n  ┃\n\n     The parser drops them.\n\n     needs-decision: Keep the fields?\n\n     ▣  Build · mock-1 · 2.0s"), question: "Keep the fields?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			question, options, ok := Decision(c.agent, c.text, c.prompt)
			if !ok || question != c.question || !slices.Equal(options, c.options) {
				t.Errorf("got %q %q %v\nwant %q %q", question, options, ok, c.question, c.options)
			}
		})
	}
}

func TestWhatOnlyLooksLikeAQuestionIsNone(t *testing.T) {
	const template = "needs-decision: <question>"
	const told = "Fix it. If it is about the colour, ask\nneeds-decision: Red or blue?\nand wait until I have answered it."
	for _, c := range []struct{ name, agent, text, prompt string }{
		{"the template", "claude", claudeScreen("● " + template + "\n\n✻ Baked for 4s"), ""},
		{"a placeholder of another form", "claude", claudeScreen("● needs-decision: what <it is about>?\n\n✻ Baked for 4s"), ""},
		{"none", "claude", claudeScreen("● All tests pass.\n\n  needs-decision: none\n\n✻ Baked for 4s"), ""},
		{"None with a full stop", "claude", claudeScreen("● needs-decision: None.\n\n✻ Baked for 4s"), ""},
		{"none with a reason", "claude", claudeScreen("● needs-decision: none, all is done\n\n✻ Baked for 4s"), ""},
		{"n/a", "claude", claudeScreen("● needs-decision: N/A\n\n✻ Baked for 4s"), ""},
		{"nothing at all", "claude", claudeScreen("● needs-decision:\n\n  Something else.\n\n✻ Baked for 4s"), ""},
		{"an earlier turn's", "claude", claudeScreen("❯ Go on\n\n● needs-decision: Red?\n\n✻ Baked for 4s\n\n❯ Yes\n\n● Done.\n\n✻ Baked for 4s"), ""},
		{"one that was taken back", "claude", claudeScreen("● needs-decision: Red?\n\n  I found it.\n\n  needs-decision: none\n\n✻ Baked for 4s"), ""},
		{"the prompt's", "claude", claudeScreen("❯ Go on\n\n  needs-decision: Red or blue?\n\n● Done.\n\n✻ Baked for 4s"), ""},
		{"the prompt's, its beginning out of view", "claude", claudeScreen("  needs-decision: Red or blue?\n  and wait until I have answered it.\n\n● Done.\n\n✻ Baked for 4s"), told},
		{"the prompt's, its end out of view too", "claude", claudeScreen("  needs-decision: Red or\n  blue?\n\n✻ Baked for 4s"), told},
		{"what is typed in the prompt", "claude", strings.Replace(claudeScreen("● Done.\n\n✻ Baked for 4s"), "❯\u00a0", "❯\u00a0needs-decision: Red?\n  needs-decision: Blue?", 1), ""},
		{"a tool's output", "claude", claudeScreen("● Bash(cat x)\n  ⎿  needs-decision: Red?\n     needs-decision: Blue?\n\n● Done.\n\n✻ Baked for 4s"), ""},
		{"a command's of the person", "claude", claudeScreen("● Done.\n\n! cat x\n  needs-decision: Red?"), ""},
		{"indented code", "claude", claudeScreen("● It says:\n\n      needs-decision: Red?\n\n✻ Baked for 4s"), ""},
		{"a quotation", "claude", claudeScreen("● It says:\n\n  ▎ needs-decision: Red?\n\n✻ Baked for 4s"), ""},
		{"in the middle of a line", "claude", claudeScreen("● I would write needs-decision: Red?\n\n✻ Baked for 4s"), ""},
		{"behind a dialog", "claude", "● needs-decision: Red?\n" + strings.Repeat("─", 60) + "\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n", ""},
		{"codex's prompt", "codex", codexScreen("\n› Go on\n\n  needs-decision: Red?\n\n\n• Done.\n\n  Worked for 4s • 16:29"), ""},
		{"pi's prompt", "pi", piScreen(" needs-decision: Red or blue?\n and wait until I have answered it.\n\n\n Done."), told},
		{"a fenced block of pi's", "pi", piScreen(" Go on\n\n\n It says:\n\n ```\n needs-decision: Red?\n ```"), ""},
		{"a tool's output in pi", "pi", piScreen(" Go on\n\n\n\n $ cat x\n\n needs-decision: Red?\n\n Took 1.0s"), ""},
		{"opencode's prompt", "opencode", opencodeScreen("  ┃\n  ┃  needs-decision: Red?\n  ┃\n\n     Done.\n\n     ▣  Build · mock-1 · 2.0s"), ""},
		{"opencode's earlier turn", "opencode", opencodeScreen("     needs-decision: Red?\n\n     ▣  Build · mock-1 · 2.0s\n\n  ┃\n  ┃  Yes\n  ┃\n\n     Done.\n\n     ▣  Build · mock-1 · 2.0s"), ""},
		{"no session", "claude", "needs-decision: Red?\n", ""},
		{"an unknown client", "vi", claudeScreen("● needs-decision: Red?"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if question, _, ok := Decision(c.agent, c.text, c.prompt); ok {
				t.Errorf("got %q", question)
			}
		})
	}
}

func TestTheRecordedQuestionsAreFound(t *testing.T) {
	for _, c := range corpus(t) {
		question, _, ok := Decision(c.agent, c.text, "")
		want := strings.Contains(c.note, "trap: needs-question") && c.truth == "idle"
		if ok != want && c.truth == "idle" || ok && question != "Shall I keep the empty fields or drop them?" {
			t.Errorf("%s: got %q %v, want %v", c.path, question, ok, want)
		}
	}
}

func TestAQuestionIsReadFromTheAnswerItself(t *testing.T) {
	for answer, want := range map[string]string{
		"needs-decision: Keep them?":                                 "Keep them?",
		"I looked.\n\n**needs-decision:** Keep them?\n\n- yes\n- no": "Keep them? yes no",
		"needs-decision: Keep them, although that is the longest line of all that stand in this answer, as it goes on?\nNothing more.": "Keep them, although that is the longest line of all that stand in this answer, as it goes on?",
		"needs-decision: First?\n\nneeds-decision: Second?":                                                                            "Second?",

		"":                               "",
		"Done.":                          "",
		"needs-decision: none":           "",
		"needs-decision: <question>":     "",
		"> needs-decision: Keep them?":   "",
		"It says needs-decision: Which?": "",
		"```\nneeds-decision: Keep them?\n```\nThat is the form.": "",
		"    needs-decision: Keep them?":                          "",
	} {
		question, options, ok := Asked(answer)
		if got := strings.Join(append([]string{question}, options...), " "); ok != (want != "") || got != want {
			t.Errorf("%q asks %q, want %q", answer, got, want)
		}
	}
}
