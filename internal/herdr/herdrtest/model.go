package herdrtest

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// The statuses that herdr tells. Done is none of an agent's own: it is Idle that nobody has seen yet.
const (
	Idle    = "idle"
	Working = "working"
	Blocked = "blocked"
	Unknown = "unknown"
	Done    = "done"
)

type workspace struct {
	id       string
	number   int
	label    string
	tabs     []*tab
	active   *tab
	lastTab  int // numbers are never used again
	lastPane int
}

type tab struct {
	id      string
	number  int
	label   string
	space   *workspace
	focused *Pane
}

// Pane is a pane of the fake, and the test's hold on the agent in it. Its methods may be called from any goroutine.
type Pane struct {
	ID string // as it was made; a move to another workspace changes the one that herdr tells, see CurrentID

	s        *Server
	id       string
	aliases  []string // ids before moves
	tab      *tab
	terminal string
	label    string
	cwd      string
	env      map[string]string
	closed   bool
	hidden   bool

	agent      string // kind; "" is a shell
	name       string
	raw        string // idle, working, blocked, unknown
	since      time.Time
	seen       bool
	seq        uint64
	active     uint64 // the sequence of its last work or dialog
	pending    bool
	ready      bool
	hook       bool // an integration has the authority, not the screen
	hookSeq    uint64
	hookSource string
	session    *sessionInfo
	fallback   string
	explain    map[string]any

	screen, viewport, title string
	scrollback              int
	revision                uint64
	metaTitle, display      string
	labels, tokens          map[string]string

	shellPID   int
	foreground []Process
	busy       bool

	draft    string
	prompts  []Prompt
	typed    []string
	keys     []string
	onPrompt func(*Pane, string) []Step
	backing  *Backing
	script   *script
}

// Process is one of a pane's foreground processes.
type Process struct {
	PID     int      `json:"pid"`
	Name    string   `json:"name"`
	Argv0   string   `json:"argv0,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	Cmdline string   `json:"cmdline,omitempty"`
	CWD     string   `json:"cwd,omitempty"`
}

// Prompt is a text that was submitted to an agent.
type Prompt struct {
	Text string
	At   time.Time
}

type sessionInfo struct {
	Source string `json:"source"`
	Agent  string `json:"agent"`
	Kind   string `json:"kind"`
	Value  string `json:"value"`
}

// number writes n in herdr's digits: bijective base 32, in which there is no empty digit and `0` is 32.
func number(n int) string {
	const digits = "123456789ABCDEFGHJKMNPQRSTVWXYZ0"
	var b []byte
	for ; n > 0; n = (n - 1) / 32 {
		b = append(b, digits[(n-1)%32])
	}
	slices.Reverse(b)
	return string(b)
}

// addWorkspace makes a workspace with a tab and a shell. The caller holds the lock, here and below.
func (s *Server) addWorkspace(label, cwd string, env map[string]string) *Pane {
	s.counts.workspace++
	w := &workspace{id: "w" + number(s.counts.workspace), number: s.counts.workspace, label: label}
	s.spaces = append(s.spaces, w)
	if _, e := s.workspaceByID(s.focus); e != nil {
		s.focus = w.id
	}
	s.emit("workspace_created", map[string]any{"workspace": s.workspaceInfo(w)})
	return s.addTab(w, "", cwd, env)
}

func (s *Server) addTab(w *workspace, label, cwd string, env map[string]string) *Pane {
	w.lastTab++
	t := &tab{id: w.id + ":t" + number(w.lastTab), number: w.lastTab, label: label, space: w}
	if t.label == "" {
		t.label = fmt.Sprint(t.number)
	}
	w.tabs = append(w.tabs, t)
	if w.active == nil {
		w.active = t
	}
	p := s.addPane(t, cwd, env)
	s.emit("tab_created", map[string]any{"tab": s.tabInfo(t)})
	return p
}

func (s *Server) addPane(t *tab, cwd string, env map[string]string) *Pane {
	w := t.space
	w.lastPane++
	id := w.id + ":p" + number(w.lastPane)
	p := &Pane{
		ID: id, s: s, id: id, tab: t, cwd: cwd, env: env, raw: Unknown, seen: true, since: time.Now(), terminal: s.newTerminal(),
	}
	s.panes = append(s.panes, p)
	if t.focused == nil {
		t.focused = p
	}
	s.emit("pane_created", map[string]any{"pane": s.paneInfo(p)})
	s.notify()
	return p
}

func (s *Server) newTerminal() string {
	s.counts.terminal++
	return fmt.Sprintf("term_%014x", s.counts.terminal)
}

// removePane closes a pane, and what becomes empty with it.
func (s *Server) removePane(p *Pane) {
	s.releaseAgent(p)
	p.closed = true
	s.panes = slices.DeleteFunc(s.panes, func(o *Pane) bool { return o == p })
	s.emit("pane_closed", map[string]any{"pane_id": p.id, "workspace_id": p.tab.space.id})
	s.leaveTab(p)
	s.notify()
}

// leaveTab sees to the tab that a pane has left: another pane gets its focus, and empty tabs and workspaces are closed.
func (s *Server) leaveTab(p *Pane) (closedTab, closedSpace string) {
	t := p.tab
	w := t.space
	rest := s.panesOf(func(o *Pane) bool { return o.tab == t && o != p })
	if len(rest) > 0 {
		if t.focused == p {
			t.focused = rest[0]
		}
		return "", ""
	}
	w.tabs = slices.DeleteFunc(w.tabs, func(o *tab) bool { return o == t })
	s.emit("tab_closed", map[string]any{"tab_id": t.id, "workspace_id": w.id})
	if len(w.tabs) > 0 {
		if w.active == t {
			s.activate(w.tabs[0])
		}
		return t.id, ""
	}
	s.spaces = slices.DeleteFunc(s.spaces, func(o *workspace) bool { return o == w })
	s.emit("workspace_closed", map[string]any{"workspace_id": w.id})
	if s.focus == w.id && len(s.spaces) > 0 {
		s.focus = s.spaces[0].id
	}
	return t.id, w.id
}

// activate shows a tab; what is in it has then been seen, if its workspace is the one that is shown.
func (s *Server) activate(t *tab) {
	t.space.active = t
	for _, p := range s.panes {
		if s.inView(p) {
			p.seen = true
		}
	}
	s.notify()
}

// focusPane shows a pane, as a user does who goes to it.
func (s *Server) focusPane(p *Pane) {
	s.focus = p.tab.space.id
	p.tab.focused = p
	s.activate(p.tab)
	p.seen = true
	s.emit("pane_focused", map[string]any{"pane_id": p.id, "workspace_id": p.tab.space.id})
}

// inView says whether a user would see what happens in the pane.
func (s *Server) inView(p *Pane) bool {
	return !s.blurred && p.tab.space.id == s.focus && p.tab.space.active == p.tab
}

// hasFocus says whether the pane is the one that keys go to.
func (s *Server) hasFocus(p *Pane) bool {
	return p.tab.space.id == s.focus && p.tab.space.active == p.tab && p.tab.focused == p
}

func (s *Server) panesOf(keep func(*Pane) bool) []*Pane {
	var some []*Pane
	for _, p := range s.panes {
		if keep(p) {
			some = append(some, p)
		}
	}
	return some
}

// pane finds one by its id or by one that it had before a move.
func (s *Server) pane(id string) (*Pane, *Error) {
	for _, p := range s.panes {
		if p.id == id || slices.Contains(p.aliases, id) {
			return p, nil
		}
	}
	return nil, errorf("pane_not_found", "pane %s not found", id)
}

// target finds an agent by its name or the current id of its pane, and by nothing else.
func (s *Server) target(name string) (*Pane, *Error) {
	for _, p := range s.panes {
		if p.listed() && (p.id == name || p.name != "" && p.name == name) {
			return p, nil
		}
	}
	return nil, errorf("agent_not_found", "agent target %s not found", name)
}

func (s *Server) workspaceByID(id string) (*workspace, *Error) {
	for _, w := range s.spaces {
		if w.id == id {
			return w, nil
		}
	}
	return nil, errorf("workspace_not_found", "workspace %s not found", id)
}

func (s *Server) tabByID(id string) (*tab, *Error) {
	for _, w := range s.spaces {
		for _, t := range w.tabs {
			if t.id == id {
				return t, nil
			}
		}
	}
	return nil, errorf("tab_not_found", "tab %s not found", id)
}

// listed says whether the pane belongs into agent.list: it hosts an agent, or has the name of one that is to come.
func (p *Pane) listed() bool { return p.agent != "" || p.name != "" }

// status is what herdr tells of the pane.
func (p *Pane) status() string {
	switch {
	case p.agent == "":
		return Unknown
	case p.raw == Idle && !p.seen:
		return Done
	}
	return p.raw
}

// setRaw moves an agent's own state. Only a real change draws a number.
func (s *Server) setRaw(p *Pane, raw string) {
	if p.raw == raw || p.agent == "" {
		return
	}
	p.raw, p.since = raw, time.Now()
	s.counts.seq++
	p.seq = s.counts.seq
	p.seen = raw != Idle || s.inView(p)
	if raw == Working || raw == Blocked {
		p.active = p.seq
	}
	if raw != Unknown {
		p.pending = false
	}
	if raw == Idle {
		p.ready = true
	}
	s.notify()
}

// detect makes the pane host an agent whose state is not known yet.
func (s *Server) detect(p *Pane, kind string) {
	p.agent, p.raw, p.since = kind, Unknown, time.Now()
	s.emit("pane_agent_detected", map[string]any{"pane_id": p.id, "workspace_id": p.tab.space.id, "agent": kind})
	s.notify()
}

// releaseAgent is the end of the agent in a pane, which is a shell from then on.
func (s *Server) releaseAgent(p *Pane) {
	p.script.stop()
	p.script = nil
	if p.agent != "" {
		s.emit("pane_agent_detected", map[string]any{
			"pane_id": p.id, "workspace_id": p.tab.space.id, "agent": p.agent, "released": true, "final_status": p.status(),
		})
	}
	p.agent, p.name, p.session, p.raw, p.seq = "", "", nil, Unknown, 0
	p.pending, p.ready, p.hook, p.seen = false, false, false, true
	p.hookSeq, p.draft, p.foreground = 0, "", nil
	s.notify()
}

// stripped is a terminal title without the signs in front that a client spins.
func stripped(title string) string {
	return strings.TrimLeftFunc(title, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsSymbol(r) || r > unicode.MaxLatin1 && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
