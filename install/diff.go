package install

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

// Diff shows the changes of files as a unified diff. It is for a terminal: what could steer one is written as an escape.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, e := range p.Edits {
		from, to, data := e.Shown, e.Shown, string(e.New)
		if e.Makes {
			from = "/dev/null"
		}
		if e.Removes {
			to, data = "/dev/null", ""
		}
		b.WriteString(visible(udiff.Unified(from, to, string(e.Old), data)))
	}
	return b.String()
}

// visible keeps lines and tabs. JSON has no raw control characters, but it may have others that move the cursor or turn
// the writing direction; the carriage returns of a CRLF file are on every line and tell nothing.
func visible(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
