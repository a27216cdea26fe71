package hook

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"vx/internal/proc"
)

// note is what an await leaves to the program that its process becomes; see rest. The descriptors are kept over the exec.
type note struct {
	state, dir, project              string // the state directory, the project's in it, and the project's own
	session, transcript, pane        string
	record, spare                    string // paths without an end: of the registration, and of what was prepared
	sentinel                         string // the sentinel's lock
	claude                           bool
	client                           proc.ID
	began                            time.Duration
	parent, lock, bell, held, stderr int
	signals                          signals
}

// IsNote reports whether an argument of `vx sentinel await` is the descriptor of a note; see Resume.
func IsNote(arg string) bool {
	fd, err := strconv.Atoi(arg)
	return err == nil && fd > 2
}

// fields are all of the note's, in the order in which they are written.
func (n *note) fields() []any {
	return []any{
		&n.state, &n.dir, &n.project, &n.session, &n.transcript, &n.pane, &n.record, &n.spare, &n.sentinel,
		&n.claude, &n.client.PID, &n.client.Start, &n.began, &n.parent, &n.lock, &n.bell, &n.held, &n.stderr, &n.signals.fd, &n.signals.told,
	}
}

// encode writes one field a line. That is not JSON since the tables that decoding JSON builds would take more memory than
// anything else in a process that rests.
func (n *note) encode() []byte {
	var text []byte
	for _, f := range n.fields() {
		switch f := f.(type) {
		case *string:
			text = strconv.AppendQuote(text, *f)
		case *bool:
			text = strconv.AppendBool(text, *f)
		case *int:
			text = strconv.AppendInt(text, int64(*f), 10)
		case *uint64:
			text = strconv.AppendUint(text, *f, 10)
		case *time.Duration:
			text = strconv.AppendInt(text, int64(*f), 10)
		}
		text = append(text, '\n')
	}
	return text
}

// decode takes a line at a time: a copy of the whole would be the only thing of its size.
func (n *note) decode(text []byte) error {
	for _, f := range n.fields() {
		raw, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole {
			return errors.New("note: too short")
		}
		text = rest
		line := string(raw)
		var err error
		switch f := f.(type) {
		case *string:
			*f, err = strconv.Unquote(line)
		case *bool:
			*f, err = strconv.ParseBool(line)
		case *int:
			*f, err = strconv.Atoi(line)
		case *uint64:
			*f, err = strconv.ParseUint(line, 10, 64)
		case *time.Duration:
			var ns int64
			ns, err = strconv.ParseInt(line, 10, 64)
			*f = time.Duration(ns)
		}
		if err != nil {
			return fmt.Errorf("note: %w", err)
		}
	}
	if len(text) > 0 {
		return errors.New("note: too long")
	}
	return nil
}
