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

// buffers keeps the memory of one answer for the next.
var buffers sync.Pool

// lines cuts what comes in into lines.
type lines struct {
	src     io.Reader
	buf     []byte
	from    int // the line at hand begins here
	scanned int // no end of line before this
	to      int // the bytes read end here
}

func newLines(src io.Reader) *lines {
	if kept, ok := buffers.Get().(*lines); ok {
		*kept = lines{src: src, buf: kept.buf}
		return kept
	}
	return &lines{src: src, buf: make([]byte, firstBuf)}
}

// free gives the buffer to the next who reads lines; the last line is no longer the caller's.
func (l *lines) free() {
	l.src = nil
	if len(l.buf) <= keptBuf {
		buffers.Put(l)
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
