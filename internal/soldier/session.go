package soldier

import (
	"vx/internal/screen"
	"vx/internal/task"
)

// judgeSession is the order of the rules for a client that no herdr shows. Its own record is all there is to go by, and
// the end of its process is proof.
func judgeSession(t *task.Task, o *Look, m *Memory, v *Verdict) {
	switch {
	case o.Client == nil:
		v.Need |= NeedClient
		return
	case o.Client.State == ClientGone && o.Proof == nil:
		v.Need |= NeedProof
		return
	case o.Client.State == ClientGone:
		v.To = task.Interrupted
		v.Note = goneNote(t, "The client's process has ended", o.Proof)
		v.Evidence = Evidence{State: Gone, By: "process"}
		return
	}
	e := weigh(t, o)
	v.Evidence = e
	age := m.prompt.at(givenAt(t), o)
	switch {
	case e.State == screen.Working:
		m.busy(o)
		v.Stamps.clear()
	case age < settle:
	case age >= start && !m.started(t, o) && neverStarted(t, o, m, v):
	case e.State == screen.Blocked:
		waits(o, m, v, e)
	case e.State == screen.Unknown:
		m.dialog.clear()
		m.idle.clear()
	default:
		rests(t, o, m, v, e)
	}
}
