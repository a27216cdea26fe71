package install

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

// Diff shows the changes of files as a unified diff; of an extension, which is all vx's own and long, only where they are if
// not the whole is asked for. It is for a terminal: what could steer one is written as an escape.
func (p *Plan) Diff(whole bool) string {
	var b strings.Builder
	for _, e := range p.Edits {
		from, to, data := e.Shown, e.Shown, string(e.New)
		if e.Makes {
			from = "/dev/null"
		}
		if e.Removes {
			to, data = "/dev/null", ""
		}
		before, after := excerpt(string(e.Old), data)
		for line := range strings.Lines(udiff.Unified(from, to, before, after)) {
			b.WriteString(visible(clipLine(line)))
		}
	}
	for _, x := range p.Extensions {
		from, to := x.Shown, x.Shown
		if x.Old == nil {
			from = "/dev/null"
		}
		if x.New == nil {
			to = "/dev/null"
		}
		if !whole {
			text := x.New
			if text == nil {
				text = x.Old
			}
			fmt.Fprintf(&b, "--- %s\n+++ %s\n(%d lines of vx's own, which --dry-run shows)\n", visible(from), visible(to), bytes.Count(text, []byte("\n")))
			continue
		}
		for line := range strings.Lines(udiff.Unified(from, to, string(x.Old), string(x.New))) {
			b.WriteString(visible(clipLine(line)))
		}
	}
	return b.String()
}

// A line longer than longest is not read by anybody. Of one that changes, as in a file on one line, margin bytes are shown
// on either side of the change.
const (
	longest = 2000
	margin  = 100
)

// excerpt leaves out what two texts have in common on the lines where they begin and end to differ, if that is long.
func excerpt(old, new string) (string, string) {
	start, end := 0, 0
	for start < min(len(old), len(new)) && old[start] == new[start] {
		start++
	}
	for end < min(len(old), len(new))-start && old[len(old)-1-end] == new[len(new)-1-end] {
		end++
	}
	head, tail := old[:start], old[len(old)-end:]
	old, new = old[start:len(old)-end], new[start:len(new)-end]
	if line := strings.LastIndexByte(head, '\n') + 1; len(head)-line > longest {
		head = head[:line] + "…" + strings.ToValidUTF8(head[len(head)-margin:], "")
	}
	if line := strings.IndexByte(tail+"\n", '\n'); line > longest {
		tail = strings.ToValidUTF8(tail[:margin], "") + "…" + tail[line:]
	}
	return head + old + tail, head + new + tail
}

func clipLine(line string) string {
	if len(line) <= longest {
		return line
	}
	return strings.ToValidUTF8(line[:longest], "") + "…\n"
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
