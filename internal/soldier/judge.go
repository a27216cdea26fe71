package soldier

import (
	"vx/internal/herdr"
	"vx/internal/screen"
	"vx/internal/task"
)

// judgeRunning is the order of the rules for a running task in a pane of herdr's.
func judgeRunning(t *task.Task, o *Look, m *Memory, v *Verdict) {
	if o.Held || o.Now < m.held {
		return
	}
	if lost(t, o, m, v) {
		return
	}
	e := weigh(t, o)
	v.Evidence = e
	if askRecord(t, o, e) {
		v.Need |= NeedClient
		return
	}
	v.Stamps.AgentNotFound = zero
	m.missing.clear()
	state := e.State
	if e.State == screen.Working && o.Agent != nil && o.Agent.Status.Rests() {
		// Two witnesses disagree: it is waited for, but not for ever.
		state = screen.Background
	}
	if e.State == screen.Working {
		m.worked = true
	}
	age := m.prompt.at(givenAt(t), o)
	switch {
	case age < settle:
		if e.State == screen.Working {
			m.busy(o)
			v.Stamps.clear()
		}
	case state == screen.Working:
		m.busy(o)
		v.Stamps.clear()
	case age >= start && !m.started(t, o) && neverStarted(t, o, m, v):
	case state == screen.Blocked:
		waits(o, m, v, e)
	case state == screen.Unknown:
		m.dialog.clear()
		m.idle.clear()
	default:
		rests(t, o, m, v, e)
	}
}

// askRecord reports whether the client's own record is to be asked before anything is said. While herdr and the title
// agree that it works, nothing has to be asked.
func askRecord(t *task.Task, o *Look, e Evidence) bool {
	if o.Client != nil || !HasRecord(kindOf(t, o)) {
		return false
	}
	if o.Agent == nil || o.Agent.Status != herdr.Working {
		return true
	}
	return e.rank != byTitle && o.Agent.Title != ""
}

// HasRecord reports whether a client of this kind keeps a record of its own.
func HasRecord(kind string) bool { return kind == "claude" }

func kindOf(t *task.Task, o *Look) string {
	if o.Agent != nil && o.Agent.Kind != "" {
		return o.Agent.Kind
	}
	return t.Agent
}

// lost is the rule of an agent that is not in the list, or whose process has ended though herdr does not know yet.
func lost(t *task.Task, o *Look, m *Memory, v *Verdict) bool {
	why := ""
	switch {
	case o.Client != nil && o.Client.State == ClientGone:
		why = "The client's process has ended"
	case o.Agent != nil, o.Client != nil && o.Client.State == ClientAlive:
		return false
	case o.Pane == nil:
		v.Need |= NeedPane
		return true
	case *o.Pane == PaneUnknown:
		m.missing.clear()
		return true
	case *o.Pane == PaneGone:
		why = "Its pane was closed"
	case o.Client == nil:
		v.Need |= NeedClient // a client may run that herdr does not see
		return true
	default:
		why = "The agent has left its pane"
	}
	m.missing.mark(o.Now)
	m.dialog.clear()
	m.idle.clear()
	since(&v.Stamps.AgentNotFound, o.Wall)
	v.Evidence = Evidence{State: Gone, By: "herdr"}
	if o.Client != nil && o.Client.State == ClientGone {
		v.Evidence.By = "process"
	}
	if !m.missing.lasted(o.Now, gone) {
		return true
	}
	if o.Proof == nil {
		v.Need |= NeedProof
		return true
	}
	v.To = task.Interrupted
	v.Note = goneNote(t, why, o.Proof)
	return true
}

// neverStarted is the rule of a soldier that did not take up what it was given. A proof shows that it did.
func neverStarted(t *task.Task, o *Look, m *Memory, v *Verdict) bool {
	if want := missingParts(o, NeedProof|NeedText); want != 0 {
		v.Need |= want
		return true
	}
	if o.Proof.any() {
		m.worked = true
		return false
	}
	m.idle.mark(o.Now)
	if m.idle.sweeps < 2 || o.Now-m.prompt.first < unproven {
		return true
	}
	v.To = task.Unconfirmed
	v.Note = neverNote(t, o)
	v.Output = output(o, "")
	v.Stamps.clear()
	return true
}

// missingParts are those of the wanted that the look lacks and that can be had. A busy agent is not read.
func missingParts(o *Look, want Need) Need {
	if o.Text != nil || o.Agent == nil || o.Agent.Status == herdr.Working {
		want &^= NeedText
	}
	if o.Proof != nil {
		want &^= NeedProof
	}
	if o.Pause != nil {
		want &^= NeedPause
	}
	return want
}

// waits is the rule of a dialog: after two sweeps the commander is told, once.
func waits(o *Look, m *Memory, v *Verdict, e Evidence) {
	m.dialog.mark(o.Now)
	m.idle.clear()
	v.Stamps.IdleUnconfirmed = zero
	if !v.Stamps.Dialog.IsZero() || m.dialog.sweeps < 2 && e.rank != byHerdr {
		return
	}
	if want := missingParts(o, NeedText); want != 0 {
		v.Need |= want
		return
	}
	if m.dialog.sweeps < 2 {
		return
	}
	if o.Agent == nil && o.Pending == nil {
		v.Need |= NeedPending // there is no pane to be read
		return
	}
	v.Stamps.Dialog = o.Wall
	v.Dialog = true
	v.Note = dialogNote(o, e)
}
