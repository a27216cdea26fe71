package route

import (
	"context"
	"fmt"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/proc"
)

// asking bounds how long a herdr is asked for a terminal.
const asking = 3 * time.Second

// Remember keeps whom live awaits serve, where wakes may be typed: one that has delivered is gone, and so, after an Esc, is
// all else that tells of its commander. It costs nothing while the awaits are those of the last call.
func (r *Router) Remember(ctx context.Context, awaits []awaiter.Entry) {
	if len(awaits) == len(r.awaits) && (len(awaits) == 0 || &awaits[0] == &r.awaits[0]) {
		return
	}
	r.awaits = awaits
	met := make(map[proc.ID]bool, len(awaits))
	for _, a := range awaits {
		if met[a.Process] = true; r.met[a.Process] {
			continue
		}
		if err := r.remember(ctx, a); err != nil {
			r.Log.Warn("commander", "err", fmt.Sprint(err), "process", a.Client.PID)
		}
	}
	r.met = met
}

func (r *Router) remember(ctx context.Context, a awaiter.Entry) error {
	if a.Pane == "" || a.Socket == "" || a.Harness == "" || a.Client.IsZero() {
		return nil
	}
	p := r.Dir.Project(a.Project)
	if c, err := p.Config(); err != nil || !c.Nudge {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	return commander.Register(p, commander.Entry{
		Harness: a.Harness, Session: a.Session, Process: a.Client, Pane: a.Pane, Socket: a.Socket, Since: a.Since,
		Terminal: commander.Terminal(ctx, commander.Here{Pane: a.Pane, Socket: a.Socket}),
	})
}
