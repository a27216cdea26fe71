package herdr

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

const (
	maxLine  = 16 << 20 // 40,000 agents; whatever sends more is no herdr
	firstBuf = 16 << 10
	keptBuf  = 1 << 20 // a buffer that had to grow beyond this is not kept for the next answer
)

// lines cuts what comes in into lines.
type lines struct {
	src     io.Reader
	buf     []byte
	from    int // the line at hand begins here
	scanned int // no end of line before this
	to      int // the bytes read end here
}

func newLines(src io.Reader) *lines { return &lines{src: src, buf: make([]byte, firstBuf)} }

// spare is the memory of the last answer, which the next of its size can have. A pool would lose it at every collection
// of garbage, of which a sentinel that lists a thousand agents every few seconds has one between two lists.
type spare struct {
	mu  sync.Mutex
	buf []byte
}

// lines reads src with the memory of the last answer, if nobody has it.
func (s *spare) lines(src io.Reader) *lines {
	s.mu.Lock()
	buf := s.buf
	s.buf = nil
	s.mu.Unlock()
	if buf == nil {
		return newLines(src)
	}
	return &lines{src: src, buf: buf}
}

// keep takes the memory back; the last line is no longer the caller's.
func (s *spare) keep(l *lines) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.buf) <= keptBuf && len(l.buf) > len(s.buf) {
		s.buf = l.buf
	}
}

// next is the next line without its end, until next is called again. The error at the end is io.EOF, in the middle of a
// line ErrCut.
func (l *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scanned:l.to], '\n'); i >= 0 {
			line := l.buf[l.from : l.scanned+i]
			l.from = l.scanned + i + 1
			l.scanned = l.from
			return line, nil
		}
		l.scanned = l.to
		if l.to-l.from > maxLine {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrGarbage, maxLine)
		}
		l.makeRoom()
		n, err := l.src.Read(l.buf[l.to:])
		l.to += n
		switch {
		case n > 0, err == nil:
		case err == io.EOF && l.to > l.from:
			return nil, ErrCut
		default:
			return nil, err
		}
	}
}

// makeRoom moves the line at hand to the front, and doubles the buffer when it fills it.
func (l *lines) makeRoom() {
	if l.to < len(l.buf) {
		return
	}
	into := l.buf
	if l.from == 0 {
		into = make([]byte, 2*len(l.buf))
	}
	l.to = copy(into, l.buf[l.from:l.to])
	l.scanned -= l.from
	l.from, l.buf = 0, into
}
