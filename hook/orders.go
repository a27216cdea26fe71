package hook

import (
	"bytes"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxOrder = 256         // bytes of a line; a token has 16
	maxRead  = time.Second // for one who never stops talking
	maxOdd   = 20          // lines that are logged because nobody can make anything of them
	maxSaid  = 64 << 20    // bytes; a client that says more is broken, and would keep a processor busy for an hour
)

// orders are what a client that holds a delivery says on stdin, a line each: `ack TOKEN` when the model has the text,
// `nack TOKEN` when it cannot be given to it. Anything else is logged and means nothing.
type orders struct {
	fd   int
	log  *slog.Logger
	over bool // the input has ended: nothing more will come

	line []byte // without an end yet; of one too long, the beginning
	odd  int    // lines that were logged
	read int    // bytes
}

// verdict is what a client says of a delivery.
type verdict int

const (
	noVerdict verdict = iota
	acked
	nacked
)

// of reads all that is there, and returns the first that is said of the delivery with this token; "" where there is none.
// It does not wait for more.
func (o *orders) of(token string) verdict {
	var buf [4096]byte
	for end := time.Now().Add(maxRead); !o.over && time.Now().Before(end); {
		n, more := o.fill(buf[:])
		if v := o.take(buf[:n], token); v != noVerdict {
			return v
		}
		if !more {
			break
		}
	}
	if !o.over {
		return noVerdict
	}
	return o.last(token)
}

// last is what is said in a line that lacks its end, where none will come any more.
func (o *orders) last(token string) verdict { return o.take([]byte{'\n'}, token) }

// fill reads once if it need not wait for it.
func (o *orders) fill(buf []byte) (n int, more bool) {
	if !o.readable() {
		return 0, false
	}
	n, err := unix.Read(o.fd, buf)
	switch {
	case err == unix.EINTR:
		return 0, true
	case err == unix.EAGAIN:
		return 0, false
	case err != nil, n == 0:
		o.over = true
		return 0, false
	}
	if o.read += n; o.read > maxSaid {
		o.over = true
	}
	return n, true
}

func (o *orders) readable() bool {
	fds := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n > 0 && err == nil
}

// take goes through what was read, line by line. What stands behind a verdict is not looked at: it is the last word.
func (o *orders) take(part []byte, token string) verdict {
	for len(part) > 0 {
		line, rest, whole := bytes.Cut(part, []byte{'\n'})
		part = rest
		o.line = append(o.line, line[:min(len(line), maxOrder-len(o.line))]...)
		if !whole {
			return noVerdict
		}
		v := o.judge(string(o.line), token)
		o.line = o.line[:0]
		if v != noVerdict {
			return v
		}
	}
	return noVerdict
}

// judge makes a verdict of one line.
func (o *orders) judge(line, token string) verdict {
	line = strings.TrimSuffix(line, "\r")
	if line == "" {
		return noVerdict
	}
	word, about, _ := strings.Cut(line, " ")
	v := map[string]verdict{"ack": acked, "nack": nacked}[word]
	switch {
	case v == noVerdict:
		o.complain("stdin: not a command", line)
	case token == "":
		o.complain("stdin: no delivery is in hand", line)
	case about != token:
		o.complain("stdin: another delivery", line)
	default:
		return v
	}
	return noVerdict
}

// complain logs a line that means nothing here, and after some no more of them.
func (o *orders) complain(what, line string) {
	if o.odd++; o.odd <= maxOdd {
		o.log.Warn(what, "line", line[:min(len(line), 80)])
	}
}
