package soldier

import (
	"time"

	"vx/internal/screen"
	"vx/internal/task"
)

// Changes reports whether the verdict says anything that the task does not have yet. What the soldier is doing counts only
// where it is another thing, or is known in another way: a sweep that finds all as it was writes nothing.
func (v *Verdict) Changes(t *task.Task) bool {
	return v.To != "" || v.Dialog || v.Stamps != stampsOf(t) || v.tells(t)
}

func (v *Verdict) tells(t *task.Task) bool {
	e := v.Evidence
	return e.State != "" && !Finished(t.Status) && (t.Evidence == nil || t.Evidence.State != string(e.State) || t.Evidence.By != e.By)
}

// Settled reports whether the same look would come to the same verdict at any later time: the soldier works, or has finished
// and rests.
func (v *Verdict) Settled(t *task.Task) bool {
	return v.Need == 0 && v.To == "" && (t.Status != task.Running || v.Evidence.State == screen.Working)
}

// News reports whether the commander is to be woken.
func (v *Verdict) News() bool { return v.Dialog || v.To != "" && v.To != task.Running }

// Apply brings the task to what the verdict says.
func (v *Verdict) Apply(t *task.Task, wall time.Time) {
	if v.Evidence.State != "" && (v.To != "" || v.tells(t)) {
		e := v.Evidence.Task(wall)
		t.Evidence = &e
	}
	t.AgentNotFoundSince, t.IdleUnconfirmedSince, t.BackgroundSince = v.Stamps.AgentNotFound, v.Stamps.IdleUnconfirmed, v.Stamps.Background
	t.PauseSeenAt, t.DialogSince = v.Stamps.PauseSeen, v.Stamps.Dialog
	if v.To == "" {
		return
	}
	t.Status, t.Note = v.To, v.Note
	if v.To == task.Running {
		if !v.Prompted.IsZero() {
			t.Head, t.PromptedAt = v.Head, v.Prompted
		}
		return
	}
	t.Output = v.Output
	if v.To == task.Blocked {
		t.Decision = &task.Decision{Question: v.Question, Options: v.Options, AskedAt: wall}
	}
}
