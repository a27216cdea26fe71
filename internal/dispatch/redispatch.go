package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"vx/internal/herdr"
	"vx/internal/task"
)

// Redispatch gives an interrupted task to another agent, in a new pane and the same camp. args are for the agent's own
// program; nil are those that the one before was given.
func (d *Desk) Redispatch(ctx context.Context, id string, args []string) (r Result, err error) {
	t, err := d.tasks().Get(id)
	if err != nil {
		return r, err
	}
	if t.Status != task.Interrupted {
		return r, wrong(t, "only an interrupted one can be redispatched")
	}
	if t.Camp == nil || t.Herdr == nil {
		return r, &Refusal{about(t), "it was only watched, and not started by vx", "start that session again yourself, then vx watch"}
	}
	if err := d.stands(t); err != nil {
		return r, err
	}
	c, err := connect(ctx, t.Herdr.Socket)
	if err != nil {
		return r, err
	}
	old, err := d.left(ctx, c, t)
	if err != nil {
		return r, err
	}
	head, err := d.head(ctx, t)
	if err != nil {
		return r, err
	}
	commander := d.commander(ctx, &r)
	var back undoing
	defer func() {
		if err != nil {
			err = back.all(ctx, err)
		}
	}()
	d.tidy(ctx, t, &r)
	next := t
	next.Redispatches = append(next.Redispatches[:len(next.Redispatches):len(next.Redispatches)], time.Now().UTC())
	if args != nil {
		next.Args = args
	}
	a, err := d.post(ctx, c, next, &back)
	if err != nil {
		return r, err
	}
	now, err := d.tasks().Update(ctx, t.ID, task.Interrupted, func(t *task.Task) error {
		begin(t, head)
		t.Herdr, t.Redispatches, t.Args = herdrOf(c, a), next.Redispatches, next.Args
		address(t, commander)
		return nil
	})
	if err != nil {
		return r, err
	}
	back.add(func(ctx context.Context) error {
		_, err := d.tasks().Restore(ctx, now, t)
		return err
	})
	unsure, err := deliver(ctx, c, a.PaneID, d.again(now))
	if err != nil {
		return r, err
	}
	if unsure != "" {
		r.Warnings = append(r.Warnings, unsureOf(t, unsure))
	}
	d.unpause(t.ID)
	d.watched(context.WithoutCancel(ctx), &r)
	r.Task = now
	r.Did = fmt.Sprintf("redispatched %s %s: %s in pane %s", t.Kind, Short(t.ID), t.Agent, a.PaneID)
	if d.clear(ctx, t, old, &r) {
		r.Did += ", closed pane " + old.pane
	}
	r.Next = "you are woken when its turn ends; until then: vx task show " + Short(t.ID)
	return r, nil
}

// clear closes the pane of the soldier before, in which no agent is any more.
func (d *Desk) clear(ctx context.Context, t task.Task, old place, r *Result) bool {
	if old.pane != "" {
		old = d.look(ctx, t) // a new one has been started meanwhile
	}
	switch {
	case old.left != "":
		r.warn("%s", old.left)
	case old.used():
		r.warn("pane %s of the soldier before was left open: %s", old.pane, cmp.Or(old.busy, quoted(old.agent)+" is in it"))
	case old.pane != "":
		return d.close(ctx, old, r)
	}
	return false
}

// left is what has become of the pane of a soldier that is gone. A second soldier beside one that only seemed to be is
// refused.
func (d *Desk) left(ctx context.Context, c *herdr.Client, t task.Task) (place, error) {
	refuse := func(what, pane string) error {
		return &Refusal{about(t), fmt.Sprintf("%s still, in pane %s", what, pane), "look at it, and close that pane if it is of no more use"}
	}
	switch a, err := find(ctx, c, t); {
	case err == nil:
		return place{}, refuse(fmt.Sprintf("its %s is %s", a.Kind, a.Status), a.PaneID)
	case !errors.Is(err, errGone):
		return place{}, err
	}
	// Herdr has been seen to forget an agent that runs.
	old := d.look(ctx, t)
	if old.busy != "" {
		return old, refuse(old.busy, old.pane)
	}
	return old, nil
}
