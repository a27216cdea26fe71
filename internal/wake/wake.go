// Package wake holds a project's queue of wakes. A wake is a file; claiming one is a rename, so that of any number of
// processes exactly one wins. A crash after the claim leaves it in .claimed/, a crash after the printing in .claimed/ or
// .emitted/, where Settle finds it: it goes back to the queue or is proven delivered, and is never lost. The package
// knows no harness and no terminal; what a model is shown is made by Message.
package wake

import (
	"encoding/json"
	"time"
)

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

// Wake is one durable message for a project's commander. Fields of the file that this build does not know are kept.
type Wake struct {
	Schema    int       `json:"schema"`
	ID        string    `json:"id"`  // unique, sortable by time
	Key       string    `json:"key"` // what it is about: waiting wakes of one key are folded
	Kind      Kind      `json:"kind"`
	TaskID    string    `json:"task_id,omitempty"` // for run: the run's id
	RunKind   string    `json:"run_kind,omitempty"`
	OldStatus string    `json:"old_status,omitempty"`
	NewStatus string    `json:"new_status,omitempty"`
	Outcome   string    `json:"outcome,omitempty"` // for run: "exit 2, 41 s"
	Title     string    `json:"title,omitempty"`   // one line
	Detail    string    `json:"detail,omitempty"`  // a few lines
	Refs      []string  `json:"refs,omitempty"`    // paths to report, log, escalation
	Origin    string    `json:"origin,omitempty"`
	To        *To       `json:"to,omitempty"`
	Detected  time.Time `json:"detected_at"`
	Expires   time.Time `json:"expires_at,omitzero"`
	Producer  string    `json:"producer,omitempty"`

	Reaps    int `json:"reaps,omitempty"`     // claims that ended without an emission
	PutBacks int `json:"put_backs,omitempty"` // emissions that a transcript showed never reached the model

	extra map[string]json.RawMessage
}

// To is the commander that a wake is meant for, when known.
type To struct {
	Project string `json:"project,omitempty"`
	Pane    string `json:"pane,omitempty"`
}
