package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"vx/internal/state"
	"vx/internal/wake"
)

// Transition is Update with news: the change and its wake, in queue q, are one thing. The wake is made durable beside the
// queue, the record is saved naming it, and with that it has happened; then the wake enters the queue. What change does
// not say of the wake is filled in: id, key, kind, task, statuses, title, refs, origin, commander, time.
//
// An error before the save means that nothing happened. One after it comes with the task as it was saved: the wake is
// safe, and Recover lets it in.
func (s *Store) Transition(ctx context.Context, id string, seen Status, q *wake.Queue, change func(*Task) (wake.Wake, error)) (Task, error) {
	var t Task
	err := s.locked(ctx, func() error {
		old, raw, err := s.readAs(id, seen)
		if err != nil {
			return err
		}
		// The record has room for one wake: an earlier one that a crash held up goes first.
		if err := s.enterEarlier(ctx, old); err != nil {
			return err
		}
		now, _, err := s.read(id) // one that shares nothing with old
		if err != nil {
			return err
		}
		w, err := change(&now)
		if err == nil {
			err = old.checkMove(now.Status)
		}
		if err != nil {
			return err
		}
		w = s.complete(w, now, old, q)
		now.WakeID, now.WakeProject = w.ID, w.Origin
		if w.Origin != "" {
			now.WakeProject = q.Project.Root
		}
		aside, err := q.Aside(ctx, w)
		if err != nil {
			return err
		}
		if err := s.save(&now, old, raw); err != nil {
			return errors.Join(err, s.dropUnlessNamed(ctx, id, aside))
		}
		t = now
		_, err = aside.Enter(ctx)
		return err
	})
	return t, err
}

// dropUnlessNamed drops an aside wake after a save that failed, but for one that failed after the rename: the record on
// the disk decides.
func (s *Store) dropUnlessNamed(ctx context.Context, id string, a *wake.Aside) error {
	t, _, err := s.read(id)
	if err != nil {
		return err // Recover will see
	}
	if a.Names(t.ID, t.WakeID) {
		_, err := a.Enter(ctx)
		return err
	}
	return a.Drop(ctx)
}

// complete fills in what the wake of a task's change has to say.
func (s *Store) complete(w wake.Wake, t, old Task, q *wake.Queue) wake.Wake {
	w.Schema, w.Key, w.TaskID, w.Kind = wake.Schema, t.ID, t.ID, t.Kind
	w.Detected = after(old.UpdatedAt, t.PromptedAt)
	w.ID = cmp.Or(w.ID, wake.NewID(w.Detected))
	w.OldStatus = cmp.Or(w.OldStatus, string(old.Status))
	w.NewStatus = cmp.Or(w.NewStatus, string(t.Status))
	w.Title = cmp.Or(w.Title, t.Title)
	if w.Refs == nil {
		w.Refs = refs(t)
	}
	if q.Project.Dir != s.Project.Dir {
		w.Origin = s.Project.Root
	}
	if w.To == nil && (t.CommanderProject != "" || t.CommanderPane != "") {
		w.To = &wake.To{Project: t.CommanderProject, Pane: t.CommanderPane}
	}
	return w
}

func refs(t Task) (paths []string) {
	if t.ReportPath != "" {
		paths = append(paths, t.ReportPath)
	}
	if t.Camp != nil && t.Camp.Path != "" {
		paths = append(paths, t.Camp.Path)
	}
	return paths
}

// enterEarlier lets the wake that a record names into its queue, if a crash has kept it out. The lock is held.
func (s *Store) enterEarlier(ctx context.Context, t Task) error {
	if t.WakeID == "" {
		return nil
	}
	p := s.Project
	if t.WakeProject != "" {
		p = p.State().Project(t.WakeProject)
	}
	a, err := wake.Open(p).FindAside(t.ID, t.WakeID)
	if err == nil && a != nil {
		_, err = a.Enter(ctx)
	}
	return err
}

// Recover judges what crashes in the middle of transitions left beside the queue: a wake that its task's record names
// happened, and enters the queue; another did not, and goes. What cannot be judged now stays, with an error.
func Recover(ctx context.Context, q *wake.Queue, dir *state.Dir) error {
	asides, err := q.Asides()
	errs := []error{err}
	for _, a := range asides {
		if a.Wake.Kind == wake.KindForum {
			continue // no task's
		}
		p := q.Project
		if a.Wake.Origin != "" {
			p = dir.Project(a.Wake.Origin)
		}
		if err := recoverOne(ctx, a, p); err != nil {
			errs = append(errs, fmt.Errorf("recover: %w", err))
		}
	}
	return errors.Join(errs...)
}

func recoverOne(ctx context.Context, a *wake.Aside, p *state.Project) error {
	// A project that is not there, moved away perhaps, says nothing about its tasks.
	if _, err := os.Stat(p.Join("tasks")); err != nil {
		return err
	}
	s := Open(p)
	return s.locked(ctx, func() error {
		t, _, err := s.read(a.Wake.TaskID)
		if _, none := errors.AsType[*NotFound](err); err != nil && !none {
			return err
		}
		if err == nil && a.Names(t.ID, t.WakeID) {
			_, err = a.Enter(ctx)
			return err
		}
		return a.Drop(ctx)
	})
}
