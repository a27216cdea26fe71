package sentinel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vx/internal/lock"
	"vx/internal/soldier"
	"vx/internal/task"
	"vx/internal/wake"
)

// errGivenAnew says that the task was given something else to do since it was judged.
var errGivenAnew = errors.New("prompted meanwhile")

// carryOut does what a judgement comes to. Most come to nothing new, and then it is false.
func (l *look) carryOut(ctx context.Context, v *soldier.Verdict) bool {
	t := l.watch.task
	if v.To == task.Running && t.Camp != nil {
		// A finished task that works again is running only if it still has where to work.
		if _, err := os.Stat(t.Camp.Path); err != nil {
			return false
		}
	}
	if !v.Changes(t) && !l.moved(t) {
		return false
	}
	if l.time.awake() >= time.Duration(l.watch.project.stuck.Load()) {
		l.apply(ctx, v)
	}
	return true
}

// apply saves what a judgement comes to, and with it the wake of the commander, if it is news. What was decided is
// carried out though the sentinel is about to end; a task that somebody else has changed meanwhile is left to them.
func (l *look) apply(ctx context.Context, v *soldier.Verdict) {
	ctx = context.WithoutCancel(ctx)
	w := l.watch
	was := w.task
	change := func(t *task.Task) error {
		if !t.PromptedAt.Equal(was.PromptedAt) {
			return errGivenAnew
		}
		v.Apply(t, l.seen.Wall)
		if a := l.seen.Agent; l.moved(t) {
			t.FormerPanes = append(t.FormerPanes, t.Herdr.Pane)
			t.Herdr.Pane, t.Herdr.Tab, t.Herdr.Workspace = a.PaneID, a.TabID, a.WorkspaceID
		}
		return nil
	}
	var saved task.Task
	var err error
	if v.News() {
		saved, err = w.project.tasks.Transition(ctx, was.ID, was.Status, l.commander(was), func(t *task.Task) (wake.Wake, error) {
			err := change(t)
			return l.wake(t, v), err
		})
	} else {
		saved, err = w.project.tasks.Update(ctx, was.ID, was.Status, change)
	}
	if saved.ID != "" {
		w.task, w.of = &saved, nil // also where only the wake still has to enter
	}
	if err != nil {
		l.failed(was, v, err)
		return
	}
	if v.To != "" || v.Dialog {
		l.Log.Info("task", "id", was.ID, "project", w.project.Root, "from", was.Status, "to", saved.Status, "dialog", v.Dialog, "by", v.Evidence.By)
	}
}

// moved reports whether the soldier's pane has another id than the task knows: its terminal is the same, or herdr says so.
func (l *look) moved(t *task.Task) bool {
	a := l.seen.Agent
	return a != nil && t.Herdr != nil && a.PaneID != t.Herdr.Pane &&
		(a.TerminalID == t.Herdr.TerminalID || l.watch.moved == moved{t.Herdr.Pane, a.PaneID})
}

func (l *look) failed(t *task.Task, v *soldier.Verdict, err error) {
	_, conflict := errors.AsType[*task.Conflict](err)
	_, none := errors.AsType[*task.NotFound](err)
	if conflict || none || errors.Is(err, errGivenAnew) {
		return
	}
	if errors.Is(err, lock.ErrHeld) {
		// It was waited for long enough. The rest of the project's tasks are not to hold up the sweep as well.
		l.watch.project.stuck.Store(int64(l.time.awake() + interval))
	}
	l.Log.Error("task is not saved", "id", t.ID, "to", v.To, "err", err)
}

// wake is what the commander is told. The task says the rest.
func (l *look) wake(t *task.Task, v *soldier.Verdict) wake.Wake {
	w := wake.Wake{Producer: "vx sentinel", Detail: v.Note}
	switch {
	case v.Dialog && t.Herdr != nil:
		w.Dialog = "pane " + t.Herdr.Pane
	case v.Dialog:
		w.Dialog = fmt.Sprint("process ", t.Session.PID)
	case v.To == task.Blocked:
		w.Detail = v.Question
		for _, option := range v.Options {
			w.Detail += "\n- " + option
		}
	}
	return w
}

// commander is the queue where the commander listens: in the project that it dispatched from, else in the task's own.
func (l *look) commander(t *task.Task) *wake.Queue {
	own := l.watch.project.Project
	if t.CommanderProject == "" || t.CommanderProject == own.Root || !filepath.IsAbs(t.CommanderProject) {
		return l.queue(own)
	}
	q := l.queue(l.Dir.Project(t.CommanderProject))
	if err := q.Ensure(); err != nil {
		l.Log.Error("the commander's queue cannot be used, its news waits with the task", "id", t.ID, "commander", t.CommanderProject, "err", err)
		return l.queue(own)
	}
	return q
}
