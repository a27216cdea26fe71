package soldier

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vx/internal/herdr"
	"vx/internal/screen"
	"vx/internal/task"
)

var zero time.Time

// rests is what follows when herdr, or the client's own record, says that the turn is over.
func rests(t *task.Task, o *Look, m *Memory, v *Verdict, e Evidence) {
	v.Stamps.Dialog = zero
	m.dialog.clear()
	if want := missingParts(o, NeedPause|NeedProof|textWanted(e)); want != 0 {
		v.Need |= want
		return
	}
	paused := m.paused(o, v)
	if e.State == screen.Working || e.State == screen.Background {
		holds(t, o, m, v, e)
		return
	}
	if held, line := runningLine(t, o, e); held {
		e.hear(byScreen, "last turn", screen.Background, line)
		e.State, e.By = screen.Background, "last turn"
		v.Evidence = e
		holds(t, o, m, v, e)
		return
	}
	v.Stamps.Background = zero
	m.background.clear()
	if !m.started(t, o) && !o.Proof.any() {
		return // it is given its two minutes
	}
	m.idle.mark(o.Now)
	switch {
	case o.Agent == nil && o.Now-m.idle.since < time.Second:
		v.Need |= NeedAgain
		return
	case o.Agent != nil && o.Agent.Status == herdr.Working && !m.idle.lasted(o.Now, unproven):
		// herdr and the client's record disagree; one of them is about to follow.
		if o.Now-m.idle.since < apart {
			v.Need |= NeedAgain
		}
		return
	}
	ends(t, o, m, v, e, paused)
}

// ends is what an idle soldier's turn came to.
func ends(t *task.Task, o *Look, m *Memory, v *Verdict, e Evidence, paused bool) {
	if o.Agent == nil && o.Answer == nil {
		v.Need |= NeedAnswer // there is no pane to be read
		return
	}
	// A changing text may be work that nothing recognises, or a clock: that is not waited for longer than for a proof.
	sure := e.rank == byRecord || m.unchanged(sameness(o), o.Now) || m.idle.lasted(o.Now, unproven)
	switch {
	case asks(t, o, v):
		if e.rank == byHerdr && !sure {
			return
		}
		v.To = task.Blocked
	case paused:
		m.idle.clear()
		v.Stamps.IdleUnconfirmed = zero
	case proven(t, o, m, e):
		if e.rank != byRecord && o.Fallback == nil && o.Agent != nil {
			v.Need |= NeedExplain
			return
		}
		if !sure && (e.rank == byHerdr || o.Fallback != nil && *o.Fallback) {
			return
		}
		v.To = task.Done
	default:
		since(&v.Stamps.IdleUnconfirmed, o.Wall)
		if !m.idle.lasted(o.Now, unproven) {
			return
		}
		v.To = task.Unconfirmed
		v.Note = unprovenNote(t, o, m)
	}
	if v.To == "" {
		return
	}
	note := readNote(o)
	v.Output = output(o, note)
	if v.Note == "" {
		v.Note = note
	}
	v.Stamps.clear()
	m.finish(o)
}

// textWanted: with work in the background that the record shows, the pane need not be read before the end of the wait.
func textWanted(e Evidence) Need {
	if e.rank <= byTitle && (e.State == screen.Working || e.State == screen.Background) {
		return 0
	}
	return NeedText
}

// holds is the rule of work that goes on behind an agent at rest: it is waited for, half an hour at most.
func holds(t *task.Task, o *Look, m *Memory, v *Verdict, e Evidence) {
	m.worked = true
	m.idle.clear()
	m.steady.clear()
	m.background.mark(o.Now)
	v.Stamps.IdleUnconfirmed = zero
	since(&v.Stamps.Background, o.Wall)
	if !m.background.lasted(o.Now, Background) {
		return
	}
	if want := missingParts(o, NeedText); want != 0 {
		v.Need |= want
		return
	}
	note := backgroundNote(e)
	v.To = task.Unconfirmed
	v.Note = note
	v.Output = output(o, note)
	m.finish(o)
}

// runningLine reports whether the last turn itself shows work that runs. The client's record knows better.
func runningLine(t *task.Task, o *Look, e Evidence) (bool, string) {
	if e.rank == byRecord || o.Text == nil || !o.Text.readable() {
		return false, ""
	}
	line, running := screen.Running(kindOf(t, o), o.Text.Text)
	return running, line
}

// asks looks for a decision that the last turn asks for, and that was not given before.
func asks(t *task.Task, o *Look, v *Verdict) bool {
	question, options, ok := "", []string(nil), false
	switch {
	case o.Answer != nil:
		question, options, ok = screen.Asked(*o.Answer)
	case o.Text != nil && o.Text.readable():
		question, options, ok = screen.Decision(kindOf(t, o), o.Text.Text, lastPrompt(t))
	}
	if !ok || decided(t.Decision, question) {
		return false
	}
	v.Question, v.Options = question, options
	return true
}

func decided(d *task.Decision, question string) bool {
	return d != nil && (d.Answer != "" || d.Dismissed) && sameWords(d.Question, question)
}

func lastPrompt(t *task.Task) string {
	if n := len(t.Amendments); n > 0 {
		return t.Amendments[n-1].Text
	}
	return t.Prompt
}

// paused reports whether a pause is declared and young enough. It is remembered, since its end without a delivery is what
// the commander is to be told.
func (m *Memory) paused(o *Look, v *Verdict) bool {
	if o.Pause == nil || !o.Pause.Declared {
		return false
	}
	since(&v.Stamps.PauseSeen, o.Wall)
	return m.pause.at(o.Pause.Modified, o) < pausable
}

// proven reports whether there is proof, newer than the last dispatch or prompt, that the soldier delivered.
func proven(t *task.Task, o *Look, m *Memory, e Evidence) bool {
	switch {
	case o.Proof.delivers(t):
		// What was there while it still worked proves no end that nobody has seen.
		return !m.torn || o.Proof.At.After(m.working)
	case t.Camp == nil && e.rank == byRecord && e.State == screen.Idle:
		// A watched one has not been told to deliver anything: the end of its turn is what there is.
		return m.worked
	}
	return false
}

// sameness is what has to stay as it is between two looks.
func sameness(o *Look) string {
	s := fmt.Sprint(seqOf(o))
	if o.Text != nil {
		s += "\x00" + o.Text.Text
	}
	return s
}

func seqOf(o *Look) uint64 {
	if o.Agent == nil {
		return 0
	}
	return o.Agent.Seq
}

// sameWords compares texts that a terminal may have wrapped differently.
func sameWords(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }
