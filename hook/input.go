package hook

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	inputWait  = time.Second
	clientWait = 10 * time.Second // where the environment is a client's: one that is short of processor time comes late
	maxInput   = 1 << 20          // bytes
	maxName    = 200              // bytes of a session's id
)

// input is what Claude Code writes to a hook's stdin.
type input struct {
	Session    string          `json:"session_id"`
	Transcript string          `json:"transcript_path"`
	Event      string          `json:"hook_event_name"`
	Active     json.RawMessage `json:"stop_hook_active"` // true in a turn that a wake started
}

// claude reports whether it was Claude Code that wrote it. Only then is CLAUDE_* in the environment to be trusted: a
// terminal server that was started from a session passes it on to strangers.
func (in input) claude() bool { return in.Session != "" && in.Event != "" }

// prompted reports whether a person's prompt began the turn that ended.
func (in input) prompted() bool { return string(in.Active) == "false" }

// readInput reads the first JSON value on fd, for a second (ten for what seems to be a client) and a megabyte at most;
// what follows it stays unread. The zero input where there is none: a terminal, no JSON, or something that never ends.
// Taking a busy client for a stranger costs more than waiting: a headless one would be made to wait for an hour.
func readInput(fd int) input {
	if term.IsTerminal(fd) {
		return input{}
	}
	wait := inputWait
	if os.Getenv("CLAUDECODE") != "" {
		wait = clientWait
	}
	var in input
	err := json.NewDecoder(&bounded{fd, time.Now().Add(wait), maxInput}).Decode(&in)
	// A field of another type than expected leaves that field alone empty.
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok {
		return input{}
	}
	in.clean()
	return in
}

// clean takes out what cannot be a session's id or a transcript's path.
func (in *input) clean() {
	if len(in.Session) > maxName {
		in.Session = ""
	}
	if !filepath.IsAbs(in.Transcript) || strings.ContainsRune(in.Transcript, 0) {
		in.Transcript = ""
	}
}

// bounded reads from a descriptor until a deadline, and so many bytes.
type bounded struct {
	fd       int
	deadline time.Time
	left     int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	for {
		wait := time.Until(b.deadline).Milliseconds()
		if wait <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(wait))
		if err == unix.EINTR || err == nil && n == 0 {
			continue
		}
		if err == nil {
			n, err = unix.Read(b.fd, p[:min(len(p), b.left)])
		}
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		b.left -= n
		return n, nil
	}
}
