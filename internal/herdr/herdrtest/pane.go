package herdrtest

import (
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// Agent is an agent that is there already when the test begins to look.
type Agent struct {
	Kind      string // "" is claude
	Name      string
	State     string // its own state: Idle, Working, Blocked or Unknown; "" is Idle
	Unseen    bool   // an Idle one shows as Done
	Screen    string // what its pane shows, which may have ANSI sequences
	Title     string // its terminal's title
	CWD       string // "" is that of the pane that it is beside, else none
	Session   string // its session id
	Processes []Process
	Beside    *Pane // shares the tab of this pane; nil gives it a tab of its own, which is not the active one
}

// Root is the first pane: a shell in the active tab.
func (s *Server) Root() *Pane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.panes[0]
}

// Pane is the pane with the id; the test fails when there is none.
func (s *Server) Pane(id string) *Pane {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p, e := s.pane(id)
	if e != nil {
		s.t.Fatalf("herdrtest: %v", e)
	}
	return p
}

// Panes are all panes, oldest first.
func (s *Server) Panes() []*Pane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.panes)
}

// Shell adds a pane with a shell, in a tab of its own.
func (s *Server) Shell(cwd string) *Pane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addTab(s.home(), "", cwd, nil)
}

// home is the first workspace; a test may have closed all that were there.
func (s *Server) home() *workspace {
	if len(s.spaces) == 0 {
		s.addWorkspace("main", "/", nil)
	}
	return s.spaces[0]
}

// Agent adds a pane with an agent that is past its startup.
func (s *Server) Agent(a Agent) *Pane {
	if a.Kind == "" {
		a.Kind = "claude"
	}
	if a.State == "" {
		a.State = Idle
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var p *Pane
	if a.Beside != nil {
		p = s.addPane(a.Beside.tab, a.CWD, nil)
	} else {
		p = s.addTab(s.home(), "", a.CWD, nil)
	}
	if p.cwd == "" && a.Beside != nil {
		p.cwd = a.Beside.cwd
	}
	s.detect(p, a.Kind)
	s.setRaw(p, a.State)
	p.name, p.seen, p.ready = a.Name, !a.Unseen, true
	p.screen, p.title, p.foreground = a.Screen, a.Title, a.Processes
	if a.Session != "" {
		p.session = &sessionInfo{Source: "herdr:" + a.Kind, Agent: a.Kind, Kind: "id", Value: a.Session}
	}
	return p
}

// Env is the environment that herdr gives to the processes of the pane.
func (p *Pane) Env() []string {
	defer p.lock()()
	env := p.environ()
	var list []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// environ is what the pane was made with, under what herdr itself sets.
func (p *Pane) environ() map[string]string {
	env := map[string]string{}
	maps.Copy(env, p.env)
	maps.Copy(env, map[string]string{
		"HERDR_ENV": "1", "HERDR_SOCKET_PATH": p.s.Socket, "HERDR_PANE_ID": p.id,
		"HERDR_TAB_ID": p.tab.id, "HERDR_WORKSPACE_ID": p.tab.space.id,
	})
	if p.s.cli != "" {
		env["HERDR_BIN_PATH"] = filepath.Join(p.s.cli, "herdr")
	}
	return env
}

// lock holds the server until the function that it returns is called.
func (p *Pane) lock() func() {
	p.s.mu.Lock()
	return p.s.mu.Unlock
}

// CurrentID is the id that herdr tells, which a move to another workspace changes.
func (p *Pane) CurrentID() string {
	defer p.lock()()
	return p.id
}

// Name is the agent's name; "" for none.
func (p *Pane) Name() string {
	defer p.lock()()
	return p.name
}

// Working, Idle, Blocked and Unknown move the agent's own state.
func (p *Pane) Working() { p.Set(Working) }
func (p *Pane) Idle()    { p.Set(Idle) }
func (p *Pane) Blocked() { p.Set(Blocked) }
func (p *Pane) Unknown() { p.Set(Unknown) }

// Set moves the agent's own state to one of those. The same state again changes nothing, the sequence neither. A script that
// runs goes on: Run() without steps ends it.
func (p *Pane) Set(state string) {
	p.s.t.Helper()
	if !slices.Contains([]string{Idle, Working, Blocked, Unknown}, state) {
		p.s.t.Errorf("herdrtest: %q is no state of an agent", state)
		return
	}
	defer p.lock()()
	p.s.setRaw(p, state)
}

// Status is what herdr tells now: the agent's state, or Done.
func (p *Pane) Status() string {
	defer p.lock()()
	return p.status()
}

// Seq is the agent's state_change_seq.
func (p *Pane) Seq() uint64 {
	defer p.lock()()
	return p.seq
}

// Show is what the pane shows from now on, to every source of reads.
func (p *Pane) Show(screen string) {
	defer p.lock()()
	p.show(screen)
}

func (p *Pane) show(screen string) {
	if p.screen != screen {
		p.screen = screen
		p.revision++
		p.s.notify()
	}
}

// ScrollTo is what the user sees who scrolled back so many rows: `visible` reads get it, others the live bottom. 0 ends that.
func (p *Pane) ScrollTo(rows int, view string) {
	defer p.lock()()
	p.scrollback, p.viewport = rows, view
	p.s.notify()
}

// Title is the terminal's title from now on.
func (p *Pane) Title(title string) {
	defer p.lock()()
	p.retitle(title)
}

func (p *Pane) retitle(title string) {
	if p.title != title {
		p.title = title
		p.s.notify()
	}
}

// Foreground is what pane.process_info tells. The fake invents no pid: a client may look at the process behind it.
func (p *Pane) Foreground(list ...Process) {
	defer p.lock()()
	p.foreground = list
}

// ShellPID is the pane's shell.
func (p *Pane) ShellPID(pid int) {
	defer p.lock()()
	p.shellPID = pid
}

// Busy makes a shell run something, so that no agent can be started in it.
func (p *Pane) Busy(busy bool) {
	defer p.lock()()
	p.busy = busy
}

// Session is the session id that an integration reported; "" is none.
func (p *Pane) Session(id string) {
	defer p.lock()()
	p.session = nil
	if id != "" {
		p.session = &sessionInfo{Source: "herdr:" + p.agent, Agent: p.agent, Kind: "id", Value: id}
	}
}

// Fallback says that no rule of herdr's matches the screen, so that its idle is a guess: agent.explain gives the reason.
func (p *Pane) Fallback(on bool) {
	defer p.lock()()
	p.fallback = ""
	if on {
		p.fallback = "default_known_agent_idle_fallback"
	}
}

// Explain is what agent.explain tells from now on, instead of what follows from the pane's state.
func (p *Pane) Explain(explain map[string]any) {
	defer p.lock()()
	p.explain = explain
}

// Hide keeps the pane out of the lists, though it is there: herdr has been seen to forget a live agent.
func (p *Pane) Hide(hidden bool) {
	defer p.lock()()
	p.hidden = hidden
	p.s.notify()
}

// Focus shows the pane to the user: a Done becomes Idle.
func (p *Pane) Focus() {
	defer p.lock()()
	p.s.focusPane(p)
}

// Gone ends the agent at once: the pane is a shell, and the agent in no list.
func (p *Pane) Gone() {
	defer p.lock()()
	p.s.releaseAgent(p)
}

// Exit ends the agent as a process that ends is seen to: idle for a moment, then gone.
func (p *Pane) Exit() {
	defer p.lock()()
	p.script.stop()
	p.s.setRaw(p, Idle)
	p.run([]Step{{After: detectTick, Do: (*Pane).Gone}})
}

// Close closes the pane, as a user does.
func (p *Pane) Close() {
	p.s.closePanes(func(o *Pane) bool { return o == p })
}

// EndShell ends the pane's shell, which closes the pane.
func (p *Pane) EndShell() {
	unlock := p.lock()
	if !p.closed {
		p.s.emit("pane_exited", map[string]any{"pane_id": p.id, "workspace_id": p.tab.space.id})
	}
	unlock()
	p.Close()
}

// closePanes closes those panes, and what stands behind them.
func (s *Server) closePanes(which func(*Pane) bool) {
	s.mu.Lock()
	var ends []func()
	for _, p := range s.panesOf(which) {
		if p.backing != nil && p.backing.Close != nil {
			ends = append(ends, p.backing.Close)
		}
		s.removePane(p)
	}
	s.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// Prompts are the texts that were submitted to the agent in this pane, by agent.prompt or typed.
func (p *Pane) Prompts() []Prompt {
	defer p.lock()()
	return slices.Clone(p.prompts)
}

// Typed are the texts that were typed by send_text and send_input, submitted or not.
func (p *Pane) Typed() []string {
	defer p.lock()()
	return slices.Clone(p.typed)
}

// Keys are the keys that were pressed.
func (p *Pane) Keys() []string {
	defer p.lock()()
	return slices.Clone(p.keys)
}

// submit is the Enter behind a text: the agent takes it, and answers as its script says. Without the lock held.
func (p *Pane) submit(text string) *Error {
	unlock := p.lock()
	closed, answer, backing := p.closed, p.onPrompt, p.backing
	unlock()
	if closed {
		return errorf("agent_prompt_failed", "pane %s is closed", p.ID)
	}
	if backing != nil && backing.Prompt != nil {
		if err := backing.Prompt(text); err != nil {
			return errorf("agent_prompt_failed", "%v", err)
		}
	}
	unlock = p.lock()
	p.prompts = append(p.prompts, Prompt{Text: text, At: time.Now()})
	p.s.notify()
	unlock()
	steps := []Step{{State: Working}}
	switch {
	case answer != nil:
		steps = answer(p, text)
	case backing != nil:
		return nil
	}
	if len(steps) > 0 {
		p.Run(steps...)
	}
	return nil
}
