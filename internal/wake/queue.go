package wake

import (
	"context"
	"time"

	"vx/internal/proc"
	"vx/internal/state"
)

// Step names a moment at which a consumer or producer can be killed or a disk can fail.
type Step string

// Queue is a project's queue on disk. The zero value is not usable; see Open.
type Queue struct {
	Project *state.Project
	// Before is called before each step; a returned error takes the step's place. Nil but in crash and fault tests.
	Before func(Step) error
}

// Open returns the project's queue. Nothing is read or written yet.
func Open(p *state.Project) *Queue { return &Queue{Project: p} }

// Put adds a wake, folding it with one of the same key that waits, makes it durable, rings a doorbell and settles what
// can be settled. Missing fields (schema, id, key, kind, detected_at) are filled in. It returns the wake as it waits
// now. An error means that nothing was added.
func (q *Queue) Put(ctx context.Context, w Wake) (Wake, error) { return w, nil }

// Recipient is whom a delivery goes to: what its to.json says.
type Recipient struct {
	Client     proc.ID `json:"client,omitzero"`
	Harness    string  `json:"harness"`
	Session    string  `json:"session,omitempty"`
	Pane       string  `json:"pane,omitempty"`
	Transcript string  `json:"transcript,omitempty"`
}

// Delivery is some wakes, claimed together, on their way to one client.
type Delivery struct {
	Token string
	Wakes []Wake // oldest first, all fit into Text
	More  int    // how many wait still, counted up to a few hundred
	Text  string // what the model is to read, under 10,000 characters
}

// Claim takes what can be delivered now: at most 50 wakes, what is still news, what fits into one message. It returns
// nil when there is nothing (or others were faster).
func (q *Queue) Claim(ctx context.Context) (*Delivery, error) { return nil, nil }

// Note makes durable whom the delivery goes to, before the first byte is printed.
func (d *Delivery) Note(to Recipient) error { return nil }

// Emit says that the whole text was written: one rename.
func (d *Delivery) Emit() error { return nil }

// Release puts the wakes back and rings, with the reason in the history.
func (d *Delivery) Release(ctx context.Context, reason string) error { return nil }

// Settle ends deliveries by proof, takes over those whose owner is gone, and keeps house. It never waits for a live
// owner.
func (q *Queue) Settle(ctx context.Context) error { return nil }

// Scanner tells cheaply whether a queue may hold something new.
type Scanner struct{}

// Look reports whether Claim is worth calling: something may have come since the last Look that said so.
func (s *Scanner) Look(q *Queue) bool { return true }

// Listing is what a queue holds.
type Listing struct {
	Waiting []Wake     `json:"waiting"`
	Claimed []InFlight `json:"claimed"`
	Emitted []InFlight `json:"emitted"`
	Bad     []Bad      `json:"bad"`
}

// InFlight is a wake in a delivery that has not ended. The token is not in it: it is printed nowhere but in the message.
type InFlight struct {
	Wake
	Recipient *Recipient `json:"recipient,omitempty"`
	Since     time.Time  `json:"since"` // when it was claimed
	Live      bool       `json:"live"`  // its owner holds it
}

// Bad is a file that could not be read or shown, kept in .bad/.
type Bad struct {
	Name string    `json:"name"`
	Time time.Time `json:"time"`
	Size int64     `json:"size"`
}

// List reads everything that the queue holds, oldest first; limit caps the waiting ones that are read (0: all).
func (q *Queue) List(limit int) (Listing, error) { return Listing{}, nil }

// Count is how many wakes wait, without reading them.
func (q *Queue) Count() (int, error) { return 0, nil }

// Event is one line of history.jsonl. Nothing is decided from it.
type Event struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"` // put folded claimed emitted enqueued delivered released dropped reaped put_back quarantined
	ID      string    `json:"id"`
	Key     string    `json:"key,omitempty"`
	Title   string    `json:"title,omitempty"`
	Into    string    `json:"into,omitempty"`  // folded: the id that it lives on in
	Why     string    `json:"why,omitempty"`   // released, dropped, put_back, quarantined
	Proof   string    `json:"proof,omitempty"` // delivered: "turn started", "turn failed", "unproven"
	Session string    `json:"session,omitempty"`
	Harness string    `json:"harness,omitempty"`
	Client  int       `json:"client,omitempty"` // pid
	Ms      float64   `json:"ms,omitempty"`     // emitted: milliseconds from the wake's rename into the queue
}

// History reads the last n events (0: all that are kept), oldest first.
func (q *Queue) History(n int) ([]Event, error) { return nil, nil }
