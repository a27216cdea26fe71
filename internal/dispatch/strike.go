package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"vx/internal/camp"
	"vx/internal/herdr"
	"vx/internal/state"
	"vx/internal/task"
)

// Strike ends a task: its camp is removed, and the pane that it was dispatched to closed. Without force nothing is lost: not
// what is uncommitted or unmerged, and no soldier at work. A strike that was cut short is ended by the next.
func (d *Desk) Strike(ctx context.Context, id string, force bool) (r Result, err error) {
	t, err := d.tasks().Get(id)
	if err != nil {
		return r, err
	}
	switch {
	case t.Status == task.Struck && (t.Camp == nil || !d.campOf(t).Stands()):
		return d.finish(ctx, t, force)
	case t.Status == task.Running && !force:
		return r, &Refusal{about(t), "it is running", "vx strike " + Short(t.ID) + " --force ends it, whatever is lost; else wait for its end"}
	}
	if t.Camp != nil {
		if err := d.ours(t); err != nil {
			return r, err
		}
	}
	place := d.look(ctx, t)
	if place.busy != "" && !force {
		return r, place.working(t)
	}
	before := t
	if t, err = d.struck(ctx, t); err != nil {
		if c, ok := errors.AsType[*task.Conflict](err); ok && force {
			// What stands in its pane has to be looked at anew.
			return r, &Refusal{about(before), fmt.Sprintf("it is %s by now, not %s", c.Is, c.Seen), "vx strike " + Short(before.ID) + " --force, once more"}
		}
		return r, err
	}
	var strays []string
	if place.left == "" {
		strays = d.tidy(ctx, before, &r)
	}
	closed := false
	if place.busy != "" {
		closed = d.close(ctx, place, &r) // first, or it would go on writing
	}
	var did []string
	if t.Camp != nil {
		head, err := d.campOf(t).Remove(ctx, force)
		if err != nil {
			return r, d.unstrike(ctx, t, before, err)
		}
		did = append(did, "removed the camp and branch "+t.Camp.Branch)
		if r.Next = "vx dispatch begins another task"; force && head != "" {
			r.Next = fmt.Sprintf("git branch %s %s brings the branch back, while git keeps its commits", t.Camp.Branch, head)
		}
	}
	if place.pane != "" && place.busy == "" {
		closed = d.close(ctx, place, &r)
	}
	if closed {
		did = append(did, "closed pane "+place.pane)
	}
	for _, pane := range strays {
		did = append(did, "closed pane "+pane)
	}
	if place.left != "" {
		r.warn("%s", place.left)
	}
	d.unpause(t.ID)
	if did == nil {
		did = []string{"it is not watched any more"}
	}
	if r.Next == "" {
		r.Next = "vx status"
	}
	r.Task, r.Did = t, fmt.Sprintf("struck %s %s: %s", t.Kind, Short(t.ID), strings.Join(did, ", "))
	return r, nil
}

// finish closes the pane of a task that is struck already, which herdr would not do then.
func (d *Desk) finish(ctx context.Context, t task.Task, force bool) (r Result, err error) {
	place := d.look(ctx, t)
	switch {
	case place.left != "":
		return r, &Refusal{about(t), "it is struck already; " + place.left, "vx status --all"}
	case place.pane == "":
		return r, &Refusal{about(t), "it is struck already", "vx status --all"}
	case place.busy != "" && !force:
		return r, place.working(t)
	}
	if err := place.client.ClosePane(ctx, place.pane); err != nil {
		return r, fmt.Errorf("%s: pane %s: %w", about(t), place.pane, err)
	}
	r.Task, r.Next = t, "vx status"
	r.Did = fmt.Sprintf("struck %s %s: closed pane %s", t.Kind, Short(t.ID), place.pane)
	return r, nil
}

// struck saves the end before anything is removed, so that it wins over whatever the sentinel sees meanwhile.
func (d *Desk) struck(ctx context.Context, t task.Task) (task.Task, error) {
	if t.Status == task.Running {
		var err error
		if t, err = d.tasks().Update(ctx, t.ID, task.Running, to(task.Interrupted)); err != nil {
			return t, err
		}
	}
	if t.Status == task.Struck {
		return t, nil
	}
	return d.tasks().Update(ctx, t.ID, t.Status, to(task.Struck))
}

func to(s task.Status) func(*task.Task) error {
	return func(t *task.Task) error {
		t.Status = s
		return nil
	}
}

// unstrike is for a camp that is not to be removed: the task is as it was.
func (d *Desk) unstrike(ctx context.Context, t, before task.Task, err error) error {
	if before.Status == task.Struck {
		return err
	}
	if before.Status == task.Running { // whose soldier was ended
		before.Status = task.Interrupted
	}
	_, undo := d.tasks().Restore(context.WithoutCancel(ctx), t, before)
	if refusal, ok := errors.AsType[*camp.Refusal](err); ok && undo == nil {
		return &Refusal{about(t), refusal.Why, refusal.Fix}
	}
	return errors.Join(err, undo)
}

// place is what has become of the pane that a task was dispatched to.
type place struct {
	client *herdr.Client
	pane   string // that may be closed; "" for none
	agent  string // that is in it, "" for none
	busy   string // what goes on in it, "" for nothing
	left   string // why a pane that may still be the task's is left alone
}

// working is the refusal to end what goes on in a task's pane.
func (p place) working(t task.Task) error {
	return &Refusal{about(t), fmt.Sprintf("%s in its pane %s", p.busy, p.pane), "wait for its end, or vx strike " + Short(t.ID) + " --force"}
}

// look finds a task's pane. A watched one's is a person's own, and a terminal that is another one may be too.
func (d *Desk) look(ctx context.Context, t task.Task) place {
	if t.Camp == nil || t.Herdr == nil {
		return place{}
	}
	c := &herdr.Client{Socket: t.Herdr.Socket}
	pane, err := c.Pane(ctx, t.Herdr.Pane)
	switch {
	case herdr.Code(err) == herdr.PaneNotFound, errors.Is(err, herdr.ErrUnreachable):
		return place{}
	case err != nil:
		return place{left: fmt.Sprintf("pane %s was left open, with what runs in it: %v; once herdr answers, close it there, or: vx strike %s", t.Herdr.Pane, err, Short(t.ID))}
	case pane.TerminalID != t.Herdr.TerminalID:
		return place{left: fmt.Sprintf("pane %s was left open: it has another terminal now than the one of this task", t.Herdr.Pane)}
	}
	return placeOf(ctx, c, pane)
}

// placeOf is what goes on in a pane.
func placeOf(ctx context.Context, c *herdr.Client, pane herdr.Pane) place {
	p := place{client: c, pane: pane.PaneID, agent: pane.Kind}
	if pane.Kind != "" {
		if !pane.Status.Rests() && pane.Status != herdr.Unknown {
			p.busy = fmt.Sprintf("%s is %s", pane.Kind, pane.Status)
		}
		return p
	}
	// A shell, in which a person may have begun something else.
	processes, err := c.Processes(ctx, pane.PaneID)
	if err != nil {
		p.busy = "something may run"
	}
	for _, process := range processes.Foreground {
		if process.PID != processes.Shell {
			p.busy = quoted(process.Name) + " runs"
		}
	}
	return p
}

// used reports whether anything but an idle shell is there.
func (p place) used() bool { return p.agent != "" || p.busy != "" }

func (d *Desk) close(ctx context.Context, p place, r *Result) bool {
	err := p.client.ClosePane(context.WithoutCancel(ctx), p.pane)
	if err != nil && herdr.Code(err) != herdr.PaneNotFound {
		r.warn("pane %s was not closed, and what runs in it goes on: %v; close it in herdr", p.pane, err)
	}
	return err == nil
}

// stands is the refusal of an order that needs the task's camp, nil where that is there.
func (d *Desk) stands(t task.Task) error {
	if t.Camp == nil {
		return &Refusal{about(t), "it is only watched, and has no camp", "vx task show " + Short(t.ID)}
	}
	if err := d.ours(t); err != nil {
		return err
	}
	if d.Project.Gone() {
		return &Refusal{about(t), "its repository is gone from " + d.Project.Root, "put it back, or: vx project move " + state.Quote(d.Project.Root) + " NEW"}
	}
	if _, err := os.Stat(t.Camp.Path); err != nil || !d.campOf(t).Stands() {
		return &Refusal{about(t), "its camp is gone: " + t.Camp.Path, "vx strike " + Short(t.ID)}
	}
	return nil
}

// ours is the refusal to touch a camp that vx cannot have made, nil where it can.
func (d *Desk) ours(t task.Task) error {
	if t.Camp.MadeIn(d.Project, t.ID) {
		return nil
	}
	return &Refusal{about(t), fmt.Sprintf("its record says that its camp is %s on branch %q, and vx made none there", t.Camp.Path, t.Camp.Branch),
		"mend " + state.Quote(d.Project.Join("tasks", t.ID+".json")) + ", or move it away"}
}
