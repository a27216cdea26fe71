package wake

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// escapes are terminal control sequences: CSI, then OSC and the other strings up to their terminator or the end of the
// line, then what is left of an escape. Compiled at the first use, so that a hook that prints nothing does not pay.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_][^\x07\x1b\n]*(\x07|\x1b\\)?|\x1b[ -/]*[0-~]?`)
})

// tags are the beginnings of anything that looks like a tag, such as </system-reminder>, or a comment. Any kind of space
// and any mark may stand in it: a model reads over them.
var tags = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<([\s\pZ\pM]*(?:[/!?]?[\s\pZ\pM]*[\pL_]|!-|!\[))`)
})

// Clean makes text of unknown origin safe to print and to show to a model: valid UTF-8 without escape sequences, control
// and invisible format characters; newlines and tabs stay, tags are defused.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.ContainsRune(s, '\x1b') {
		s = escapes().ReplaceAllString(s, "")
	}
	s = strings.Map(visible, s)
	if strings.ContainsRune(s, '<') {
		s = tags().ReplaceAllString(s, "‹$1")
	}
	return s
}

// visible drops characters that show nothing, reorder the line, or steer a terminal; a lone carriage return and the
// Unicode line ends become newlines.
func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\v' || r == '\f' || r == '\u0085':
		return '\n'
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		return -1
	case unicode.Is(unicode.Variation_Selector, r) && r >= 0xE0100, unicode.Is(unicode.Co, r), unicode.Is(unicode.Cs, r):
		return -1
	}
	return r
}

// oneLine is Clean on one line of at most n characters.
func oneLine(s string, n int) string {
	// A title of a megabyte is cut before it is looked at; escape sequences may take much of what is cut off.
	s = cutBytes(s, 16*n+256)
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// cutBytes is s, or its beginning, in at most n bytes, cut between characters.
func cutBytes(s string, n int) string {
	const dots = "…"
	if len(s) <= n {
		return s
	}
	if n <= len(dots) {
		return ""
	}
	n -= len(dots)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + dots
}
