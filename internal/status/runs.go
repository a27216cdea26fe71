package status

import (
	"time"

	"vx/internal/loop"
	"vx/internal/state"
)

// Run is a run of a loop, as vx loop list names its parts.
type Run struct {
	ID        string      `json:"run"`
	Kind      string      `json:"kind"`
	Title     string      `json:"title,omitempty"`
	State     loop.State  `json:"state"`
	Reason    loop.Reason `json:"reason,omitempty"`
	Iteration int         `json:"iteration,omitempty"`
	Limit     int         `json:"max_iterations,omitempty"`
	Since     time.Time   `json:"since,omitzero"` // when it ended, paused or began; zero where that is not known
	Dir       string      `json:"dir"`

	Found loop.Found `json:"-"`
}

// recent is how long a run is shown that has ended, or gone silent.
const recent = 24 * time.Hour

// runs are those that are active or were so lately, or all.
func (r *Report) runs(p *state.Project, all bool) {
	found, bad := loop.List(p.Root, p)
	for _, err := range bad {
		r.trouble(err)
	}
	for _, f := range found {
		// One that ralph.sh left without a word would be shown for ever.
		over := !f.Active() || f.State == loop.Silent
		if over && !all && time.Since(f.Changed) >= recent {
			r.RunsOver++
			continue
		}
		r.Runs = append(r.Runs, Run{
			ID: f.ID, Kind: f.Kind, Title: f.Title, State: f.State, Reason: f.Reason, Iteration: f.Iteration, Limit: f.Limit,
			Since: sinceOf(&f), Dir: f.Dir, Found: f,
		})
	}
}

// sinceOf is when a run came to what it is at.
func sinceOf(f *loop.Found) time.Time {
	switch f.State {
	case loop.Ended, loop.Dead, loop.Silent:
		return f.Changed
	case loop.Paused:
		return f.PausedAt
	}
	return f.Started
}
