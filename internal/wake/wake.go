// Package wake holds a project's queue of wakes. A wake is a file; claiming one is a rename, so that of any number of
// processes exactly one wins. A crash after the claim leaves it in .claimed/, a crash after the printing in .claimed/ or
// .emitted/, where Settle finds it: it goes back to the queue or is proven delivered, and is never lost. The package
// knows no harness and no terminal; what a model is shown is made by message.go.
package wake

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Schema is the version of the wake's fields that this build writes.
const Schema = 1

// Kind is what a wake is about.
type Kind string

// The kinds that vx knows; another one is shown like a message.
const (
	KindMission Kind = "mission"
	KindScout   Kind = "scout"
	KindRun     Kind = "run"
	KindForum   Kind = "forum"
	KindMessage Kind = "message"
)

// Wake is one durable message for a project's commander. Fields of its file that this build does not know survive every
// rewrite.
type Wake struct {
	Schema    int       `json:"schema"`
	ID        string    `json:"id"`  // unique, sorts by time
	Key       string    `json:"key"` // what it is about: waiting wakes of one key are folded
	Kind      Kind      `json:"kind"`
	TaskID    string    `json:"task_id,omitempty"`  // for a run: the run's id
	RunKind   string    `json:"run_kind,omitempty"` // for a loop's run: which loop
	OldStatus string    `json:"old_status,omitempty"`
	NewStatus string    `json:"new_status,omitempty"`
	Outcome   string    `json:"outcome,omitempty"` // for a run: "exit 2, 41 s"
	Dialog    string    `json:"dialog,omitempty"`  // for a task: where it waits at a dialog, "pane 3"; its status does not change
	Forum     *Forum    `json:"forum,omitempty"`   // for a forum's session, which is the key
	Title     string    `json:"title,omitempty"`   // one line
	Detail    string    `json:"detail,omitempty"`  // a few lines
	Refs      []string  `json:"refs,omitempty"`    // paths to report, log, escalation
	Origin    string    `json:"origin,omitempty"`  // the project of the task, when it is another one
	To        *To       `json:"to,omitempty"`
	Detected  time.Time `json:"detected_at,omitzero"`
	// FirstDetected is the earliest time among the wakes that were folded into this one. Detected stays the newest
	// one's own, so that a late, older producer can still be told apart.
	FirstDetected time.Time `json:"first_detected_at,omitzero"`
	Expires       time.Time `json:"expires_at,omitzero"`
	Producer      string    `json:"producer,omitempty"`

	Reaps    int `json:"reaps,omitempty"`     // claims that ended without an emission
	PutBacks int `json:"put_backs,omitempty"` // emissions that a transcript showed never reached the model

	extra map[string]json.RawMessage
}

// To is the commander that a wake is meant for, when known.
type To struct {
	Project string `json:"project,omitempty"`
	Pane    string `json:"pane,omitempty"`
}

// Forum is what waits in the project's inbox from one review session; counted again when the wake is delivered.
type Forum struct {
	File     string `json:"file,omitempty"` // what is reviewed
	Messages int    `json:"messages"`
	Ended    bool   `json:"ended"` // the session
}

// plain is Wake without its methods, for encoding/json.
type plain Wake

// known are the fields that this build writes itself.
var known = []string{
	"schema", "id", "key", "kind", "task_id", "run_kind", "old_status", "new_status", "outcome", "dialog", "forum", "title",
	"detail", "refs", "origin", "to", "detected_at", "first_detected_at", "expires_at", "producer", "reaps", "put_backs",
}

// errNotWake says that a file holds JSON, but not an object.
var errNotWake = errors.New("not a JSON object")

// UnmarshalJSON keeps the fields that it does not know.
func (w *Wake) UnmarshalJSON(data []byte) error {
	var p plain
	var extra map[string]json.RawMessage
	if err := json.Unmarshal(data, &extra); err != nil {
		return err
	}
	if extra == nil {
		return errNotWake
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	// In whatever case a name is written, it was read above as the field that it is.
	maps.DeleteFunc(extra, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	})
	*w = Wake(p)
	w.extra = extra
	return nil
}

// MarshalJSON writes the known fields in their order, then the others, sorted.
func (w Wake) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(plain(w))
	if err != nil || len(w.extra) == 0 {
		return data, err
	}
	more, err := json.Marshal(w.extra)
	if err != nil {
		return nil, err
	}
	return append(append(data[:len(data)-1], ','), more[1:]...), nil
}

// first is when the news began, for sorting.
func (w *Wake) first() time.Time {
	if w.FirstDetected.IsZero() {
		return w.Detected
	}
	return w.FirstDetected
}

// older orders wakes within a message: by the time of their news, then by id.
func older(a, b Wake) int {
	if c := a.first().Compare(b.first()); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// fold is what is left of two wakes of one key: the newer one's words, with the earlier old status and time, so that
// running -> blocked and blocked -> done become running -> done.
func fold(waiting, put Wake) Wake {
	earlier, later := waiting, put
	if put.Detected.Before(waiting.Detected) {
		earlier, later = put, waiting
	}
	// What was folded before may reach further back than one that was detected earlier.
	began := waiting
	if put.first().Before(waiting.first()) {
		began = put
	}
	folded := later
	folded.OldStatus = cmp.Or(began.OldStatus, earlier.OldStatus, later.OldStatus)
	folded.FirstDetected = began.first()
	folded.Reaps = max(earlier.Reaps, later.Reaps)
	folded.extra = maps.Clone(earlier.extra)
	if folded.extra == nil {
		folded.extra = map[string]json.RawMessage{}
	}
	maps.Copy(folded.extra, later.extra)
	return folded
}

var lowerBase32 = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID is an identifier of 18 characters: 10 for the milliseconds, which make it sort by time, and 8 random ones.
func NewID(now time.Time) string {
	var b [11]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16) // 48 bits, then 40 random ones
	rand.Read(b[6:])
	return lowerBase32.EncodeToString(b[:])
}

// newToken is a delivery's token: 80 random bits.
func newToken() string {
	var b [10]byte
	rand.Read(b[:])
	return lowerBase32.EncodeToString(b[:])
}

// parse reads a wake from its file. A file made by hand may have a title and nothing else: its name is its key, and its
// id is made of its name, so that it stays the same at every look.
func parse(data []byte, name string, modified time.Time) (Wake, error) {
	var w Wake
	if err := json.Unmarshal(data, &w); err != nil {
		return w, fmt.Errorf("%w: %w", errBad, err)
	}
	stem := strings.TrimSuffix(name, ".json")
	if w.Schema == 0 {
		w.Schema = Schema
	}
	if w.Key == "" {
		w.Key = stem
	}
	if w.ID == "" {
		w.ID = FileName(stem)
	}
	if w.Kind == "" {
		w.Kind = KindMessage
	}
	if w.Detected.IsZero() {
		w.Detected = modified
	}
	return w, nil
}
