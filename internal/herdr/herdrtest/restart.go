package herdrtest

import (
	"context"
	"time"
)

// After says what a herdr that was restarted makes of the agents that it had. All of these have been seen.
type After int

// What becomes of agents.
const (
	Resumed  After = iota // started anew from their sessions: unknown, then idle after the startup grace
	Nameless              // the same, but their names are lost
	Shells                // gone; their panes are shells
	Names                 // listed by name only, and never started again
	Ghosts                // listed as idle and ready, with no process behind them, and a screen that is empty
)

// Restart ends the server and starts it anew: streams end, the socket is a new file, pane ids stay, terminal ids do not, and
// the sequence begins again. It returns when the new server listens.
func (s *Server) Restart(after After) {
	s.t.Helper()
	s.Stop()
	s.mu.Lock()
	s.counts.seq, s.ring, s.events = 0, nil, 0
	for _, p := range s.panes {
		p.reborn(after)
	}
	s.notify()
	s.mu.Unlock()
	s.Start()
}

// reborn is the pane in a new server. The caller holds the lock.
func (p *Pane) reborn(after After) {
	kind, name := p.agent, p.name
	p.script.stop()
	p.script, p.terminal, p.screen, p.title = nil, p.s.newTerminal(), "", ""
	p.agent, p.name, p.raw, p.seq, p.seen = "", "", Unknown, 0, true
	p.pending, p.ready, p.hook, p.foreground, p.hidden = false, false, false, nil, false
	if kind == "" {
		return
	}
	switch after {
	case Resumed, Nameless:
		p.agent = kind
		if after == Resumed {
			p.name = name
		}
		p.run([]Step{{After: startupGrace, State: Idle}})
	case Shells:
		p.session = nil
	case Names:
		p.name = name
	case Ghosts:
		p.name, p.agent, p.raw, p.ready = name, kind, Idle, true
	}
}

// Handoff puts a new server in the place of the running one, with the panes and their processes: streams end, the socket is a
// new file, and for so long, in the fake's time, all agents are Unknown with no sequence. Then they are what they were, with
// sequences that begin again; what the test made of them meanwhile stays.
func (s *Server) Handoff(unknown time.Duration) {
	s.t.Helper()
	s.Stop()
	s.mu.Lock()
	s.counts.seq, s.ring, s.events = 0, nil, 0
	before := map[*Pane]string{}
	for _, p := range s.panes {
		if p.agent != "" {
			before[p] = p.raw
			p.raw, p.seq = Unknown, 0
		}
	}
	s.notify()
	s.mu.Unlock()
	s.Start()
	s.work.Go(func() {
		if s.sleep(s.ctx, unknown) {
			s.restore(before)
		}
	})
}

// restore lets agents that are still unknown be what they were.
func (s *Server) restore(before map[*Pane]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.panes {
		if raw, had := before[p]; had && p.seq == 0 {
			seen := p.seen
			s.setRaw(p, raw)
			p.seen = seen
		}
	}
}

// Await waits until the condition holds, and fails the test when it does not in so long a real time. The condition is asked
// again at each change of the fake, and now and then, without any lock.
func (s *Server) Await(most time.Duration, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, most)
	defer cancel()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			s.t.Fatalf("herdrtest: what was waited for did not come in %v", most)
		}
	}
}
