package herdrtest

import (
	"context"
	"time"
)

// Step is one thing that an agent does. What it does not name stays as it is.
type Step struct {
	After  time.Duration // after the step before, in the fake's time
	State  string        // Idle, Working, Blocked or Unknown
	Screen string
	Title  string
	Do     func(*Pane) // anything else, after the above: (*Pane).Exit, (*Pane).Close, a commit in its worktree
}

// Launch is an agent.start.
type Launch struct {
	Name string
	Kind string
	Args []string
	Env  map[string]string // of its process: what the pane was made with, and herdr's own
	CWD  string
}

// OnLaunch says what agents of a kind do that agent.start starts, from the moment that herdr finds them. Without it, and with
// the kind of an agent that nothing was said about, they become idle after the startup grace.
func (s *Server) OnLaunch(kind string, start func(*Pane, Launch) []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launch[kind] = start
}

// OnPrompt says what the agent does when a text was submitted to it. Without it, it works until the test says otherwise. No
// steps at all make a prompt that stalls.
func (p *Pane) OnPrompt(answer func(p *Pane, text string) []Step) {
	defer p.lock()()
	p.onPrompt = answer
}

// Run makes the agent go through the steps, instead of what it was at. It returns at once; a first step without After has then
// been done.
func (p *Pane) Run(steps ...Step) {
	unlock := p.lock()
	p.run(nil)
	unlock()
	for len(steps) > 0 && steps[0].After <= 0 {
		p.take(steps[0], nil)
		steps = steps[1:]
	}
	defer p.lock()()
	p.run(steps)
}

// run goes through the steps beside whatever else happens. The caller holds the lock.
func (p *Pane) run(steps []Step) {
	p.script.stop()
	p.script = nil
	if len(steps) == 0 || p.closed {
		return
	}
	ctx, cancel := context.WithCancel(p.s.ctx)
	own := &script{cancel: cancel}
	p.script = own
	p.s.work.Go(func() {
		defer cancel()
		for _, step := range steps {
			if !p.s.sleep(ctx, step.After) || !p.take(step, own) {
				return
			}
		}
	})
}

// take does a step; false when the script that it belongs to has been replaced meanwhile.
func (p *Pane) take(step Step, of *script) bool {
	unlock := p.lock()
	if p.script != of {
		unlock()
		return false
	}
	if step.Screen != "" {
		p.show(step.Screen)
	}
	if step.Title != "" {
		p.retitle(step.Title)
	}
	if step.State != "" {
		p.s.setRaw(p, step.State)
	}
	unlock()
	if step.Do != nil {
		step.Do(p)
	}
	return true
}

// script is a run of steps that can be stopped.
type script struct{ cancel context.CancelFunc }

func (s *script) stop() {
	if s != nil {
		s.cancel()
	}
}

// Backing puts something real behind a pane, as a client in a tmux. Each func may be nil: then the test says by hand. They are
// called without any lock, and must return before the test ends.
type Backing struct {
	Screen    func() string        // asked at each read
	Title     func() string        // asked every 300 ms, as State and Processes
	State     func() string        // herdr's word, which the real herdr finds on the screen
	Processes func() []Process     // of the foreground
	Prompt    func(string) error   // paste the text and press Enter
	Type      func(string) error   // type it
	Press     func([]string) error // press keys
	Close     func()               // the pane is closed
}

// Back puts something real behind the pane.
func (p *Pane) Back(b Backing) {
	unlock := p.lock()
	p.backing = &b
	unlock()
	p.look(b)
	p.s.work.Go(func() {
		for p.s.sleep(p.s.ctx, detectTick) && p.backedBy(&b) {
			p.look(b)
		}
	})
}

func (p *Pane) backedBy(b *Backing) bool {
	defer p.lock()()
	return p.backing == b && !p.closed
}

// look takes over what the backing says now.
func (p *Pane) look(b Backing) {
	if b.Title != nil {
		p.Title(b.Title())
	}
	if b.Processes != nil {
		p.Foreground(b.Processes()...)
	}
	if b.Screen != nil {
		p.Show(b.Screen())
	}
	if b.State == nil {
		return
	}
	if state := b.State(); state != "" {
		p.Set(state)
	}
}
