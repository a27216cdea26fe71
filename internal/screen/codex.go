package screen

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Codex draws, from the bottom up: status lines, the prompt `› …` at the left edge, above it what runs and which
// messages wait, then the conversation. A dialog or the transcript takes the place of the prompt and the status lines.
// The conversation is indented by two, but for the first line of each block: no text that a model prints begins a line
// at the left edge.
//
// Nothing tells of a turn whose text streams, and the summary of one that is over, `  Worked for 4s • 16:29`, stands
// where the text's next paragraph would: an answer that has come to such a line and a session at rest are the same
// screen, to the last character. So without a title the summary proves nothing; what is at the left edge does.

var (
	codexTimer   = pattern(`^[•◦] .*\((\d+h )?(\d+m )?\d+s( •|…|$)`)
	codexHalted  = pattern(`^■ (Conversation interrupted\b|\{")`) // other complaints are about a command that was typed at work
	codexTasks   = pattern(`^ {0,2}\d+ background termi(nals? running|\S*…$)`)
	codexWaiting = pattern(`^• (Messages to be submitted|Queued )`)
	codexName    = pattern(`^  >_ OpenAI Codex \(v`)
	codexPlace   = pattern(`^     [~/]`)
	codexQueued  = pattern(`^  Waiting for startup( |$)`) // the prompt was sent, nothing runs it yet
	codexGoal    = pattern(`(^|  |· )Pursuing goal \(\d`) // the next turn begins by itself
	codexSide    = pattern(`· Agent$|(^ *|· )Side from `)
	codexTabs    = pattern(`^ \S.* ×.* \+$`)
	codexFooter  = pattern(`(?i)\benter (to )?[a-z]+\b.*\besc\b`)
)

func codex(s pane, title string) Reading {
	glyph, rest, ok := strings.Cut(title, " ")
	if ok && isBraille(glyph) && utf8.RuneCountInString(glyph) == 1 {
		return because(Working, "title", title)
	}
	if glyph == "[" && (strings.HasPrefix(rest, "! ] ") || strings.HasPrefix(rest, ". ] ")) {
		return because(Blocked, "title", title)
	}
	if _, last := paragraph(s); codexFooter().MatchString(joined(last)) && codexMarked(s) != "" {
		return because(Blocked, "dialog", codexMarked(s))
	}
	prompt, ok := codexPrompt(s)
	if !ok {
		return because(Unknown, "", "")
	}
	own := ""
	if _, status := paragraph(s[prompt+1:]); len(status) > 0 {
		own = status[len(status)-1]
	}
	if codexQueued().MatchString(own) {
		return because(Working, "own line", own)
	}
	calm := codexOwnTitle(s[prompt:], title)
	aside := codexIsAside(s, s[prompt+1:])
	start, end := paragraph(s[:prompt])
	if len(end) > 0 && codexWaiting().MatchString(end[0]) {
		_, end = paragraph(s[:start])
	}
	if len(end) == 0 {
		return because(Unknown, "", "") // a pane too low to show more than the prompt
	}
	last := end[len(end)-1]
	switch {
	case strings.HasPrefix(last, "◦ "), codexTimer().MatchString(end[0]) && !calm:
		return because(Working, "spinner", last)
	case codexTimer().MatchString(end[0]): // or an answer that looks so
		return because(Unknown, "", "")
	case len(end) <= 2 && codexTasks().MatchString(end[0]): // two while a terminal that was made narrower wraps it
		return because(Background, "own line", end[0])
	case codexGoal().MatchString(own):
		return because(Background, "own line", own)
	case aside:
		return because(Unknown, "", "")
	case calm:
		return because(Idle, "title", title)
	case codexHalted().MatchString(end[0]):
		return because(Idle, "interrupted", end[0])
	case codexIsFresh(s[:prompt]):
		return because(Idle, "new session", strings.TrimSpace(s[prompt]))
	}
	return because(Unknown, "", "")
}

// codexIsFresh says whether only the client's name, its directory and its picture are above the prompt. A conversation
// has a prompt at the left edge, which stays in the first line when it is scrolled; a command may take its place with a
// card that begins like a new session, and text may go on below.
func codexIsFresh(above []string) bool {
	above = slices.DeleteFunc(slices.Clone(above), func(line string) bool { return line == "" })
	if len(above) < 2 || !codexName().MatchString(above[0]) || !codexPlace().MatchString(above[1]) {
		return false
	}
	return !slices.ContainsFunc(above[2:], func(line string) bool {
		return !strings.HasPrefix(line, "  permissions: ") && (indent(line) < 2 || strings.ContainsFunc(line, isNoPicture))
	})
}

// codexIsAside says whether a side conversation is shown: title and screen are its own, and say nothing of the turn that
// may run in the main one.
func codexIsAside(s pane, below []string) bool {
	_, status := paragraph(below)
	return codexTabs().MatchString(s[0]) || slices.ContainsFunc(status, codexSide().MatchString)
}

// codexPrompt is the line of the live prompt: nothing is below it but what was typed, a menu and the status lines.
func codexPrompt(s pane) (int, bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if strings.HasPrefix(s[i], "›") {
			return i, true
		}
		if s[i] != "" && indent(s[i]) < 2 {
			break
		}
	}
	return 0, false
}

// codexMarked is the marked option of a dialog.
func codexMarked(s pane) string {
	for i := len(s) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(s[i]); strings.HasPrefix(line, "› ") {
			return line
		}
	}
	return ""
}

// codexOwnTitle says whether a title without a sign is Codex's own, which says that no turn runs: it ends with the name
// of the directory that a status line has, and is no more than that only before the conversation has a name, which
// comes next there. Any other title is the terminal's, as that of a host which is called like the directory, and says
// nothing.
func codexOwnTitle(below []string, title string) bool {
	_, status := paragraph(below)
	for _, line := range status {
		segments := strings.Split(line, " · ")
		for i, segment := range segments {
			segment = strings.TrimSpace(segment)
			if !strings.HasPrefix(segment, "~") && !strings.HasPrefix(segment, "/") {
				continue
			}
			name := path.Base(segment)
			if strings.HasSuffix(title, " | "+name) || title == name && i == len(segments)-1 {
				return true
			}
		}
	}
	return false
}
