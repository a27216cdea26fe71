package soldier

import (
	"time"

	"vx/internal/herdr"
	"vx/internal/screen"
	"vx/internal/task"
)

// window measures for how long something has been so, and over how many sweeps.
type window struct {
	open        bool
	since, last time.Duration
	sweeps      int
}

// apart is how far two looks have to be from each other to count as two sweeps: an event brings a sweep forward.
const apart = 2500 * time.Millisecond

func (w *window) mark(now time.Duration) {
	switch {
	case !w.open:
		*w = window{true, now, now, 1}
	case now-w.last >= apart:
		w.last = now
		w.sweeps++
	}
}

// lasted reports whether it has been so for this long, over two sweeps at least.
func (w *window) lasted(now, long time.Duration) bool {
	return w.open && w.sweeps >= 2 && now-w.since >= long
}

func (w *window) clear() { *w = window{} }

// age is the age of something that the clock on the wall dates: its age at the first look, and from then on the time
// that the machine was awake.
type age struct {
	of    time.Time
	lead  time.Duration
	first time.Duration
}

func (a *age) at(of time.Time, o *Look) time.Duration {
	if !a.of.Equal(of) || a.of.IsZero() {
		*a = age{of, max(0, o.Wall.Sub(of)), o.Now}
	}
	return a.lead + o.Now - a.first
}

// Memory is what is remembered of a task's soldier from look to look.
type Memory struct {
	status task.Status
	// prompt is the dispatch or prompt that the rest is about.
	prompt  age
	worked  bool      // seen working since
	working time.Time // when last
	// torn: herdr lost sight of it while it worked. What it had delivered before proves no end.
	torn bool

	terminal string
	seq      uint64
	seen     bool // terminal and seq are known
	held     time.Duration

	missing, dialog, idle, background, steady, again window

	steadyOf string // what has to stay as it is while steady is open
	pause    age
	client   string // which one the record was of
	end      *end
}

// end is what a task was like when it finished: more than that is news.
type end struct {
	head string
	seq  uint64
}

func (m *Memory) finish(o *Look) { m.end = &end{o.Proof.Head, seqOf(o)} }

// givenAt is when the soldier was given what it works on.
func givenAt(t *task.Task) time.Time {
	if t.PromptedAt.IsZero() {
		return t.CreatedAt
	}
	return t.PromptedAt
}

// meet brings the memory up to what a look says of who is looked at.
func (m *Memory) meet(t *task.Task, o *Look) {
	if m.status != t.Status || !m.prompt.of.Equal(givenAt(t)) {
		kept := *m
		*m = Memory{status: t.Status, terminal: kept.terminal, seq: kept.seq, seen: kept.seen, held: kept.held, working: kept.working}
		m.client, m.end = kept.client, kept.end
	}
	m.prompt.at(givenAt(t), o)
	if o.Held {
		m.Unknown()
	}
	if o.Agent != nil {
		m.recognise(t, o)
	}
	if c := o.Client; c != nil && c.State == ClientAlive {
		// The same process as before: only herdr had lost sight of it.
		m.torn = m.torn && m.client != c.ID
		m.client = c.ID
	}
}

// recognise looks whether the agent is still what it was: another terminal, or a sequence that ran backwards, is a herdr
// that was restarted or handed over, and what it says at first is not to be trusted.
func (m *Memory) recognise(t *task.Task, o *Look) {
	a := o.Agent
	if !m.seen {
		m.terminal, m.seq, m.seen = a.TerminalID, a.Seq, true
		if t.Herdr != nil && t.Herdr.TerminalID != "" {
			m.terminal, m.seq = t.Herdr.TerminalID, t.Herdr.StateChangeSeq
		}
	}
	backwards := a.HasSeq && a.Seq < m.seq
	if other := a.TerminalID != m.terminal || backwards && a.TerminalID == ""; other || backwards {
		m.held = o.Now + epoch
		// In the terminal that it was in it has gone on, whatever herdr was handed over to.
		m.torn = m.torn || other && t.Status == task.Running && !m.idle.open && (t.Evidence == nil || t.Evidence.State == string(screen.Working))
		if m.working.IsZero() {
			m.working = o.Wall
		}
		m.Unknown()
	}
	m.terminal = a.TerminalID
	if a.HasSeq {
		m.seq = a.Seq
	}
}

// Unknown forgets what has lasted until now: the soldier could not be looked at.
func (m *Memory) Unknown() {
	for _, w := range []*window{&m.missing, &m.dialog, &m.idle, &m.background, &m.steady, &m.again} {
		w.clear()
	}
}

// Backwards reports whether the list shows this agent's sequence behind what it was: the herdr is another one.
func (m *Memory) Backwards(a *herdr.Agent) bool { return m.seen && a.HasSeq && a.Seq < m.seq }

// busy notes that the soldier was seen working.
func (m *Memory) busy(o *Look) {
	m.worked, m.working, m.torn = true, o.Wall, false
	m.Unknown()
}

// Unchanged stands for a look that is like the last one, whose verdict was Settled.
func (m *Memory) Unchanged(wall time.Time) {
	if m.status == task.Running {
		m.working = wall
	}
}

// started reports whether the soldier has worked since the last dispatch or prompt, as far as can be said.
func (m *Memory) started(t *task.Task, o *Look) bool {
	if m.worked {
		return true
	}
	if c := o.Client; c != nil && c.State == ClientAlive && c.Changed.After(givenAt(t)) {
		m.worked = true
		return true
	}
	a := o.Agent
	if a == nil || t.Herdr == nil {
		return false
	}
	if !a.HasSeq {
		// Nothing but having watched from the beginning can tell.
		return m.prompt.lead > settle
	}
	return a.Seq != t.Herdr.StateChangeSeq || a.TerminalID != t.Herdr.TerminalID && t.Herdr.TerminalID != ""
}

// unchanged counts looks at which the soldier was exactly as before.
func (m *Memory) unchanged(of string, now time.Duration) bool {
	if of != m.steadyOf {
		m.steady.clear()
		m.steadyOf = of
	}
	m.steady.mark(now)
	return m.steady.sweeps >= 2
}
