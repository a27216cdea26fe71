package herdrtest

import (
	"regexp"
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
	deep := strings.HasPrefix(string(q.Source), "recent")
	switch {
	case e != nil:
	case p.agent == "" || p.pending:
		e = errorf("agent_launch_pending", "agent %s is still starting", q.Target)
	case deep && p.raw == Working:
		c.s.judge(p, q.Source)
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
	c.s.judge(p, q.Source)
	return answer("pane_read", "read", c.s.readOf(p, q)), nil
}

// judge fails the test whose client reads what would scroll the user's screen. The caller holds the lock.
func (s *Server) judge(p *Pane, source sourceWord) {
	if s.o.AnyRead {
		return
	}
	if strings.HasPrefix(string(source), "recent") {
		s.t.Errorf("herdrtest: pane %s was read from %s, which scrolls the user's screen", p.id, source)
	}
	if p.agent != "" && p.raw == Working && time.Since(p.since) >= s.o.ReadGrace {
		s.t.Errorf("herdrtest: pane %s was read from %s while its agent works, for %v already",
			p.id, source, time.Since(p.since).Round(time.Millisecond))
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
	if strings.HasPrefix(string(q.Source), "recent") {
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
	if e == nil {
		c.s.judge(p, q.Source)
	}
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
