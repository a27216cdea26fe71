package route

import (
	"context"
	"fmt"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/proc"
)

const (
	// asking bounds how long a herdr is asked for a terminal.
	asking = 3 * time.Second
	// askAgain is how long one is left alone that did not tell: it may not have found its agent yet.
	askAgain = 10 * time.Second
)

// Remember keeps whom live awaits serve, where wakes may be typed: one that has delivered is gone, and so, after an Esc, is
// all else that tells of its commander. It costs nothing while the awaits are those of the last call, and herdr has told
// where their commanders are.
func (r *Router) Remember(ctx context.Context, awaits []awaiter.Entry) {
	same := len(awaits) == len(r.awaits) && (len(awaits) == 0 || &awaits[0] == &r.awaits[0])
	if same && (r.again == 0 || r.Awake() < r.again) {
		return
	}
	r.awaits, r.again = awaits, 0
	met := make(map[proc.ID]bool, len(awaits))
	for _, a := range awaits {
		if r.met[a.Process] {
			met[a.Process] = true
			continue
		}
		known, err := r.remember(ctx, a)
		if err != nil {
			r.Log.Warn("commander", "err", fmt.Sprint(err), "process", a.Client.PID)
		}
		if met[a.Process] = known; !known {
			r.again = r.Awake() + askAgain
		}
	}
	r.met = met
}

// remember reports whether there is nothing more to be found out.
func (r *Router) remember(ctx context.Context, a awaiter.Entry) (known bool, err error) {
	if a.Pane == "" || a.Socket == "" || a.Harness == "" || a.Client.IsZero() {
		return true, nil
	}
	p := r.Dir.Project(a.Project)
	if c, err := p.Config(); err != nil || !c.Nudge {
		return true, err
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	terminal := commander.Terminal(ctx, commander.Here{Pane: a.Pane, Socket: a.Socket})
	return terminal != "", commander.Register(p, commander.Entry{
		Harness: a.Harness, Session: a.Session, Process: a.Client, Pane: a.Pane, Socket: a.Socket, Since: a.Since,
		Terminal: terminal,
	})
}
