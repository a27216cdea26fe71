package herdrtest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

type readParams struct {
	PaneID    string     `json:"pane_id" need:"true"`
	Source    sourceWord `json:"source" need:"true"`
	Lines     *int       `json:"lines"`
	Format    formatWord `json:"format"`
	StripANSI *bool      `json:"strip_ansi"`
}

type agentReadParams struct {
	Target    string     `json:"target" need:"true"`
	Source    sourceWord `json:"source" need:"true"`
	Lines     *int       `json:"lines"`
	Format    formatWord `json:"format"`
	StripANSI *bool      `json:"strip_ansi"`
}

// read is what a read answers. The revision is always 0, and before 0.8.0 nothing says whether older rows were cut.
type read struct {
	PaneID      string `json:"pane_id"`
	WorkspaceID string `json:"workspace_id"`
	TabID       string `json:"tab_id"`
	Source      string `json:"source"`
	Format      string `json:"format"`
	Text        string `json:"text"`
	Revision    int    `json:"revision"`
	Truncated   *bool  `json:"truncated,omitempty"`
}

func (c *conn) readPane(q readParams) (any, *Error) {
	c.s.mu.Lock()
	p, e := c.s.pane(q.PaneID)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	return c.read(p, q)
}

func (c *conn) readAgent(q agentReadParams) (any, *Error) {
	c.s.mu.Lock()
	p, e := c.s.target(q.Target)
	switch {
	case e != nil:
	case p.agent == "" || p.pending:
		e = errorf("agent_launch_pending", "agent %s is still starting", q.Target)
	case deep(string(q.Source)) && p.raw == Working:
		e = errorf("agent_not_idle", "agent %s is working; a deep read would disturb it", q.Target)
	}
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	return c.read(p, readParams{Source: q.Source, Lines: q.Lines, Format: q.Format, StripANSI: q.StripANSI})
}

func (c *conn) read(p *Pane, q readParams) (any, *Error) {
	if q.Source == "detection" && c.s.o.NoDetection {
		return nil, errorf("invalid_request", "invalid request: unknown variant `detection`, "+
			"expected one of `visible`, `recent`, `recent_unwrapped`")
	}
	c.s.refresh(p)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return answer("pane_read", "read", c.s.readOf(p, q)), nil
}

// deep says whether herdr scrolls for reads of the source.
func deep(source string) bool { return strings.HasPrefix(source, "recent") }

// judge fails the test whose client asks for what would scroll the user's screen, whether it gets it or not.
func (s *Server) judge(r Request) {
	if s.o.AnyRead {
		return
	}
	if r.Method == "events.subscribe" && strings.Contains(string(r.Params), `"recent`) {
		s.t.Errorf("herdrtest: a subscription reads a recent source again and again: %s", clip(r.Params))
	}
	if !slices.Contains([]string{"pane.read", "agent.read", "pane.wait_for_output"}, r.Method) {
		return
	}
	name, source := cmp.Or(r.Param("pane_id"), r.Param("target")), r.Param("source")
	if deep(source) {
		s.t.Errorf("herdrtest: %s was read from %s, which scrolls the user's screen", name, source)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.panes {
		if p.raw != Working || p.id != name && p.name != name && !slices.Contains(p.aliases, name) {
			continue
		}
		if busy := time.Since(p.since); busy >= s.o.ReadGrace {
			s.t.Errorf("herdrtest: %s was read from %s while its agent works, for %v already", name, source, busy.Round(time.Millisecond))
		}
	}
}

// refresh asks what stands behind the pane for its screen.
func (s *Server) refresh(p *Pane) {
	s.mu.Lock()
	b := p.backing
	s.mu.Unlock()
	if b != nil && b.Screen != nil {
		p.Show(b.Screen())
	}
}

// readOf cuts out of the screen what was asked for. The caller holds the lock.
func (s *Server) readOf(p *Pane, q readParams) read {
	text := p.screen
	if q.Source == "visible" && p.scrollback > 0 {
		text = p.viewport
	}
	if q.Format == "" {
		q.Format = "text"
	}
	if q.Format == "text" || q.Source == "detection" || q.StripANSI == nil || *q.StripANSI {
		text = plain(text)
	}
	most := 0 // the whole
	if deep(string(q.Source)) {
		most = 80
	}
	if q.Lines != nil {
		most = min(*q.Lines, 1000)
	}
	text, cut := lastLines(text, most)
	r := read{
		PaneID: p.id, WorkspaceID: p.tab.space.id, TabID: p.tab.id, Source: string(q.Source), Format: string(q.Format), Text: text,
	}
	if s.profile >= 19 {
		r.Truncated = &cut
	}
	return r
}

// lastLines is the end of a text, and whether there was more.
func lastLines(text string, most int) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if most <= 0 || len(lines) <= most {
		return text, false
	}
	return strings.Join(lines[len(lines)-most:], ""), true
}

// plain is a text without its terminal sequences.
func plain(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	return sequence().ReplaceAllString(text, "")
}

func sequence() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[@-Z\\^_=>78c])`)
}

type outputParams struct {
	PaneID    string     `json:"pane_id" need:"true"`
	Source    sourceWord `json:"source" need:"true"`
	Match     matcher    `json:"match" need:"true"`
	Lines     *int       `json:"lines"`
	StripANSI *bool      `json:"strip_ansi"`
	TimeoutMS *uint64    `json:"timeout_ms"`
}

type matcher struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// compile makes a matcher of lines.
func (m matcher) compile() (func(line string) bool, *Error) {
	switch m.Type {
	case "substring":
		return func(line string) bool { return strings.Contains(line, m.Value) }, nil
	case "regex":
		re, err := regexp.Compile(m.Value)
		if err != nil {
			return nil, errorf("invalid_regex", "%v", err)
		}
		return re.MatchString, nil
	}
	return nil, errorf("invalid_params", "unknown match type %q", m.Type)
}

// firstMatch is the first line of a read that matches.
func firstMatch(text string, match func(string) bool) (string, bool) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); match(line) {
			return line, true
		}
	}
	return "", false
}

func (c *conn) waitForOutput(q outputParams) (any, *Error) {
	match, e := q.Match.compile()
	if e != nil {
		return nil, e
	}
	c.s.mu.Lock()
	p, e := c.s.pane(q.PaneID)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	c.alone()
	timeout := c.s.timeout(q.TimeoutMS)
	for {
		c.s.refresh(p)
		c.s.mu.Lock()
		r, closed, changed := c.s.readOf(p, readParams{Source: q.Source, Lines: q.Lines, StripANSI: q.StripANSI}), p.closed, c.s.changed
		c.s.mu.Unlock()
		if closed {
			return nil, errorf("pane_not_found", "pane %s not found", q.PaneID)
		}
		if line, found := firstMatch(r.Text, match); found {
			return answer("output_matched", "pane_id", p.id, "revision", 0, "matched_line", line, "read", r), nil
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, errorf("timeout", "timed out waiting for output")
		case <-c.ctx.Done():
			return nil, nil
		}
	}
}
