package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vx/internal/camp"
	"vx/internal/herdr"
	"vx/internal/task"
)

// Prompt gives a soldier that has finished more to do. Its task runs again before it hears of it, so that its next end is
// news whatever happens; one that refuses to hear leaves it as it was.
func (d *Desk) Prompt(ctx context.Context, id, text string) (r Result, err error) {
	t, err := d.tasks().Get(id)
	if err != nil {
		return r, err
	}
	if !t.Status.Prompts() {
		return r, wrong(t, "only one that is done, shipped or unconfirmed can be prompted")
	}
	if text, err = spoken(text); err != nil {
		return r, err
	}
	if err := d.tell(ctx, t, text, &r, func(*task.Task) {}); err != nil {
		return r, err
	}
	r.Did = fmt.Sprintf("prompted %s %s: it runs again in pane %s", t.Kind, Short(t.ID), r.Task.Herdr.Pane)
	return r, nil
}

// Decide gives a soldier the decision that it waits for.
func (d *Desk) Decide(ctx context.Context, id, text string) (r Result, err error) {
	t, err := d.blocked(id)
	if err != nil {
		return r, err
	}
	if text, err = spoken(text); err != nil {
		return r, err
	}
	err = d.tell(ctx, t, answer(t, text), &r, func(t *task.Task) {
		if t.Decision == nil {
			t.Decision = &task.Decision{}
		}
		t.Decision.Answer, t.Decision.AnsweredAt = text, time.Now().UTC()
	})
	if err != nil {
		return r, err
	}
	r.Did = fmt.Sprintf("answered %s %s: it runs again in pane %s", t.Kind, Short(t.ID), r.Task.Herdr.Pane)
	return r, nil
}

// Dismiss marks a question as none. The soldier is told nothing: what it has delivered is judged as if it had not asked.
func (d *Desk) Dismiss(ctx context.Context, id string) (r Result, err error) {
	t, err := d.blocked(id)
	if err != nil {
		return r, err
	}
	c := d.commander(ctx, &r)
	r.Task, err = d.tasks().Update(ctx, t.ID, task.Blocked, func(t *task.Task) error {
		if t.Decision == nil {
			t.Decision = &task.Decision{}
		}
		t.Decision.Dismissed, t.Decision.AnsweredAt = true, time.Now().UTC()
		t.Status, t.Note = task.Running, ""
		address(t, c)
		return nil
	})
	if err != nil {
		return r, err
	}
	d.watched(context.WithoutCancel(ctx), &r)
	r.Did = fmt.Sprintf("dismissed the question of %s %s: what it has delivered is judged now", t.Kind, Short(t.ID))
	r.Next = "you are woken with done or unconfirmed in less than a minute; to give it more to do then: vx prompt " + Short(t.ID) + " TEXT"
	return r, nil
}

func (d *Desk) blocked(id string) (task.Task, error) {
	t, err := d.tasks().Get(id)
	if err == nil && t.Status != task.Blocked {
		err = wrong(t, "asks for no decision")
	}
	return t, err
}

// tell makes a task run again, and then types a text for its soldier, who is at rest. What refuses it is undone.
func (d *Desk) tell(ctx context.Context, t task.Task, text string, r *Result, change func(*task.Task)) error {
	c, a, err := d.listener(ctx, t)
	if err != nil {
		return err
	}
	head, err := d.head(ctx, t)
	if err != nil {
		return err
	}
	commander := d.commander(ctx, r)
	now, err := d.tasks().Update(ctx, t.ID, t.Status, func(t *task.Task) error {
		begin(t, head)
		name := t.Herdr.Agent
		t.Herdr = herdrOf(c, a)
		if t.Herdr.Agent == "" {
			t.Herdr.Agent = name
		}
		t.Amendments = append(t.Amendments, task.Amendment{At: t.PromptedAt, Text: text})
		address(t, commander)
		change(t)
		return nil
	})
	if err != nil {
		return err
	}
	unsure, err := deliver(ctx, c, a.PaneID, text)
	if err != nil {
		_, undo := d.tasks().Restore(context.WithoutCancel(ctx), now, t)
		return errors.Join(err, undo)
	}
	if unsure != "" {
		r.Warnings = append(r.Warnings, unsureOf(t, unsure))
	}
	d.unpause(t.ID)
	d.watched(context.WithoutCancel(ctx), r)
	r.Task = now
	r.Next = "you are woken when its turn ends; until then: vx task show " + Short(t.ID)
	return nil
}

// begin makes a task one that runs since now, of which nothing has been seen yet.
func begin(t *task.Task, head string) {
	t.Status, t.PromptedAt, t.Head = task.Running, time.Now().UTC(), head
	t.Note, t.Output, t.Evidence, t.Session = "", "", nil, nil
	t.AgentNotFoundSince, t.IdleUnconfirmedSince, t.BackgroundSince = time.Time{}, time.Time{}, time.Time{}
	t.PauseSeenAt, t.DialogSince = time.Time{}, time.Time{}
}

// listener is the agent that a task's soldier is, if it can be told something.
func (d *Desk) listener(ctx context.Context, t task.Task) (*herdr.Client, herdr.Agent, error) {
	fail := func(why, fix string) (*herdr.Client, herdr.Agent, error) {
		return nil, herdr.Agent{}, &Refusal{about(t), why, fix}
	}
	if t.Herdr == nil {
		return fail("it is a session in no pane of herdr's, so nothing can be typed into it", "tell it yourself; it is seen to work again")
	}
	if t.Camp != nil {
		if err := d.stands(t); err != nil {
			return nil, herdr.Agent{}, err
		}
	}
	c, err := connect(ctx, t.Herdr.Socket)
	if err != nil {
		return nil, herdr.Agent{}, err
	}
	a, err := find(ctx, c, t)
	switch {
	case errors.Is(err, errGone):
		return fail("its agent is gone from pane "+t.Herdr.Pane, "vx land "+Short(t.ID)+" or vx strike "+Short(t.ID)+", and dispatch another")
	case err != nil:
		return nil, a, err
	}
	if dialog := dialogOf(ctx, c, a); dialog != "" {
		return fail(fmt.Sprintf("a dialog waits for a person in pane %s: %s", a.PaneID, dialog), "answer it there, then try again")
	}
	if typed := unsentIn(ctx, c, a); typed != "" {
		return fail(fmt.Sprintf("its prompt in pane %s holds text that was not sent: %s", a.PaneID, quoted(typed)), "send or clear that there, then try again")
	}
	return c, a, nil
}

// head is the commit that the task's branch has now, "" where a watched one works in no repository.
func (d *Desk) head(ctx context.Context, t task.Task) (string, error) {
	if t.Camp != nil {
		head, err := d.campOf(t).Head(ctx)
		if err != nil {
			err = &Refusal{about(t), "its branch " + t.Camp.Branch + " is gone", "vx strike " + Short(t.ID)}
		}
		return head, err
	}
	return headIn(ctx, t.Dir), nil
}

func headIn(ctx context.Context, dir string) string {
	if strings.TrimSpace(dir) == "" {
		return ""
	}
	_, head, err := camp.Base(ctx, dir, "")
	if err != nil {
		return "" // no repository, or nothing in it: then there is no proof but the end of its turn
	}
	return head
}
