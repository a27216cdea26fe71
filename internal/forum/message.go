package forum

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/wake"
)

// The bounds of a message, in bytes.
const (
	MaxText  = 256 << 10
	maxName  = 200 // of an id and of a session
	maxFile  = 4 << 10
	maxBytes = 4 << 20 // of its file; what is larger is not read
)

// Message is one piece of feedback. Fields of its file that this build does not know are kept.
type Message struct {
	ID      string    `json:"id"`
	Session string    `json:"session"`        // the review that it comes from
	File    string    `json:"file,omitempty"` // what is reviewed
	Text    string    `json:"text,omitempty"`
	Ended   bool      `json:"ended,omitempty"` // the session has ended with it
	Posted  time.Time `json:"posted_at,omitzero"`
	WakeID  string    `json:"wake_id,omitempty"` // the wake that rings for it; none yet in a file that was dropped by hand

	extra map[string]json.RawMessage
	name  string // of its file
}

// plain is Message without its methods, for encoding/json.
type plain Message

// UnmarshalJSON keeps the fields that it does not know.
func (m *Message) UnmarshalJSON(data []byte) error {
	var p plain
	var extra map[string]json.RawMessage
	if err := json.Unmarshal(data, &extra); err != nil {
		return err
	}
	if extra == nil {
		return errors.New("not a JSON object")
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	known := []string{"id", "session", "file", "text", "ended", "posted_at", "wake_id"}
	maps.DeleteFunc(extra, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	})
	p.extra = extra
	*m = Message(p)
	return nil
}

// MarshalJSON writes the known fields in their order, then the others, sorted.
func (m Message) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(plain(m))
	if err != nil || len(m.extra) == 0 {
		return data, err
	}
	more, err := json.Marshal(m.extra)
	if err != nil {
		return nil, err
	}
	return append(append(data[:len(data)-1], ','), more[1:]...), nil
}

func encode(m Message) ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// complete fills in what a new message leaves out, and refuses what is too large to be kept.
func (m Message) complete() (Message, error) {
	if m.Posted.IsZero() {
		m.Posted = time.Now().UTC().Round(0)
	}
	if m.ID == "" {
		m.ID = wake.NewID(m.Posted)
	}
	for _, field := range []struct {
		name string
		text *string
		max  int
	}{
		{"id", &m.ID, maxName}, {"session", &m.Session, maxName}, {"file", &m.File, maxFile}, {"text", &m.Text, MaxText},
	} {
		*field.text = strings.ToValidUTF8(*field.text, "\uFFFD")
		if n := len(*field.text); n > field.max {
			return m, fmt.Errorf("message: its %s has %d bytes, more than %d", field.name, n, field.max)
		}
	}
	if m.Session == "" {
		return m, errors.New("message: no session")
	}
	return m, nil
}

// says reports whether a message still is what was read.
func (m Message) says(now Message) bool {
	return m.Text == now.Text && m.File == now.File && m.Session == now.Session && m.Ended == now.Ended
}

// errHalf is a file that may still be written to.
var errHalf = errors.New("not whole yet")

// read reads a message. A file that was made by hand may leave out all but its text: its name is its id then, and the file
// that it is about the session.
func read(dir, name string) (Message, error) {
	data, info, err := atomicfile.ReadPlain(filepath.Join(dir, name), maxBytes)
	if err != nil {
		return Message{}, err
	}
	var m Message
	if err := json.Unmarshal(data, &m); err != nil {
		if time.Since(info.ModTime()) < halfDone {
			err = errHalf
		}
		return Message{}, err
	}
	m.name = name
	// Under another name its id could not be found again.
	if nameOf(m.ID) != name {
		m.ID = strings.TrimSuffix(name, ".json")
	}
	if m.Session == "" {
		m.Session = m.File
	}
	if m.Session == "" {
		m.Session = m.ID
	}
	if m.Posted.IsZero() {
		m.Posted = info.ModTime()
	}
	return m, nil
}
