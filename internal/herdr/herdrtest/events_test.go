package herdrtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
)

// stream subscribes and takes the acknowledgement.
func stream(t *testing.T, srv *herdrtest.Server, subscriptions string) *client {
	t.Helper()
	c := dial(t, srv)
	c.put(request("events.subscribe", `{"subscriptions":[`+subscriptions+`]}`))
	want(t, "acknowledgement", parse(t, c.line()).at("type"), any("subscription_started"))
	return c
}

// event is one line of a stream.
type event struct {
	Event string
	Data  map[string]any
}

func (c *client) event() event {
	c.t.Helper()
	var e event
	line := c.line()
	if line == "" {
		return e
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		c.t.Fatalf("event %q: %v", line, err)
	}
	return e
}

// nothing wants no line for some ticks of a fast fake.
func (c *client) nothing() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if line, err := c.r.ReadString('\n'); err == nil {
		c.t.Errorf("an event came: %s", line)
	}
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
}

func statusOf(p *herdrtest.Pane, filter string) string {
	if filter != "" {
		filter = fmt.Sprintf(`,"agent_status":%q`, filter)
	}
	return fmt.Sprintf(`{"type":"pane.agent_status_changed","pane_id":%q%s}`, p.CurrentID(), filter)
}

func TestStatusEventsHaveADottedNameAndNoType(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	c := stream(t, srv, statusOf(p, ""))
	c.nothing()
	p.Working()
	e := c.event()
	want(t, "event", e.Event, "pane.agent_status_changed")
	want(t, "status", e.Data["agent_status"], any("working"))
	want(t, "type", e.Data["type"], nil)
	p.Idle()
	want(t, "an end that nobody saw", c.event().Data["agent_status"], any("done"))
	p.Focus()
	want(t, "the end, seen", c.event().Data["agent_status"], any("idle"))
	must(t, srv, "pane.report_metadata", fmt.Sprintf(`{"pane_id":%q,"source":"x","title":"new"}`, p.ID))
	e = c.event()
	want(t, "status with another title", e.Data["agent_status"], any("idle"))
	want(t, "title", e.Data["title"], any("new"))
	p.Close()
	c.nothing()
}

func TestAFilterTellsAtOnceWhatHoldsAlready(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Beside: srv.Root()})
	c := stream(t, srv, statusOf(p, "idle"))
	want(t, "at once", c.event().Data["agent_status"], any("idle"))
	p.Working()
	c.nothing()
	p.Idle()
	want(t, "again", c.event().Data["agent_status"], any("idle"))
	c.nothing()
}

func TestATurnBetweenTwoTicksIsNeverTold(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 0.5})
	p := srv.Agent(herdrtest.Agent{Beside: srv.Root()})
	c := stream(t, srv, statusOf(p, ""))
	p.Working()
	p.Idle()
	c.SetReadDeadline(time.Now().Add(time.Second))
	if line, err := c.r.ReadString('\n'); err == nil {
		t.Errorf("an event came: %s", line)
	}
	want(t, "sequence", p.Seq(), 3)
}

func TestGlobalEventsHaveATypeAndTellTheReleaseOfAnAgent(t *testing.T) {
	srv := start(t, 22)
	p := srv.Agent(herdrtest.Agent{})
	c := stream(t, srv, `{"type":"pane.agent_detected"},{"type":"pane.closed"},{"type":"pane.exited"}`)
	p.Gone()
	e := c.event()
	want(t, "event", e.Event, "pane_agent_detected")
	want(t, "type", e.Data["type"], any("pane_agent_detected"))
	want(t, "released", e.Data["released"], any(true))
	want(t, "final_status", e.Data["final_status"], any("idle"))
	p.EndShell()
	got := c.event().Event + " " + c.event().Event
	if got != "pane_closed pane_exited" && got != "pane_exited pane_closed" {
		t.Errorf("then came %s, want the exit and the close", got)
	}
}

func TestOldHerdrsBeginWithOldEventsAndNewOnesDoNot(t *testing.T) {
	for protocol, replays := range map[int]bool{17: true, 19: true, 20: true, 22: false} {
		srv := start(t, protocol)
		srv.Agent(herdrtest.Agent{})
		c := stream(t, srv, `{"type":"pane.agent_detected"}`)
		if replays {
			want(t, "old event", c.event().Event, "pane_agent_detected")
		}
		c.nothing()
		srv.Agent(herdrtest.Agent{Kind: "codex"})
		want(t, "new event", c.event().Data["agent"], any("codex"))
	}
}

func TestTheRingHoldsTheLast512Events(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 10000, Validate: schema.Validate})
	p := srv.Agent(herdrtest.Agent{Kind: "first"})
	for range 512 {
		p.Focus()
	}
	c := stream(t, srv, `{"type":"pane.focused"},{"type":"pane.agent_detected"}`)
	for range 512 {
		want(t, "event", c.event().Event, "pane_focused")
	}
	c.nothing()
}

func TestAStreamThatFellBehindLosesEventsOrEnds(t *testing.T) {
	for _, told := range []bool{false, true} {
		srv := herdrtest.New(t, herdrtest.Options{Profile: 22, EventsLost: told, Validate: schema.Validate})
		p := srv.Agent(herdrtest.Agent{})
		c := stream(t, srv, `{"type":"pane.focused"}`)
		p.Focus()
		want(t, "first", c.event().Event, "pane_focused")
		for range 600 {
			p.Focus()
		}
		var last string
		lines := 0
		for range 512 {
			line := c.line()
			if line == "" {
				break
			}
			last = line
			if lines++; !told && lines == 3 {
				break
			}
		}
		if ended := strings.Contains(last, "events_lost"); ended != told || last == "" {
			t.Errorf("after a loss came, last, %q; want an end with events_lost: %v", last, told)
		}
	}
}

func TestEachSubscriptionSendsOneEventATick(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Profile: 22})
	p := srv.Agent(herdrtest.Agent{})
	c := stream(t, srv, `{"type":"pane.focused"},`+statusOf(p, ""))
	began := time.Now()
	for range 4 {
		p.Focus()
	}
	p.Working()
	for range 5 { // four of one subscription, one of the other
		c.event()
	}
	if took := time.Since(began); took < 290*time.Millisecond {
		t.Errorf("four events came in %v, want three ticks or more", took)
	}
}

func TestOneBadPaneRefusesAWholeSubscription(t *testing.T) {
	srv := start(t, 20)
	refused(t, srv, "events.subscribe",
		`{"subscriptions":[{"type":"pane.closed"},{"type":"pane.agent_status_changed","pane_id":"w1:p9"}]}`, "pane_not_found")
}

func TestAnyByteOrHalfCloseOfTheClientEndsAStream(t *testing.T) {
	srv := start(t, 22)
	c := stream(t, srv, `{"type":"pane.closed"}`)
	c.put("x")
	want(t, "after a byte", c.line(), "")
	c = stream(t, srv, `{"type":"pane.closed"}`)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		t.Fatal("no half-close")
	}
	want(t, "after a half-close", c.line(), "")
}

func TestEventsCanComeTwiceLateOrNever(t *testing.T) {
	srv := start(t, 22)
	p := srv.Agent(herdrtest.Agent{Beside: srv.Root()})
	c := stream(t, srv, statusOf(p, ""))
	srv.TamperEvents(herdrtest.EventFaults{Duplicate: true})
	p.Working()
	want(t, "once", c.event().Data["agent_status"], any("working"))
	want(t, "twice", c.event().Data["agent_status"], any("working"))
	srv.TamperEvents(herdrtest.EventFaults{Lose: true})
	p.Idle()
	c.nothing()
	srv.TamperEvents(herdrtest.EventFaults{Lag: 300 * time.Millisecond})
	p.Working()
	c.nothing()
	want(t, "late", c.event().Data["agent_status"], any("working"))
}

func TestOutputAndScrollEventsAreOfOnePane(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Screen: "one\n"})
	c := stream(t, srv, fmt.Sprintf(`{"type":"pane.scroll_changed","pane_id":%q},{"type":"pane.output_matched","pane_id":%q,`+
		`"source":"detection","match":{"type":"substring","value":"tw"}}`, p.ID, p.ID))
	c.nothing()
	p.Show("one\ntwo\n")
	e := c.event()
	want(t, "event", e.Event, "pane.output_matched")
	want(t, "line", e.Data["matched_line"], any("two"))
	p.ScrollTo(3, "one\n")
	want(t, "event", c.event().Event, "pane.scroll_changed")
}

func TestOnlyAStatusCanBeWaitedForAsAnEvent(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	match := func(status, more string) string {
		return fmt.Sprintf(`{"match_event":{"event":"pane_agent_status_changed","pane_id":%q,"agent_status":%q}%s}`, p.ID, status, more)
	}
	c := dial(t, srv)
	c.put(request("events.wait", match("working", "")))
	p.Working()
	r := parse(t, c.line())
	want(t, "event", r.at("event.event"), any("pane_agent_status_changed"))
	want(t, "status", r.at("event.data.agent_status"), any("working"))
	refused(t, srv, "events.wait", match("blocked", `,"timeout_ms":500`), "timeout")
	refused(t, srv, "events.wait", `{"match_event":{"event":"pane_closed","pane_id":"w1:p1"}}`, "unsupported_event_wait_match")
}
