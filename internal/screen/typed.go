package screen

import (
	"strings"
	"unicode/utf8"
)

// Typed is the text that stands in a client's prompt and was not sent: what a person began to type, or a prompt that an
// Esc before the first word of its answer has put back. Clients also show there what they suggest, in faint letters: so
// it is proven to be typed only by a text with its colours, as escape sequences. Nothing is typed where the prompt is not
// found, which is so in every client but Claude Code.
func Typed(agent, text string) (typed string, proven bool) {
	if agent != "claude" || strings.Count(text, "\n") > linesUp {
		return "", false
	}
	strong, styled := withoutFaint(text)
	typed = claudeTyped(read(text), read(strong))
	return capped(typed, evidenceCap), styled && typed != ""
}

// claudeTyped is what stands in the box; strong is the same screen without what is suggested.
func claudeTyped(s, strong pane) string {
	box, ok := findClaudeBox(s)
	if !ok || readClaudeOwn(s, box).shortcuts { // that hint goes with the first letter
		return ""
	}
	lines := strong[min(box.top+1, len(strong)):min(box.bottom, len(strong))]
	return strings.TrimSpace(strings.TrimPrefix(strings.Join(strings.Fields(strings.Join(lines, " ")), " "), "❯"))
}

// withoutFaint is a text with blanks for its faint letters, and for those under a cursor that is drawn; styled says whether
// there was any style.
func withoutFaint(text string) (strong string, styled bool) {
	var b strings.Builder
	var now style
	for text != "" {
		if text[0] == 0x1b {
			sequence := text[:escape(text)]
			if params, ok := strings.CutSuffix(sequence, "m"); ok && strings.HasPrefix(params, "\x1b[") {
				now.change(params[2:])
				styled = true
			}
			text = text[len(sequence):]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		if text = text[size:]; r != '\n' && (now.faint || now.reverse) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String(), styled
}

// style is how a terminal draws letters, as far as it matters here.
type style struct{ faint, reverse bool }

// change applies the parameters of an SGR sequence.
func (s *style) change(params string) {
	all := strings.Split(params, ";")
	for i := 0; i < len(all); i++ {
		switch all[i] {
		case "", "0":
			*s = style{}
		case "2":
			s.faint = true
		case "22":
			s.faint = false
		case "7":
			s.reverse = true
		case "27":
			s.reverse = false
		case "38", "48", "58": // a colour, whose numbers are no styles
			if i+1 < len(all) && all[i+1] == "2" {
				i += 4
			} else {
				i += 2
			}
		}
	}
}
