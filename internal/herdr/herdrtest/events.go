package herdrtest

import (
	"encoding/json"
	"maps"
	"strings"
	"time"
)

// ringSize is how many global events the server keeps, of all kinds together.
const ringSize = 512

type event struct {
	seq  uint64
	kind string
	data json.RawMessage
}

// emit puts a global event into the ring. The caller holds the lock.
func (s *Server) emit(kind string, data map[string]any) {
	data["type"] = kind
	raw, err := json.Marshal(data)
	if err != nil {
		s.t.Errorf("herdrtest: event %s: %v", kind, err)
		return
	}
	s.events++
	s.ring = append(s.ring, event{seq: s.events, kind: kind, data: raw})
	if len(s.ring) > ringSize {
		s.ring = s.ring[len(s.ring)-ringSize:]
	}
}

type subscribeParams struct {
	Subscriptions []subscription `json:"subscriptions" need:"true"`
}

type subscription struct {
	Type      kindWord    `json:"type"`
	PaneID    string      `json:"pane_id"`
	Status    *statusWord `json:"agent_status"`
	Source    sourceWord  `json:"source"`
	Lines     *int        `json:"lines"`
	Match     *matcher    `json:"match"`
	StripANSI *bool       `json:"strip_ansi"`
}

// kindWord is what can be subscribed to.
type kindWord string

func (w *kindWord) UnmarshalText(b []byte) error {
	return word(b, (*string)(w), append(globals(), "pane.agent_status_changed", "pane.output_matched", "pane.scroll_changed")...)
}

// globals are the subscriptions that concern no pane of their own.
func globals() []string {
	return strings.Fields(`workspace.created workspace.updated workspace.metadata_updated workspace.renamed workspace.moved
		workspace.reordered workspace.closed workspace.focused worktree.created worktree.opened worktree.removed tab.created
		tab.closed tab.focused tab.renamed tab.moved pane.created pane.closed pane.updated pane.focused pane.moved pane.exited
		pane.agent_detected layout.updated`)
}

// feed is one subscription of a stream: where it has got to, and what it has to send yet.
type feed struct {
	sub   subscription
	pane  *Pane  // of those of a pane
	kind  string // of the global ones
	at    uint64 // the last global event that it has looked at
	look  look
	match func(string) bool
	was   bool // the output matched when last looked at
	queue []due
}

// due is a line that is to be sent, not before its time.
type due struct {
	at   time.Time
	kind string
	line any
}

// look is what a status subscription compares from tick to tick.
type look struct {
	status, agent, title, display string
	labels                        map[string]string
}

func (l look) same(o look) bool {
	return l.status == o.status && l.agent == o.agent && l.title == o.title && l.display == o.display && maps.Equal(l.labels, o.labels)
}

func (p *Pane) looks() look {
	return look{status: p.status(), agent: p.agent, title: p.metaTitle, display: p.display, labels: p.labels}
}

// subscribe keeps the connection and sends what happens: each subscription one event every 100 ms at most.
func (c *conn) subscribe(q subscribeParams) (any, *Error) {
	feeds, e := c.s.feeds(q.Subscriptions)
	if e != nil {
		return nil, e
	}
	c.alone()
	if !c.success(ok{"subscription_started"}) {
		return nil, nil
	}
	for c.s.sleep(c.ctx, tick) && c.s.wait(c.ctx) {
		for _, f := range feeds {
			d, lost := c.s.next(f)
			switch {
			case lost:
				return nil, errorf("events_lost", "subscriber fell behind, events were lost")
			case d != nil && !c.send(d.kind, d.line):
				return nil, nil
			}
		}
	}
	return nil, nil
}

// feeds readies the subscriptions. One bad pane among them refuses them all.
func (s *Server) feeds(subs []subscription) ([]*feed, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var feeds []*feed
	for _, sub := range subs {
		f := &feed{sub: sub}
		switch sub.Type {
		case "pane.agent_status_changed", "pane.output_matched", "pane.scroll_changed":
			if e := s.paneFeed(f); e != nil {
				return nil, e
			}
		default:
			f.kind = strings.Replace(string(sub.Type), ".", "_", 1)
			if s.profile >= 22 { // before 0.9.0 it begins with all that the ring holds
				f.at = s.events
			}
		}
		feeds = append(feeds, f)
	}
	return feeds, nil
}

func (s *Server) paneFeed(f *feed) (e *Error) {
	if f.pane, e = s.pane(f.sub.PaneID); e != nil {
		return e
	}
	f.look = f.pane.looks()
	f.at = uint64(f.pane.scrollback)
	if f.sub.Status != nil { // with a filter, what matches already is told at once
		f.look = look{}
	}
	if f.sub.Type == "pane.output_matched" {
		if f.sub.Match == nil {
			return errorf("invalid_request", "invalid request: missing field `match`")
		}
		f.match, e = f.sub.Match.compile()
	}
	return e
}

// next looks at what happened and is the line that is due, if any. lost says that the ring ran over the subscriber.
func (s *Server) next(f *feed) (d *due, lost bool) {
	if f.pane != nil && f.match != nil {
		s.refresh(f.pane)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ring) > 0 && f.kind != "" && f.at+1 < s.ring[0].seq && f.at > 0 && s.o.EventsLost {
		return nil, true
	}
	if kind, line := s.observe(f); line != nil && !s.tamper.Lose {
		news := due{at: time.Now().Add(s.tamper.Lag), kind: kind, line: line}
		f.queue = append(f.queue, news)
		if s.tamper.Duplicate {
			f.queue = append(f.queue, news)
		}
	}
	if len(f.queue) == 0 || time.Now().Before(f.queue[0].at) {
		return nil, false
	}
	first := f.queue[0]
	f.queue = f.queue[1:]
	return &first, false
}

// observe is what the subscription sees now that it did not see before. What came and went between two ticks, it never sees.
func (s *Server) observe(f *feed) (kind string, line any) {
	switch {
	case f.kind != "":
		return "event", s.fromRing(f)
	case f.pane.closed:
		return "", nil
	case f.match != nil:
		return "subscription_event", s.output(f)
	case f.sub.Type == "pane.scroll_changed":
		return "subscription_event", s.scrolled(f)
	}
	return "subscription_event", s.statusChange(f)
}

func (s *Server) fromRing(f *feed) any {
	for _, e := range s.ring {
		if e.seq <= f.at {
			continue
		}
		f.at = e.seq
		if e.kind == f.kind {
			return map[string]any{"event": e.kind, "data": e.data}
		}
	}
	return nil
}

func (s *Server) statusChange(f *feed) any {
	now := f.pane.looks()
	if f.look.same(now) {
		return nil
	}
	was := f.look.status
	f.look = now
	if want := f.sub.Status; want != nil && (now.status != string(*want) || was == now.status) {
		return nil
	}
	return map[string]any{"event": f.sub.Type, "data": s.statusData(f.pane)}
}

// statusData is the body of a status event: nothing of what was before, no sequence, no name.
func (s *Server) statusData(p *Pane) map[string]any {
	data := map[string]any{"pane_id": p.id, "workspace_id": p.tab.space.id, "agent_status": p.status()}
	for key, value := range map[string]string{"agent": p.agent, "title": p.metaTitle, "display_agent": p.display} {
		if value != "" {
			data[key] = value
		}
	}
	if len(p.labels) > 0 {
		data["state_labels"] = p.labels
	}
	return data
}

func (s *Server) output(f *feed) any {
	r := s.readOf(f.pane, readParams{Source: f.sub.Source, Lines: f.sub.Lines, StripANSI: f.sub.StripANSI})
	line, found := firstMatch(r.Text, f.match)
	news := found && !f.was
	f.was = found
	if !news {
		return nil
	}
	return map[string]any{"event": f.sub.Type, "data": map[string]any{"pane_id": f.pane.id, "matched_line": line, "read": r}}
}

func (s *Server) scrolled(f *feed) any {
	if f.at == uint64(f.pane.scrollback) {
		return nil
	}
	f.at = uint64(f.pane.scrollback)
	return map[string]any{"event": f.sub.Type, "data": map[string]any{
		"pane_id": f.pane.id, "workspace_id": f.pane.tab.space.id, "scroll": f.pane.scroll(),
	}}
}

type eventWaitParams struct {
	Match struct {
		Event  string      `json:"event"`
		PaneID string      `json:"pane_id"`
		Status *statusWord `json:"agent_status"`
	} `json:"match_event" need:"true"`
	TimeoutMS *uint64 `json:"timeout_ms"`
}

// waitEvent is a subscription with a filter that ends with its first event.
func (c *conn) waitEvent(q eventWaitParams) (any, *Error) {
	if q.Match.Event != "pane_agent_status_changed" || q.Match.Status == nil {
		return nil, errorf("unsupported_event_wait_match", "only pane_agent_status_changed can be waited for")
	}
	feeds, e := c.s.feeds([]subscription{{Type: "pane.agent_status_changed", PaneID: q.Match.PaneID, Status: q.Match.Status}})
	if e != nil {
		return nil, e
	}
	c.alone()
	timeout := c.s.timeout(q.TimeoutMS)
	for {
		c.s.mu.Lock()
		line := c.s.statusChange(feeds[0])
		data := c.s.statusData(feeds[0].pane)
		c.s.mu.Unlock()
		if line != nil {
			data["type"] = q.Match.Event
			return answer("wait_matched", "event", map[string]any{"event": q.Match.Event, "data": data}), nil
		}
		select {
		case <-time.After(c.s.after(tick)):
		case <-timeout:
			return nil, errorf("timeout", "timed out waiting for event")
		case <-c.ctx.Done():
			return nil, nil
		}
	}
}
