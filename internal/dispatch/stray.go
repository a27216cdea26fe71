package dispatch

import (
	"context"
	"errors"
	"time"

	"vx/internal/herdr"
	"vx/internal/task"
)

// strays closes the panes that a task's dispatch, or its redispatch, has made and not written down any more, as it was
// killed in between. Their tab has the name that the agent was to have, with the task's id in it, and holds nothing but a
// shell that is idle.
func (d *Desk) strays(ctx context.Context, t task.Task) (closed []string, err error) {
	c, name, ok := d.killed(t)
	if !ok {
		return nil, nil
	}
	tabs, err := c.Tabs(ctx)
	if errors.Is(err, herdr.ErrUnreachable) {
		return nil, nil
	}
	ours := map[string]bool{}
	for _, tab := range tabs {
		ours[tab.TabID] = tab.Label == name && (t.Herdr == nil || t.Herdr.Tab != tab.TabID)
	}
	if err != nil || !anyOf(ours) {
		return nil, err
	}
	panes, err := c.Panes(ctx)
	in := map[string]int{}
	for _, pane := range panes {
		in[pane.TabID]++
	}
	var errs []error
	for _, pane := range panes {
		if !ours[pane.TabID] || in[pane.TabID] > 1 || t.Herdr != nil && t.Herdr.Pane == pane.PaneID || placeOf(ctx, c, pane).used() {
			continue
		}
		if err := c.ClosePane(context.WithoutCancel(ctx), pane.PaneID); err != nil {
			errs = append(errs, err)
			continue
		}
		closed = append(closed, pane.PaneID)
	}
	return closed, errors.Join(append(errs, err)...)
}

// tidy closes what strays, and warns of what may be left.
func (d *Desk) tidy(ctx context.Context, t task.Task, r *Result) []string {
	closed, err := d.strays(ctx, t)
	if err != nil {
		r.warn("a tab that is called %s may be left in herdr, of a start that was cut short: %v", agentOf(t), err)
	}
	return closed
}

// killed is where an order to start a soldier for the task may have been cut short, and the name of its tab; ok is false
// where none can.
func (d *Desk) killed(t task.Task) (c *herdr.Client, name string, ok bool) {
	if t.Camp == nil {
		return nil, "", false
	}
	switch t.Status {
	case task.Interrupted:
		t.Redispatches = append(t.Redispatches[:len(t.Redispatches):len(t.Redispatches)], time.Time{})
	case task.Pending:
	default:
		return nil, "", false
	}
	socket, err := herdr.SocketPath(d.Getenv)
	if t.Herdr != nil {
		socket, err = t.Herdr.Socket, nil
	}
	return &herdr.Client{Socket: socket}, agentOf(t), err == nil
}

func anyOf(set map[string]bool) bool {
	for _, is := range set {
		if is {
			return true
		}
	}
	return false
}
