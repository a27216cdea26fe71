// Package awaiter is the registry of live awaits and their doorbells: for each a record, a FIFO and a lock in the
// state directory's sentinel-awaiters/. The lock is the only proof of life: the kernel frees it on any death. What a
// dead awaiter left is removed by whoever lists next.
package awaiter

import (
	"time"

	"vx/internal/proc"
	"vx/internal/state"
)

// Record is what an awaiter tells others about itself.
type Record struct {
	Process proc.ID   `json:"process"`
	Project string    `json:"project"` // resolved absolute path
	Client  proc.ID   `json:"client,omitzero"`
	Harness string    `json:"harness"` // "claude"
	Session string    `json:"session,omitempty"`
	Pane    string    `json:"pane,omitempty"`
	Since   time.Time `json:"since"`
	Version string    `json:"version"`
}

// Awaiter is this process's own registration.
type Awaiter struct{}

// Register makes the lock, the FIFO (under a temporary name, opened read-write and non-blocking, then renamed in) and
// the record, in that order, before it returns: whoever puts a wake from now on finds the bell.
func Register(dir *state.Dir, p *state.Project, r Record) (*Awaiter, error) { return nil, nil }

// FD is the doorbell, for poll.
func (a *Awaiter) FD() int { return 0 }

// Answer empties the doorbell: from now on a producer sees it as not rung.
func (a *Awaiter) Answer() {}

// Close takes the registration back.
func (a *Awaiter) Close() error { return nil }

// Entry is an awaiter as others see it.
type Entry struct{ Record }

// List are the live awaiters of a project (of all projects when p is nil), oldest first.
func List(dir *state.Dir, p *state.Project) ([]Entry, error) { return nil, nil }

// Ring rings one awaiter of the project: the first that is not rung already. It is no error when there is none.
func Ring(dir *state.Dir, p *state.Project) {}

// RingAfter is Ring for an awaiter that passes the bell on: only awaiters that sort behind it, so that a bell never
// goes round in circles.
func (a *Awaiter) RingAfter() {}

// Tell rings exactly this awaiter: it is to look around (a younger one of its client has come).
func (e Entry) Tell() {}

// Terminate sends SIGTERM to the awaiter after its record, its start time and its command line (arguments that begin
// "sentinel await") agree, through a handle on the process. proc.ErrGone when it has ended.
func (e Entry) Terminate() error { return nil }
