package soldier

import (
	"strings"
	"time"

	"vx/internal/herdr"
	"vx/internal/screen"
	"vx/internal/task"
)

// judgeFinished is the rule of a finished task whose soldier works again: seen so twice, it is running, and its next end
// is a transition like any other.
func judgeFinished(t *task.Task, o *Look, m *Memory, v *Verdict) {
	switch {
	case o.Held || o.Now < m.held:
		return
	case t.Herdr != nil && (o.Agent == nil || !same(t, o.Agent)):
		m.again.clear()
		return
	case t.Herdr == nil && o.Client == nil:
		v.Need |= NeedClient
		return
	case m.end == nil && o.Proof == nil:
		v.Need |= NeedProof // from here on, more is news
		return
	case m.end == nil:
		m.finish(o)
	}
	if t.Status == task.Unconfirmed && !t.BackgroundSince.IsZero() {
		heldTooLong(t, o, m, v)
		return
	}
	e := weigh(t, o)
	if !goesOn(e) {
		m.again.clear()
		return
	}
	if o.Client == nil && HasRecord(kindOf(t, o)) && e.rank != byTitle {
		v.Need |= NeedClient
		return
	}
	if !m.again.open {
		m.again.mark(o.Now)
	}
	if o.Now-m.again.since < time.Second {
		v.Need |= NeedAgain
		return
	}
	head := m.end.head
	if head == "" && t.Camp != nil {
		// Its branch could not be read at the end. Against no head at all, what was delivered before would be new.
		if o.Proof == nil {
			v.Need |= NeedProof
			return
		}
		head = o.Proof.Head
	}
	reopen(v)
	v.Evidence = e
	v.Head, v.Prompted = head, t.UpdatedAt
}

// goesOn reports whether a soldier that had finished is in the middle of something. Its own record is believed also where
// that waits for a person or goes on in the background: the turn before that may have been too short to be seen.
func goesOn(e Evidence) bool {
	return e.State == screen.Working || e.rank == byRecord && (e.State == screen.Blocked || e.State == screen.Background)
}

func reopen(v *Verdict) {
	v.To = task.Running
	v.Stamps = Stamps{}
}

// same reports whether the agent in a task's pane is still its soldier. A pane is used for other things afterwards.
func same(t *task.Task, a *herdr.Agent) bool {
	switch {
	case t.Agent != "" && a.Kind != "" && a.Kind != t.Agent:
		return false
	case t.Camp == nil, t.Herdr.Agent != "" && a.Name == t.Herdr.Agent:
		return true
	}
	return inside(a.ForegroundCWD, t.Camp.Path) || inside(a.CWD, t.Camp.Path)
}

func inside(dir, camp string) bool { return dir == camp || strings.HasPrefix(dir, camp+"/") }

// heldTooLong is for a soldier whose background work was waited for in vain. It is running again once something moves:
// its state, its proof, or the marks on its screen, which leave.
func heldTooLong(t *task.Task, o *Look, m *Memory, v *Verdict) {
	if seqOf(o) != m.end.seq {
		reopen(v)
		return
	}
	want := missingParts(o, NeedProof)
	if o.Client == nil && HasRecord(kindOf(t, o)) {
		want |= NeedClient
	}
	if want != 0 {
		v.Need |= want
		return
	}
	if o.Proof.any() && o.Proof.Head != m.end.head {
		reopen(v)
		return
	}
	e := weigh(t, o)
	if want := missingParts(o, textWanted(e)); want != 0 {
		v.Need |= want
		return
	}
	running, _ := runningLine(t, o, e)
	if e.State == screen.Idle && !running {
		reopen(v)
	}
}
