package screen

import (
	"strings"
	"testing"
)

// box is Claude's prompt, 60 columns wide, with what was typed and the lines below it.
func box(typed string, below ...string) string {
	rule := strings.Repeat("─", 60)
	return "\n" + rule + "\n❯\u00a0" + typed + "\n" + rule + "\n" + strings.Join(below, "\n") + "\n"
}

const (
	manual  = "  ⏸ manual mode on · ? for shortcuts"
	working = "  ⏸ manual mode on · esc to interrupt"
	plain   = "  ? for shortcuts · ← for agents"
	summary = "✻ Baked for 4s · done 4:15 PM\n"
	busy    = "◐ Fix the parser"
	calm    = "✳ Fix the parser"
)

func TestClaudeIsReadFromTheBottomUp(t *testing.T) {
	rule := strings.Repeat("─", 60)
	fresh := "\n ▐▛███▛█   Claude Code v2.1.332\n▝▜██████▀  Opus 5.5 · API Usage Billing\n ▝▝   ▝▝   ~/proj\n"
	more := strings.Repeat("─", 40) + " ↑ 12 more " + strings.Repeat("─", 9)
	dialog := rule + "\n Bash command\n\n   make deploy\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel · Tab to amend\n"
	for _, c := range []struct {
		name, text, title string
		want              State
	}{
		{"its own line", "● Hm.\n" + box("", working), "", Working},
		{"its own line, cut", "● Hm.\n" + box("", "  ⏵⏵ accept edits on (shift+tab to cycle) · esc to inter…"), "", Working},
		{"its own line against the title", "● Hm.\n" + box("", working), calm, Working},
		{"a status line that speaks of work", summary + box("", "  esc to interrupt", manual), "", Idle},
		{"a status line of several lines", summary + box("", "  3 shells", "  esc to interrupt · 2 shells", manual), "", Idle},
		{"a status line that speaks of rest, while text streams", "● Hm.\n" + box("", "  ? for shortcuts", "  ← for agents"), "", Unknown},
		{"a spinner", "❯ Go on\n\n✢ Baking…\n" + box("", "  -- INSERT --"), "", Working},
		{"a spinner with a verb from the settings", "❯ Go on\n\n✢ Baked for 4s…\n" + box("", "  -- INSERT --"), "", Working},
		{"a spinner whose verb speaks of agents", "❯ Go on\n\n✻ Waiting for 2 background agents to finish… (4s)\n" + box("", "  -- INSERT --"), "", Working},
		{"a spinner with a tip of two lines", "❯ Go on\n\n✢ Baking…\n  ⎿  Tip: Use /statusline to set up a custom status line\n     that is below\n" + box("", "  -- INSERT --"), "", Working},
		{"a retry", "❯ Go on\n\n✻ API error · Retrying in 1s · attempt 2/10\n" + box("", "  -- INSERT --"), "", Working},
		{"a copy of a spinner in an answer", "● It said:\n\n  ✢ Baking… (4s · esc to interrupt)\n\n" + summary + box("", manual), "", Idle},
		{"a copy of a summary in an answer that streams", "● It said:\n\n  ✻ Baked for 4s\n" + box("", "  -- INSERT --"), "", Unknown},
		{"a copy of a summary as an answer's first line", "● ✻ Baked for 4s\n" + box("", "  -- INSERT --"), "", Unknown},
		{"an old summary", summary + "\n❯ Go on\n" + box("", "  -- INSERT --"), "", Unknown},
		{"an old summary, the title calm", summary + "\n❯ Go on\n" + box("", manual), calm, Idle},
		{"a summary against the title", summary + box("", manual), busy, Background},
		{"a summary, the title of another form", summary + box("", manual), "host: ~/proj", Idle},
		{"nothing, the title of another form", "● Hm.\n" + box("", "  -- INSERT --"), "* Fix the parser", Unknown},
		{"shells in its own line", summary + box("", "  2 shells · ← for agents · ↓ to manage"), calm, Background},
		{"shells, cut", summary + box("", "  ⏵⏵ bypass permissions on (shift+tab to cycle) · 1 she…"), calm, Background},
		{"shells above what a narrow terminal has no room for at the right", summary + box("", "  1 shell · ← for agents", strings.Repeat(" ", 12)+"Not logged in · Run /login"), calm, Background},
		{"what is cut before the shells", "● Hm.\n" + box("", "  ⏵⏵ bypass permissions on (shift+tab to cy…"), calm, Unknown},
		{"shells beside something new", "● Hm.\n" + box("", "  1 shell · ← for agents · a new hint"), calm, Unknown},
		{"shells in a mode of another name", summary + box("", "  ⏵⏵ don't ask on (shift+tab to cycle) · 1 shell, 1 agent"), calm, Background},
		{"a status line alone", summary + box("so", "  main · 3 shells · esc to interrupt"), calm, Idle},
		{"a monitor and a shell", summary + box("", "  ⏸ manual mode on · 2 background tasks · ↓ to manage"), calm, Background},
		{"shells in the summary, text typed", "✻ Baked for 4s · 1 shell still running\n" + box("so", ""), calm, Background},
		{"shells in the summary, text typed above a status line that speaks of rest", "✻ Baked for 4s · 1 shell still running\n" + box("so", "  ? for shortcuts"), calm, Background},
		{"a hint in place of its own line", "❯ Go on\n  ⎿  Interrupted · What should Claude do instead?\n" + box("", "  Press Ctrl-C again to exit"), calm, Unknown},
		{"a hint in place of its own line, below a summary", summary + box("", "  Press Ctrl-C again to exit"), calm, Idle},
		{"no own line above what is typed", "❯ Go on\n  ⎿  Interrupted · What should Claude do instead?\n" + box("so", ""), calm, Unknown},
		{"its own line above what is typed", "❯ Go on\n  ⎿  Interrupted · What should Claude do instead?\n" + box("so", "  ⏸ manual mode on"), calm, Idle},
		{"shells in an old summary that were ended", "✻ Baked for 4s · 1 shell still running\n" + box("", plain), calm, Idle},
		{"agents that wait, without a title", "✻ Waiting for 1 background agent to finish\n" + box("", plain, "", "  ● main", "  ◯ general-purpose  Count  2s"), "", Background},
		{"rows of agents that ended, in 2.1.197", summary + box("", plain, "", "  ● main", "  ◯ general-purpose  Count  2s"), calm, Idle},
		{"the same without a title", summary + box("", plain, "", "  ● main", "  ◯ general-purpose  Count  2s"), "", Unknown},
		{"a running command of the person's", "! make\n  ⎿  Running…\n" + box("", "  -- INSERT --"), "", Unknown},
		{"one that prints an interrupt", "! make\n  ⎿  Interrupted · What should Claude do instead?\n" + box("", "  ← for agents"), "", Unknown},
		{"a running tool against the title", "● Bash(make)\n  ⎿  Running… (4s)\n" + box("", plain), calm, Unknown},
		{"an interrupt", "❯ Go on\n  ⎿  Interrupted · What should Claude do instead?\n" + box("", plain), "", Idle},
		{"an answer that looks like an error, above a status line that 2.1.197 shows alone", "● API Error: 400\n" + box("so", plain), "", Unknown},
		{"an interrupt that an answer holds, in a mode that 2.1.197 shows at work", "● Hm.\n  ⎿  Interrupted · What should Claude do instead?\n" + box("", "  ⏵⏵ accept edits on (shift+tab to cycle) · ← for agents"), "", Unknown},
		{"an interrupt that a tool printed, in vim mode", "● Bash(x)\n  ⎿  Interrupted · What should Claude do instead?\n" + box("", "  -- INSERT --"), "", Unknown},
		{"an interrupt that a tool printed, with a status line", "● Bash(x)\n  ⎿  Interrupted · What should Claude do instead?\n" + box("", "  main *", "  ← for agents"), "", Unknown},
		{"the spinner of reduced motion, or an answer", "❯ Go on\n\n● Baking…\n" + box("", "  -- INSERT --"), "", Unknown},
		{"a new session", " ▐▛███▜▌   Claude Code v2.1.197\n▝▜█████▛▘  Opus 4.8 · API Usage Billing\n  ▘▘ ▝▝    ~/proj\n" + box("", plain), "", Idle},
		{"a new session, asked", " ▐▛███▜▌   Claude Code v2.1.197\n▝▜█████▛▘  Opus 4.8 · API Usage Billing\n  ▘▘ ▝▝    ~/proj\n\n❯ Go on\n" + box("", "  -- INSERT --"), "", Unknown},
		{"a new session with a notice", fresh + "\n▎ Auto mode is now the default\n▎ It checks each call\n" + box("", manual), "", Idle},
		{"a new session whose picture moves", strings.NewReplacer(" ▐▛███▛█", "▛█▄     ", "▝▜██████▀", "██▘      ").Replace(fresh) + box("so", manual), "", Idle},
		{"a new session with a notice at the right", fresh + "\n" + strings.Repeat(" ", 12) + "This notice ends where the terminal does, it is ok" + box("so", manual), "", Idle},
		{"a refused question", "❯ Go on\n\n● User declined to answer questions\n  ⎿  · Which colour? (Red / Blue)\n" + box("", plain), "", Idle},
		{"a copy of a refused question, in vim mode", "● User declined to answer questions\n  ⎿  · Which colour? (Red / Blue)\n" + box("", "  -- INSERT --"), "", Unknown},
		{"a new session in a narrow terminal", "\n           Claude Code v2.1.332\n ▐▛███▛█   Opus 5.5 (1M context)\n·▜██████·  API Usage Billing\n ▝▝   ▝▝   ~/proj\n" + box("", manual), "", Idle},
		{"a copy of a new session in an answer that streams", "  " + strings.ReplaceAll(fresh, "\n", "\n  ") + "\n" + box("", "  -- INSERT --"), "", Unknown},
		{"the words of a new session without the picture", strings.NewReplacer(" ▐▛███▛█", "        ", "▝▜██████▀", "         ", "▝▝   ▝▝", "       ").Replace(fresh) + box("", "  -- INSERT --"), "", Unknown},
		{"a new session with a menu of commands", fresh + "\n  ❯ /copy      Copy the last answer\n    /config    Open settings" + box("/co", manual), "", Idle},
		{"a new session with a menu of files", fresh + "\n    + parse.go\n    + parse_test.go" + box("look at @pa", manual), "", Idle},
		{"a list in an answer that streams", fresh + "\n    + parse.go\n" + box("", "  -- INSERT --"), "", Unknown},
		{"a prompt whose beginning is out of view", "● Hm.\n\n" + more + "\n  and so\n  on\n" + rule + "\n  ⏸ manual mode on\n", calm, Idle},
		{"the same in a session with a name", "● Hm.\n\n" + strings.Replace(more, "───────── ↑", "─ ↑", 1) + "  camp ─\n  and so\n  on\n" + rule + "\n  ⏸ manual mode on · 1 shell\n", calm, Background},
		{"the same while text streams", "● Hm.\n\n" + more + "\n  and so\n  on\n" + rule + "\n  -- INSERT --\n", "", Unknown},
		{"scrolled up", "✻ Baked for 4s\n\n  Line 5 of Jump to bottom (ctrl+End) ↓ er\n" + box("", working), "", Working},
		{"scrolled up to a summary, in vim mode", "● Hm.\n\n✻ Baked for 4s Jump to bottom (ctrl+End) ↓\n" + box("", "  -- INSERT --"), "", Unknown},
		{"scrolled up to a summary, the pill below it", "✻ Baked for 4s\n\n" + strings.Repeat(" ", 25) + "Jump to bottom (ctrl+End) ↓\n" + box("", "  -- INSERT --"), "", Unknown},
		{"scrolled up, away from a dialog", "● Hm.\n  Line 5 of  Waiting for your answer (ctrl+End) ↓ er\n", calm, Blocked},
		{"a dialog", "● Bash(make deploy)\n\n" + dialog, calm, Blocked},
		{"what a server said before a retry", "❯ Go on\n\n✻ Baked for 4s · retrying in 4s · attempt 4/10\n" + box("", "  -- INSERT --"), "", Working},
		{"a dialog without a title", dialog, "", Blocked},
		{"a dialog against the title", dialog, busy, Blocked},
		{"a dialog with a rule inside", rule + "\n\nWhich checks?\n\n❯ [ ] Lint\n  [ ] Race\n" + rule + "\n  Chat about this\n\nEnter to select · Esc to cancel\n", calm, Blocked},
		{"something new below a prompt of the history", strings.Repeat("─", 30) + "\n❯ Go on\n\n● Hm.\n" + rule + "\n  Something new\n", calm, Unknown},
		{"the other frames of a busy title", "● Hm.\n" + box("", "  -- INSERT --"), "◑ Fix the parser", Working},
		{"the frames of 2.1.197", "● Hm.\n" + box("", "  -- INSERT --"), "⠂ Fix the parser", Working},
		{"the other frames of 2.1.197", "● Hm.\n" + box("", "  -- INSERT --"), "⠐ Fix the parser", Working},
		{"a dialog, its keys cut", strings.Replace(dialog, "Esc to cancel · Tab to amend", "↓ 3 more lines", 1), calm, Blocked},
		{"a copy of a dialog in an answer", "● It said:\n\n   ❯ 1. Yes\n     2. No\n\n   Esc to cancel\n\n" + summary + box("", manual), calm, Idle},
		{"a copy of a dialog that is typed", summary + box("1. Yes\n  2. No\n\n  Esc to cancel", ""), calm, Idle},
		{"the transcript", "❯ Go on\n\n● Hm.\n\n" + rule + "\n  Showing detailed transcript · ctrl+o to toggle\n", calm, Unknown},
		{"the transcript at work", "❯ Go on\n\n● Hm.\n\n" + rule + "\n  working · Showing detailed transcript · ctrl+o to toggle\n", "", Working},
		{"the transcript before a dialog", "❯ Go on\n\n" + rule + "\n  dialog waiting · Showing detailed transcript · ctrl+o to …\n", calm, Blocked},
		{"the same, wrapped", "❯ Go on\n\n" + rule + "\n  dialog waiting · Showing       verbose\n  detailed transcript · ctrl+o to\n  toggle · ctrl+e to show all\n", calm, Blocked},
		{"the words of a transcript without its rule", "● Hm.\n\n  dialog waiting · Showing detailed transcript\n", calm, Unknown},
		{"a dialog without options", "● Hm.\n\n" + rule + "\n  Auto mode can't check actions in this session\n\n  Your requests go through a gateway.\n\n  Enter to stay in auto mode · shift+Tab to leave it and\n  stop · Esc to cancel\n", calm, Blocked},
		{"a side question at work", "❯ Go on\n\n✢ Baking… (5s)\n  ⎿  Tip: Start small\n" + strings.ReplaceAll(rule, "─", "▔") + "\n  /btw what is this?\n\n    ✻ Answering…\n\n  Esc to close\n", "", Working},
		{"a side question while text streams", "❯ Go on\n\n● Hm.\n" + strings.ReplaceAll(rule, "─", "▔") + "\n  /btw what is this?\n\n  Esc to close\n", busy, Working},
		{"the words of one below something else", "● Hm.\n\n  Esc to cancel\n", calm, Unknown},
		{"the transcript, the title busy", "● Hm.\n" + rule + "\n  Showing detailed transcript · ctrl+o to toggle\n", busy, Working},
		{"a rule that names the session", summary + strings.Replace(box("", manual), strings.Repeat("─", 60), strings.Repeat("─", 50)+" camp-7 ──", 1), "", Idle},
		{"a shell after the client's end", summary + box("", manual, "", "user@host:~/proj$"), calm, Unknown},
		{"a menu under the prompt", summary + box("/co", "/copy     Copy the last answer", "/config   Open settings"), calm, Idle},
		{"an empty pane", "\n\n\n", calm, Unknown},
		{"no text, the title busy", "", busy, Working},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := Read("claude", c.text, c.title); r.State != c.want {
				t.Errorf("got %+v, want %s", r, c.want)
			}
		})
	}
}

func TestAWideTerminalWithAPanelIsReadToo(t *testing.T) {
	rows := []string{"❯ Edit it", "", "● Update(parse.go)", "  ⎿  Added 2 lines", "     数える = 1", "", "✻ Baked for 4s · done 4:15 PM", ""}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(row + strings.Repeat(" ", 120-width(row)) + "│ parse.go  │ +2 -1\n")
	}
	rule := strings.Repeat("─", 200)
	text := b.String() + rule + "\n❯\u00a0\n" + rule + "\n" + manual + "\n"
	if r := Read("claude", text, ""); r.State != Idle || r.Evidence != "✻ Baked for 4s · done 4:15 PM" {
		t.Errorf("got %+v", r)
	}
	text = strings.Replace(text, "✻ Baked for 4s · done 4:15 PM", "✻ Baking…                    ", 1)
	if r := Read("claude", text, calm); r.State != Working {
		t.Errorf("got %+v", r)
	}
}

func TestCodexIsReadFromTheBottomUp(t *testing.T) {
	const end = "\n  Worked for 4s • 16:29"
	own := "Fix it | proj"
	for _, c := range []struct {
		name, text, title string
		want              State
	}{
		{"a summary and its own title", codexScreen("• Done.\n" + end), own, Idle},
		{"a summary, or an answer that ends like one", codexScreen("• Done.\n" + end), "", Unknown},
		{"a summary and a busy title", codexScreen("• Done.\n" + end), "⠙ " + own, Working},
		{"its own title while nothing says anything", codexScreen("› Go on\n\n\n• Hm."), own, Idle},
		{"another title while text streams", codexScreen("› Go on\n\n\n• Hm."), "somehost", Unknown},
		{"no title while text streams", codexScreen("› Go on\n\n\n• Hm."), "", Unknown},
		{"the working line", codexScreen("› Go on\n\n\n◦ Working (5s • esc to interrupt)"), "", Working},
		{"the working line, its word replaced and cut", codexScreen("› Go on\n\n\n• Considering what the parser should do with (1m 5s • e…"), "", Working},
		{"the working line above messages that wait", codexScreen("› Go on\n\n\n◦ Working (5s • esc to interrupt)\n\n• Messages to be submitted after next tool call (press\n  esc to interrupt)\n  ↳ more"), "", Working},
		{"a copy of the working line as an answer", codexScreen("• Working (5s • esc to interrupt)"), own, Unknown},
		{"a copy of the working line in an answer", codexScreen("• It said:\n\n  ◦ Working (5s • esc to interrupt)\n" + end), own, Idle},
		{"the title of a host that is called like the directory", codexScreen("› Go on\n\n\n• Hm."), "proj", Unknown},
		{"a prompt that waits for the start", "\n  >_ OpenAI Codex (v0.171.0)\n\n\n› Go on\n\n  gpt-5.2-codex default · ~/proj\n  Waiting for startup  · esc cancel\n", "proj", Working},
		{"the same words, typed", "\n  >_ OpenAI Codex (v0.171.0)\n\n\n› Go on\n  Waiting for startup · esc cancel\n\n  gpt-5.2-codex default · ~/proj\n  ? for shortcuts\n", "proj", Idle},
		{"a terminal that runs on, its line wrapped", codexScreen("• Done.\n" + end + "\n\n\n  1 background terminal running ·\n/ps to view"), own, Background},
		{"a terminal that runs on", codexScreen("• Done.\n" + end + "\n\n  1 background terminal running · /ps to view"), own, Background},
		{"an interrupt", codexScreen("› Go on\n\n\n■ Conversation interrupted"), "", Idle},
		{"an error of the server", codexScreen("› Go on\n\n\n■ {\"error\":{\"message\":\"no\"}}"), "", Idle},
		{"a command that is refused while text streams", codexScreen("› Go on\n\n\n• Hm.\n\n■ '/compact' is disabled while a task is in progress."), "", Unknown},
		{"a copy of an interrupt", codexScreen("› Go on\n\n\n• Hm.\n\n  ■ Conversation interrupted"), "", Unknown},
		{"between two turns of a goal", strings.Replace(codexScreen("• Done.\n"+end), "shortcuts        ", "shortcuts  Pursuing goal (4s) · ", 1), own, Background},
		{"a side conversation at rest", strings.Replace(codexScreen("• Done.\n"+end), "← for agents · ? for shortcuts", "Side from main thread · ^/ to switch", 1), own, Unknown},
		{"the same, its lines cut", " Fix it   ×       +\n" + codexScreen("• Done.\n"+end), own, Unknown},
		{"the same, its hint replaced", strings.Replace(codexScreen("• Done.\n"+end), "· Fix it   ", "· Fix it · Agent", 1), own, Unknown},
		{"a side conversation at work", " Fix it   ×       +\n" + codexScreen("› Go on\n\n\n◦ Working (5s • esc to interrupt)"), "", Working},
		{"a new session", codexScreen("\n  >_ OpenAI Codex (v0.171.0)\n     ~/proj\n  permissions: YOLO mode\n\n      ⣀⣤⣤⣤\n"), "", Idle},
		{"a card on top, text that streams below", codexScreen("\n  >_ OpenAI Codex (v0.171.0)\n     ~/proj\n\n  and so it goes on"), "", Unknown},
		{"a card of another form", codexScreen("\n  >_ OpenAI Codex (v0.171.0)\n\n  Model:  gpt-5.2-codex\n"), "", Unknown},
		{"an approval, by the title", codexScreen("• Hm."), "[ ! ] Action Required | proj", Blocked},
		{"an approval, by the title's other frame", codexScreen("• Hm."), "[ . ] Action Required | proj", Blocked},
		{"a dialog", "  Would you like to run the following command?\n\n  $ make\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n\n  Press enter to confirm or esc to cancel\n", own, Blocked},
		{"a question", "  Which one?\n\n  › 1. CSV\n    2. TSV\n\n  enter to submit answer | esc to interrupt\n", "", Blocked},
		{"a shell", "To resume, run codex resume\n$\n", own, Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := Read("codex", c.text, c.title); r.State != c.want {
				t.Errorf("got %+v, want %s", r, c.want)
			}
		})
	}
}

func TestPiIsReadFromItsUpperRule(t *testing.T) {
	rule := strings.Repeat("─", 60)
	input := func(top, typed string) string {
		return top + "\n" + typed + "\n" + rule + "\n~/proj (main) • a name\n↑17k R2k ?/100k (auto)           mock-1 • medium\n"
	}
	label := func(text string) string { return "── " + text + " " + strings.Repeat("─", 60-4-width(text)) }
	for _, c := range []struct {
		name, text string
		want       State
	}{
		{"a plain rule", " Done.\n\n" + input(rule, ""), Idle},
		{"a spinner", " Done.\n\n" + input(label("⠼ Working"), ""), Working},
		{"a retry", " Done.\n\n" + input(label("⠼ Retrying (2/3) in 4s... (escape to cancel)"), ""), Working},
		{"a spinner and more text than fits", " Done.\n\n" + input("── ⠼ Working "+strings.Repeat("─", 16)+" ↑ 3 more "+strings.Repeat("─", 21), "so"), Working},
		{"the spinner of a narrow terminal", " Done.\n\n" + input("───⠼"+strings.Repeat("─", 56), ""), Working},
		{"more text than fits", " Done.\n\n" + input(strings.Repeat("─", 25)+" ↑ 3 more "+strings.Repeat("─", 25), "so"), Idle},
		{"a label of another form", " Done.\n\n" + input(label("Musing"), ""), Unknown},
		{"a typed rule under a spinner", input(label("⠼ Working"), rule+"\nso"), Working},
		{"a copy of a spinner in an answer", " It said:\n\n ── ⠼ Working ──────────\n\n" + input(rule, ""), Idle},
		{"a copy of a command's spinner in an answer", " It said:\n\n ⠧ Running... (escape to cancel)\n\n" + input(rule, ""), Idle},
		{"a copy of it above a line more", " It said:\n\n ⠧ Running... (escape to cancel)\n and that was all.\n\n" + input(rule, ""), Idle},
		{"a command of the person's", rule + "\n $ make\n\n ⠧ Running... (escape/ctrl+c to cancel)\n" + rule + "\n\n" + input(rule, ""), Working},
		{"a command that has ended", rule + "\n $ make\n" + rule + "\n\n" + input(rule, ""), Idle},
		{"a spinner above another input", " Hm.\n\n ⠧ Working\n" + input(rule, ""), Working},
		{"a dialog of an extension", input(rule, "\n Run make deploy?\n\n → Yes\n   No\n\n ↑↓ navigate  enter select  escape cancel\n"), Blocked},
		{"the trust dialog", rule + "\n\n Trust project folder?\n /home/u/proj\n\n → Yes\n   No\n\n ↑↓ navigate  enter select  escape cancel\n\n" + rule + "\n", Blocked},
		{"a pane too low to show more than the input", "\n" + input(rule, ""), Unknown},
		{"a shell after its end", " Done.\n\n" + input(rule, "") + "$ ls\n" + rule + "\n", Unknown},
		{"nothing", "", Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := Read("pi", c.text, "π - proj"); r.State != c.want {
				t.Errorf("got %+v, want %s", r, c.want)
			}
		})
	}
}

func TestOpenCodeIsReadFromItsStatusLine(t *testing.T) {
	ended := "     Done.\n\n     ▣  Build · mock-1 · 2.0s"
	status := func(line string) string {
		return strings.Replace(opencodeScreen(ended), "   /home/u/proj             1.3K (1%)", line, 1)
	}
	for _, c := range []struct {
		name, text string
		want       State
	}{
		{"the directory", opencodeScreen(ended), Idle},
		{"moving cells", status("   ⬝⬝■■■■■■  esc interrupt   1.3K (1%)"), Working},
		{"cells at rest", status("   ⬝⬝⬝⬝⬝⬝⬝⬝  esc again to interrupt   1.3K (1%)"), Working},
		{"moving cells, the rest cut", status("   ⬝⬝■■■■■■  esc inte"), Working},
		{"a retry", status("   ⬝⬝■■⬝⬝⬝⬝  Overloaded [retrying in 6s attempt #3]  esc interrupt"), Working},
		{"no animation", status("   [⋯]  esc interrupt   1.3K (1%)"), Working},
		{"something else", status("   Saving the session          1.3K (1%)"), Unknown},
		{"a copy of the cells in an answer", opencodeScreen("     It said:\n\n     ⬝⬝■■■■■■  esc interrupt\n\n" + ended), Idle},
		{"a message that nothing answers yet", opencodeScreen("  ┃\n  ┃  Go on\n  ┃"), Unknown},
		{"a sidebar", strings.ReplaceAll(opencodeScreen(ended), "\n", strings.Repeat(" ", 20)+"Context\n"), Idle},
		{"a permission", ended + "\n\n  ┃\n  ┃  △ Permission required\n  ┃    $ make\n  ┃\n  ┃   Allow once   Allow always   Reject   ⇆ sel\n  ┃\n", Blocked},
		{"a permission below a copy of the input", "     It is:\n\n     ┃\n     ╹▀▀▀▀▀▀▀▀\n        /home/u/proj\n\n  ┃\n  ┃  △ Permission required\n  ┃    $ make\n  ┃\n  ┃   Allow once   Allow always   Reject   ⇆ sel\n  ┃\n", Blocked},
		{"a copy of a permission", opencodeScreen("     △ Permission required\n\n" + ended), Idle},
		{"a shell", ended + "\n$ \n", Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := Read("opencode", c.text, "OC | Fix it"); r.State != c.want {
				t.Errorf("got %+v, want %s", r, c.want)
			}
		})
	}
}

func TestAnUnknownClientProvesNothing(t *testing.T) {
	if r := Read("vi", summary+box("", manual), calm); r.State != Unknown {
		t.Errorf("got %+v", r)
	}
}

// A title that is nobody's, or gone, must not make an end of what goes on.
func TestOtherTitlesMakeNoScreenIdle(t *testing.T) {
	for _, c := range corpus(t) {
		if c.truth == "idle" || c.truth == "exited" {
			continue
		}
		for _, title := range []string{"", "host", "user@host: ~/proj", "(none yet: host name)", "* Fix the parser", "> Fix the parser", "proj: vim", "✻ Baked", "\x1b]0;✳\a", "\xff\x00"} {
			if r := Read(c.agent, c.text, title); r.State == Idle {
				t.Errorf("%s, title %q: idle by %s %q", c.path, title, r.By, r.Evidence)
			}
		}
	}
}

// The same screen may come with colours, padded, with other line ends, or with its upper part missing.
func TestTheFormOfTheTextMakesNoDifference(t *testing.T) {
	for _, c := range corpus(t) {
		want := Read(c.agent, c.text, c.title)
		forms := map[string]string{
			"crlf":     strings.ReplaceAll(c.text, "\n", "\r\n"),
			"coloured": "\x1b[2J" + strings.ReplaceAll(c.text, "\n", "\x1b[0m\n\x1b[38;5;246m") + "\x1b[0m",
			"titled":   "\x1b]0;⠂ x\a" + c.text,
			"padded":   strings.ReplaceAll(c.text, "\n", "     \n"),
			"blank":    c.text + strings.Repeat("\n", 50),
			"spaces":   strings.ReplaceAll(c.text, "\u00a0", " "),
			"no end":   strings.TrimRight(c.text, "\n"),
			"history":  strings.Repeat("  a line of the history\n", 3000) + "\n" + c.text,
		}
		for name, text := range forms {
			got := Read(c.agent, text, c.title)
			// Above a new session and a scrolled one there is nothing: a history makes them another screen.
			if got != want && (name != "history" || got.State == Idle && want.State != Idle) {
				t.Errorf("%s, %s: %+v, else %+v", c.path, name, got, want)
			}
		}
	}
}

// A pane that is lower shows less of the conversation; a read in the middle of drawing may end early.
func TestAPartOfAScreenIsNotIdleUnlessAllOfItIs(t *testing.T) {
	for _, c := range corpus(t) {
		if c.truth == "idle" || c.truth == "exited" {
			continue
		}
		lines := strings.Split(strings.TrimRight(c.text, "\n"), "\n")
		for i := range lines {
			for _, title := range []string{"", c.title} {
				if r := Read(c.agent, strings.Join(lines[i:], "\n"), title); r.State == Idle {
					t.Errorf("%s without its first %d lines, title %q: idle by %s %q", c.path, i, title, r.By, r.Evidence)
				}
			}
		}
	}
}

// A terminal that is made narrower wraps what the client has drawn, until the client draws again.
func TestAScreenThatATerminalHasWrappedIsNotIdleUnlessItWas(t *testing.T) {
	for _, c := range corpus(t) {
		if c.truth != "working" && c.truth != "blocked" {
			continue
		}
		lines := strings.Split(c.text, "\n")
		for columns := widest(lines) - 1; columns >= 30; columns -= 7 {
			var wrapped []string
			for _, line := range lines {
				for width(line) > columns {
					head := firstColumns(line, columns)
					wrapped, line = append(wrapped, head), line[len(head):]
				}
				wrapped = append(wrapped, line)
			}
			for _, title := range []string{"", c.title} {
				if r := Read(c.agent, strings.Join(wrapped, "\n"), title); r.State == Idle {
					t.Errorf("%s at %d columns, title %q: idle by %s %q", c.path, columns, title, r.By, r.Evidence)
				}
			}
		}
	}
}

func TestRunningNeedsNoTitle(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{"● Hm.\n" + box("", working), "⏸ manual mode on · esc to interrupt"},
		{"✻ Baked for 4s · 1 shell still running\n" + box("", ""), "✻ Baked for 4s · 1 shell still running"},
		{summary + box("", manual), ""},
	} {
		evidence, running := Running("claude", c.text)
		if running != (c.want != "") || running && evidence != c.want {
			t.Errorf("got %q %v, want %q", evidence, running, c.want)
		}
	}
}

func TestTheEvidenceIsCleanAndShort(t *testing.T) {
	r := Read("claude", "", "◐ \x1b[31m"+strings.Repeat("long\u202e ", 1000))
	if r.State != Working || len([]rune(r.Evidence)) > evidenceCap || strings.ContainsAny(r.Evidence, "\x1b\u202e") {
		t.Errorf("got %+v", r)
	}
}
