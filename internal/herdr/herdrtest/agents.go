package herdrtest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
)

type targetParams struct {
	Target string `json:"target" need:"true"`
}

func (s *Server) agentInfos() []agentInfo {
	list := []agentInfo{}
	for _, p := range s.panes {
		if p.listed() && !p.hidden {
			list = append(list, s.agentInfo(p))
		}
	}
	return list
}

func (s *Server) listAgents(none) (any, *Error) {
	return answer("agent_list", "agents", s.agentInfos()), nil
}

func (s *Server) getAgent(q targetParams) (any, *Error) {
	p, e := s.target(q.Target)
	if e != nil {
		return nil, e
	}
	return answer("agent_info", "agent", s.agentInfo(p)), nil
}

// explainAgent tells why herdr believes what it tells: the schema leaves open in which words.
func (s *Server) explainAgent(q targetParams) (any, *Error) {
	p, e := s.target(q.Target)
	switch {
	case e != nil:
		return nil, e
	case p.agent == "":
		return nil, errorf("agent_explain_unavailable", "no agent runs in pane %s", p.id)
	case p.explain != nil:
		return answer("agent_explain", "explain", p.explain), nil
	}
	explain := map[string]any{
		"pane_id": p.id, "agent": p.agent, "state": p.raw, "authority": "screen", "screen_detection_skipped": p.hook,
		"visible_idle": p.raw == Idle && p.fallback == "" && !p.hook,
	}
	if p.hook {
		explain["authority"] = "hook"
	}
	if p.raw == Idle && p.fallback != "" {
		explain["fallback_reason"] = p.fallback
	}
	return answer("agent_explain", "explain", explain), nil
}

type renameParams struct {
	Target string  `json:"target" need:"true"`
	Name   *string `json:"name"`
}

func (s *Server) renameAgent(q renameParams) (any, *Error) {
	p, e := s.target(q.Target)
	if e != nil {
		return nil, e
	}
	name := ""
	if q.Name != nil {
		name = *q.Name
		if e := s.freeName(name, p); e != nil {
			return nil, e
		}
	}
	p.name = name
	s.notify()
	return answer("agent_info", "agent", s.agentInfo(p)), nil
}

// freeName says why the pane cannot have the name.
func (s *Server) freeName(name string, p *Pane) *Error {
	if !regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`).MatchString(name) {
		return errorf("invalid_agent_name", "invalid agent name %s", name)
	}
	for _, other := range s.panes {
		if other != p && other.name == name {
			return errorf("agent_name_taken", "agent name %s is taken by pane %s", name, other.id)
		}
	}
	return nil
}

func (s *Server) focusAgent(q targetParams) (any, *Error) {
	p, e := s.target(q.Target)
	if e != nil {
		return nil, e
	}
	s.focusPane(p)
	return answer("agent_info", "agent", s.agentInfo(p)), nil
}

type startParams struct {
	Name      string   `json:"name" need:"true"`
	Kind      string   `json:"kind" need:"true"`
	PaneID    string   `json:"pane_id" need:"true"`
	Args      []string `json:"args"`
	TimeoutMS *uint64  `json:"timeout_ms"`
}

// kinds are the agents that a herdr of the protocol can start.
func kinds(protocol int) []string {
	list := strings.Fields(`pi claude codex gemini cursor devin agy cline omp mastracode opencode copilot kimi kiro droid amp grok
		hermes kilo qodercli maki`)
	if protocol >= 20 {
		list = append(list, "qwen")
	}
	if protocol >= 22 {
		list = append(list, "muse")
	}
	return list
}

// startAgent types the agent's command into a shell and answers at once: the agent is a name that waits for its launch.
func (s *Server) startAgent(q startParams) (any, *Error) {
	p, e := s.startable(q)
	if e != nil {
		return nil, e
	}
	p.name, p.pending, p.raw, p.seq = q.Name, true, Unknown, 0
	l := Launch{Name: q.Name, Kind: q.Kind, Args: slices.Clone(q.Args), Env: p.environ(), CWD: p.cwd}
	start := s.launch[q.Kind]
	p.run([]Step{{After: unidentified, Do: func(p *Pane) { p.launched(l, start) }}})
	s.notify()
	return answer("agent_started", "agent", s.agentInfo(p), "argv", append([]string{q.Kind}, q.Args...)), nil
}

// startable is the pane, if the request can be served in it.
func (s *Server) startable(q startParams) (*Pane, *Error) {
	if e := s.freeName(q.Name, nil); e != nil {
		return nil, e
	}
	if !slices.Contains(kinds(s.profile), q.Kind) {
		return nil, errorf("unsupported_agent_kind", "unsupported agent kind %s", q.Kind)
	}
	for _, arg := range q.Args {
		if strings.ContainsAny(arg, "\x00\n\r") {
			return nil, errorf("invalid_agent_argument", "agent arguments must not contain control characters")
		}
	}
	if q.TimeoutMS != nil && (*q.TimeoutMS <= 3000 || *q.TimeoutMS > 300_000) {
		return nil, errorf("invalid_agent_timeout", "timeout_ms must be greater than 3000 and at most 300000")
	}
	p, e := s.pane(q.PaneID)
	switch {
	case e != nil:
		return nil, errorf("agent_pane_not_found", "pane %s not found", q.PaneID)
	case p.listed():
		return nil, errorf("agent_pane_busy", "pane %s hosts an agent already", p.id)
	case p.busy:
		return nil, errorf("agent_pane_unavailable", "pane %s is not at its shell prompt", p.id)
	}
	return p, nil
}

// launched is the moment at which herdr finds the agent's process.
func (p *Pane) launched(l Launch, start func(*Pane, Launch) []Step) {
	unlock := p.lock()
	if p.closed || p.agent != "" {
		unlock()
		return
	}
	p.s.detect(p, l.Kind)
	unlock()
	steps := []Step{{After: startupGrace, State: Idle}}
	if start != nil {
		steps = start(p, l)
	}
	if len(steps) > 0 {
		p.Run(steps...)
	}
}

type untilParams struct {
	Until     []statusWord `json:"until"`
	TimeoutMS *uint64      `json:"timeout_ms"`
}

type promptParams struct {
	Target string       `json:"target" need:"true"`
	Text   string       `json:"text" need:"true"`
	Wait   *untilParams `json:"wait"`
}

// promptAgent pastes a text and presses Enter, which herdr from 0.8.0 on does 300 ms later. Until 0.8.2 the answer does not wait
// for that Enter; from 0.9.0 on it waits until the agent took the prompt.
func (c *conn) promptAgent(q promptParams) (any, *Error) {
	s := c.s
	p, before, e := s.promptable(q)
	if e != nil {
		return nil, e
	}
	protocol := s.Protocol()
	submit := func() *Error {
		if protocol >= 19 && !s.sleep(s.ctx, enterDelay) {
			return errorf("server_unavailable", "shutting down")
		}
		return p.submit(q.Text)
	}
	if q.Wait == nil && protocol < 22 {
		s.work.Go(func() { submit() })
		return c.prompted(p)
	}
	if q.Wait != nil {
		c.alone()
	}
	if e := submit(); e != nil {
		return nil, e
	}
	if e := c.moved(p, before); e != nil {
		return nil, e
	}
	if q.Wait != nil {
		if reached, e := c.until(p, *q.Wait); reached == nil {
			return nil, e
		}
	}
	return c.prompted(p)
}

// promptable is the agent, and its sequence before the prompt.
func (s *Server) promptable(q promptParams) (*Pane, uint64, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, e := s.target(q.Target)
	switch {
	case e != nil:
		return nil, 0, e
	case strings.TrimSpace(q.Text) == "":
		return nil, 0, errorf("empty_agent_prompt", "agent prompt is empty")
	case p.agent == "" || p.pending:
		return nil, 0, errorf("agent_launch_pending", "agent %s is still starting", q.Target)
	case p.raw == Blocked && s.profile >= 20:
		return nil, 0, errorf("agent_blocked", "agent %s is blocked and cannot take a prompt", q.Target)
	}
	return p, p.seq, nil
}

func (c *conn) prompted(p *Pane) (any, *Error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return answer("agent_prompted", "agent", c.s.agentInfo(p)), nil
}

// moved waits until the agent's sequence is another one; from 0.9.0 on it has to be that of work or of a dialog. After 5 s
// without that the prompt counts as stalled.
func (c *conn) moved(p *Pane, before uint64) *Error {
	ctx, cancel := context.WithTimeout(c.ctx, c.s.after(stallTime))
	defer cancel()
	for {
		c.s.mu.Lock()
		seq, status, gone, changed := p.seq, p.status(), p.closed || p.agent == "", c.s.changed
		if c.s.profile >= 22 {
			seq = max(p.active, before)
		}
		c.s.mu.Unlock()
		switch {
		case gone:
			return errorf("agent_not_running", "agent in pane %s is not running", p.id)
		case seq != before:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errorf("agent_prompt_stalled", "agent prompt produced no observed state change within %d ms; "+
				"status is %s and state_change_seq remained %d", stallTime.Milliseconds(), status, before)
		}
	}
}

type waitParams struct {
	Target string `json:"target" need:"true"`
	untilParams
}

func (c *conn) waitAgent(q waitParams) (any, *Error) {
	c.s.mu.Lock()
	p, e := c.s.target(q.Target)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	c.alone()
	return c.until(p, q.untilParams)
}

// until waits for one of the statuses. It looks again when the agent's own state has moved; that somebody has seen a Done, it
// notices only from 0.9.0 on.
func (c *conn) until(p *Pane, q untilParams) (any, *Error) {
	if len(q.Until) == 0 {
		q.Until = []statusWord{Idle, Done, Blocked}
	}
	timeout := c.s.timeout(q.TimeoutMS)
	c.s.mu.Lock()
	c.s.waiting++
	defer c.s.leave()
	id, last, first := p.id, p.seq, true
	for {
		look := first || p.seq != last || c.s.profile >= 22
		first, last = false, p.seq
		switch {
		case p.closed || p.agent == "" || p.id != id:
			c.s.mu.Unlock()
			return nil, errorf("agent_not_running", "agent in pane %s is not running", id)
		case look && slices.Contains(q.Until, statusWord(p.status())):
			info := c.s.agentInfo(p)
			c.s.mu.Unlock()
			return answer("agent_info", "agent", info), nil
		}
		changed := c.s.changed
		c.s.mu.Unlock()
		select {
		case <-changed:
		case <-timeout:
			return nil, errorf("timeout", "timed out waiting for agent status")
		case <-c.ctx.Done():
			return nil, nil
		}
		c.s.mu.Lock()
	}
}

// Waiting is how many clients agent.wait and waiting prompts keep until an agent has one of their statuses. Each of them has
// looked once.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
}

// timeout is the channel of a request's timeout_ms; without one it never fires.
func (s *Server) timeout(ms *uint64) <-chan time.Time {
	if ms == nil {
		return nil
	}
	return time.After(s.after(time.Duration(*ms) * time.Millisecond))
}

type agentKeysParams struct {
	Target string   `json:"target" need:"true"`
	Keys   []string `json:"keys" need:"true"`
}

func (c *conn) sendAgentKeys(q agentKeysParams) (any, *Error) {
	c.s.mu.Lock()
	p, e := c.s.target(q.Target)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	if e := p.press("", q.Keys); e != nil {
		if e.Code == "pane_send_failed" {
			e.Code = "agent_send_keys_failed"
		}
		return nil, e
	}
	return fine()
}
