package run

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"vx/internal/wake"
)

// The bounds of what is kept of the output.
const (
	maxLine   = 4 << 10 // bytes of a line that are kept, the last ones
	maxShown  = 200     // characters of a line in the wake
	maxDetail = 8 << 10 // bytes of all lines in the wake
)

// tail keeps the last lines of one or more streams, in the order in which they were completed.
type tail struct {
	mu    sync.Mutex
	ring  [][]byte // reused, so that gigabytes of output cost no garbage
	next  int
	parts []*lines
}

func newTail(n int) *tail { return &tail{ring: make([][]byte, max(0, n))} }

// stream is one more stream that is kept.
func (t *tail) stream() *lines {
	l := &lines{to: t}
	t.parts = append(t.parts, l)
	return l
}

// add keeps a line that is not blank.
func (t *tail) add(line []byte) {
	if len(t.ring) == 0 || len(bytes.TrimSpace(line)) == 0 {
		return
	}
	t.ring[t.next] = append(t.ring[t.next][:0], line...)
	t.next = (t.next + 1) % len(t.ring)
}

// text is the last lines as a person saw them, oldest first, without escape sequences and what was overwritten.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var newest [][]byte
	for _, l := range t.parts {
		newest = append(newest, l.part)
	}
	for i := range t.ring {
		newest = append(newest, t.ring[(t.next+len(t.ring)-1-i)%len(t.ring)])
	}
	var all []string
	room := maxDetail
	for _, raw := range newest {
		line := shown(raw)
		if room -= len(line); room < 0 || len(all) == len(t.ring) {
			break
		}
		if line != "" {
			all = append(all, line)
		}
	}
	slices.Reverse(all)
	return strings.Join(all, "\n")
}

// shown is a line as it stood on the screen at its end.
func shown(raw []byte) string {
	raw = bytes.TrimRight(raw, "\r")
	if i := bytes.LastIndexByte(raw, '\r'); i >= 0 {
		raw = raw[i+1:]
	}
	var kept []byte
	for _, b := range raw {
		if b != '\b' {
			kept = append(kept, b)
		} else if len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
	}
	line := strings.ReplaceAll(wake.Clean(string(kept)), "\n", " ")
	line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " ")
	if r := []rune(line); len(r) > maxShown {
		return string(r[:maxShown-1]) + "…"
	}
	return line
}

// lines cuts one stream into lines.
type lines struct {
	to   *tail
	part []byte // the line that has not ended
}

func (l *lines) Write(p []byte) (int, error) {
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	for rest := p; ; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		l.append(line)
		if !ended {
			return len(p), nil
		}
		l.to.add(l.part)
		l.part, rest = l.part[:0], after
	}
}

// append adds to the line, of which the end is what counts: a progress bar rewrites it for hours.
func (l *lines) append(p []byte) {
	l.part = append(l.part, p[max(0, len(p)-maxLine):]...)
	if len(l.part) > 2*maxLine {
		l.part = append(l.part[:0], l.part[len(l.part)-maxLine:]...)
	}
}
