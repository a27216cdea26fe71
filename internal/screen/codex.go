package screen

import (
	"path"
	"strings"
	"unicode/utf8"
)

// Codex draws, from the bottom up: status lines, the prompt `› …` at the left edge, above it what runs and which
// messages wait, then the conversation. A dialog or the transcript takes the place of the prompt and the status lines.
// The screen shows nothing of a turn whose text streams, so without a title an idle session has to show its end.

var (
	codexTimer   = pattern(`^[•◦] .*\((\d+h )?(\d+m )?\d+s( •|…|$)`)
	codexSummary = pattern(`^  Worked for (<1s|(\d+h ?)?(\d+m ?)?(\d+s)?) • \d\d?:\d\d( [AP]M)?$`)
	codexTasks   = pattern(`^ {0,2}\d+ background termi(nals? running|\S*…$)`)
	codexWaiting = pattern(`^• (Messages to be submitted|Queued )`)
	codexQueued  = pattern(`^  Waiting for startup( |$)`) // the prompt was sent, nothing runs it yet
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
	if _, status := paragraph(s[prompt+1:]); len(status) > 0 && codexQueued().MatchString(status[len(status)-1]) {
		return because(Working, "own line", status[len(status)-1])
	}
	calm := codexOwnTitle(s[prompt:], title)
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
	case len(end) == 1 && codexTasks().MatchString(last):
		return because(Background, "own line", last)
	case calm:
		return because(Idle, "title", title)
	case len(end) == 1 && codexSummary().MatchString(last):
		return because(Idle, "summary", last)
	case strings.HasPrefix(end[0], "■ "):
		return because(Idle, "interrupted", end[0])
	case codexIsFresh(s[:prompt]):
		return because(Idle, "new session", strings.TrimSpace(s[prompt]))
	}
	return because(Unknown, "", "")
}

// codexIsFresh says whether only the client's name and picture are above the prompt: nothing stands at the left edge.
func codexIsFresh(above []string) bool {
	named := false
	for _, line := range above {
		if line != "" && indent(line) == 0 {
			return false
		}
		if !named && line != "" {
			if named = strings.HasPrefix(line, "  >_ OpenAI Codex (v"); !named {
				return false
			}
		}
	}
	return named
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
// of the directory that a status line has. Any other title is the terminal's and says nothing.
func codexOwnTitle(below []string, title string) bool {
	_, status := paragraph(below)
	for _, line := range status {
		for segment := range strings.SplitSeq(line, " · ") {
			segment = strings.TrimSpace(segment)
			if !strings.HasPrefix(segment, "~") && !strings.HasPrefix(segment, "/") {
				continue
			}
			if name := path.Base(segment); name == title || strings.HasSuffix(title, " | "+name) {
				return true
			}
		}
	}
	return false
}
