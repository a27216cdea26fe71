// Package status tells how things stand with a project: what its soldiers and loops do, who waits for its news, what waits to be told,
// and what became of the latest deliveries. It first settles what can be settled, and changes nothing else. It judges nothing, which is
// doctor's part, and prints nothing.
package status

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/pace"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// Report is how things stand with one project.
type Report struct {
	Project string `json:"project"`
	Known   bool   `json:"known"` // anything is kept of it
	Gone    bool   `json:"gone"`  // nothing stands at its path any more

	Awaits []awaiter.Record `json:"awaits"`
	// NoAwaitSince is when the last await ended; zero while one lives, and where that is not known.
	NoAwaitSince time.Time `json:"no_await_since,omitzero"`
	// Commanders are who is to be woken, those with an await and those without.
	Commanders []commander.Entry `json:"commanders"`
	MutedUntil time.Time         `json:"muted_until,omitzero"` // zero: not muted
	Nudge      bool              `json:"nudge,omitempty"`      // what nobody waits for may be typed into a commander's pane
	Slowed     []Slowed          `json:"slowed"`
	Failing    []Failing         `json:"failing,omitempty"`

	Tasks []Task `json:"tasks"`          // those that are not over
	Over  int    `json:"over,omitempty"` // landed or struck, and not among them

	Runs     []Run `json:"runs"`                // of loops: those that are active, or were within a day
	RunsOver int   `json:"runs_over,omitempty"` // not among them

	Waiting  int         `json:"waiting"`
	Next     []wake.Wake `json:"next"`       // the first of those that wait
	OnTheWay int         `json:"on_the_way"` // in deliveries that have not ended
	Bad      int         `json:"bad"`
	Last     []Delivery  `json:"last"` // the latest deliveries, newest last

	Trouble []string `json:"trouble,omitempty"` // what could not be found out
}

// Slowed is a client whose turns wake each other, so that it is woken slowly.
type Slowed struct {
	Client   proc.ID   `json:"client"`
	Interval string    `json:"interval"` // between two deliveries
	Next     time.Time `json:"next"`     // not before
}

// Failing is a client whose last turns ended in an API error, so that wakes wait.
type Failing struct {
	Client proc.ID   `json:"client"`
	Turns  int       `json:"turns"` // one after the other
	Next   time.Time `json:"next"`  // nothing is delivered before
}

// Delivery is one wake that was printed for a client.
type Delivery struct {
	Time    time.Time `json:"time"`
	ID      string    `json:"id"`
	Title   string    `json:"title,omitempty"`
	Harness string    `json:"harness,omitempty"`
	Session string    `json:"session,omitempty"`
	Client  int       `json:"client,omitempty"` // pid
	Millis  float64   `json:"ms,omitempty"`     // from the writing of the wake's file to the end of the printing
	Receipt string    `json:"receipt"`          // "turn started", "turn failed", "unproven", "outstanding", "enqueued", "put back"
}

const (
	mostNext = 5
	mostLast = 5
	// mostRead bounds how many waiting wakes are read to find the first ones.
	mostRead = 200
)

// Nothing is the report of a project of which nothing is kept.
func Nothing(root string) Report {
	return Report{Project: root, Awaits: []awaiter.Record{}, Commanders: []commander.Entry{}, Tasks: []Task{}, Runs: []Run{}, Slowed: []Slowed{}, Next: []wake.Wake{}, Last: []Delivery{}}
}

// Of is how things stand with a project, with all its tasks and runs or those that are not over.
func Of(ctx context.Context, p *state.Project, all bool) Report {
	r := Nothing(p.Root)
	r.Gone = p.Gone()
	if _, err := os.Stat(p.Dir); errors.Is(err, fs.ErrNotExist) {
		return r
	}
	r.Known = true
	q := wake.Open(p)
	r.trouble(q.Settle(ctx))
	r.tasks(p, all)
	r.runs(p, all)
	r.awaits(p)
	c, err := p.Config()
	r.trouble(err)
	r.Nudge = c.Nudge
	if c.Muted(time.Now()) {
		r.MutedUntil = c.MutedUntil
	}
	braked, err := pace.Brakes(p)
	r.trouble(err)
	for _, b := range braked {
		r.Slowed = append(r.Slowed, Slowed{b.Client, b.Interval.String(), b.Next})
	}
	r.queue(q)
	events, err := q.History(0)
	r.trouble(err)
	r.Last = latest(events)
	return r
}

func (r *Report) trouble(err error) {
	if err != nil {
		r.Trouble = append(r.Trouble, err.Error())
	}
}

func (r *Report) awaits(p *state.Project) {
	live, _ := awaiter.List(p.State(), p) // what could not be read Live tells
	for _, e := range live {
		r.Awaits = append(r.Awaits, e.Record)
	}
	if len(live) == 0 {
		r.NoAwaitSince = awaiter.Ended(p)
	}
	commanders, err := commander.Live(p.State(), p)
	r.trouble(err)
	r.Commanders = append(r.Commanders, commanders...)
	for _, e := range commanders {
		if turns, wait := pace.Failing(e.Process); wait > 0 {
			r.Failing = append(r.Failing, Failing{e.Process, turns, time.Now().Add(wait).UTC().Truncate(time.Second)})
		}
	}
}

func (r *Report) queue(q *wake.Queue) {
	n, err := q.Count()
	r.trouble(err)
	r.Waiting = n
	l, err := q.List(mostRead)
	r.trouble(err)
	r.Next = l.Waiting[:min(len(l.Waiting), mostNext)]
	r.OnTheWay, r.Bad = len(l.Claimed)+len(l.Emitted), len(l.Bad)
}

// latest finds the latest deliveries in the history, and what became of each.
func latest(events []wake.Event) []Delivery {
	all := []Delivery{}
	for _, e := range events {
		if e.Event == "emitted" {
			all = append(all, Delivery{e.Time, e.ID, e.Title, e.Harness, e.Session, e.Client, e.Millis, "outstanding"})
			continue
		}
		// The latest of this wake: it may have been delivered before, and put back.
		for i := range slices.Backward(all) {
			if all[i].ID == e.ID {
				all[i].Receipt = receipt(e, all[i].Receipt)
				break
			}
		}
	}
	return all[max(0, len(all)-mostLast):]
}

// receipt is what an event says of the delivery before it.
func receipt(e wake.Event, before string) string {
	switch e.Event {
	case "delivered":
		return e.Proof
	case "enqueued":
		return "enqueued"
	case "put_back", "quarantined":
		return "put back"
	}
	return before
}

// NoAwait says that nobody waits, since when if that is known, and what becomes of wakes:
// "no await since 14:02, 2 wakes wait; delivered at the end of the next turn".
func (r Report) NoAwait(now time.Time) string {
	s := "no await"
	if !r.NoAwaitSince.IsZero() {
		s += " since " + moment(r.NoAwaitSince, now)
	}
	if r.Waiting > 0 {
		s += ", " + commander.Outlook(r.Waiting, r.Commanders, r.Nudge)
	}
	return s
}

// moment is a time of today, or of another day with its date.
func moment(at, now time.Time) string {
	if at = at.Local(); at.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02 15:04")
}
