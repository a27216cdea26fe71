package herdr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vx/internal/herdr/herdrtest/schema"
)

const ack = `{"id":"?","result":{"type":"subscription_started"}}`

// subscribed is a stream of a server that acknowledges and then talks.
func subscribed(t *testing.T, talk func(conn net.Conn)) *Stream {
	t.Helper()
	c := serve(t, func(conn net.Conn, request []byte) {
		conn.Write(reply(t, request, ack))
		talk(conn)
	})
	s, err := c.Subscribe(t.Context(), []string{"w1:p2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestASubscriptionNamesThePanesAndWhatHappensToPanes(t *testing.T) {
	var asked string
	c := serve(t, func(conn net.Conn, request []byte) {
		asked = string(request)
		conn.Write(reply(t, request, ack))
	})
	s, err := c.Subscribe(t.Context(), []string{"w1:p2", "w1:p3"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []string{
		`{"type":"pane.agent_status_changed","pane_id":"w1:p2"}`, `{"type":"pane.agent_status_changed","pane_id":"w1:p3"}`,
		`{"type":"pane.agent_detected"}`, `{"type":"pane.closed"}`, `{"type":"pane.exited"}`, `{"type":"pane.moved"}`,
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("%s is not in %s", want, asked)
		}
	}
}

// The events of the fixtures, in both forms, and those that come with them, all in one packet with the acknowledgement.
func TestEventsOfBothFormsAreRead(t *testing.T) {
	var all []string
	for kind, line := range schema.Fixtures() {
		if kind == "event" || kind == "subscription_event" {
			all = append(all, string(line))
		}
	}
	moved := `{"event":"pane_moved","data":{"type":"pane_moved","previous_pane_id":"w1:p2","previous_workspace_id":"w1","previous_tab_id":"w1:t1","pane":` + paneAnswer + `}}`
	valid(t, "event", []byte(moved))
	all = append(all, moved,
		`{"event":"pane.agent_status_changed","data":{"pane_id":"w1:p2","workspace_id":"w1","agent_status":"pondering","new":{"field":[1]}}}`,
		`{"event":"weather_changed","data":["rain"]}`,
		`{"event":"tea_ready"}`)
	c := serve(t, func(conn net.Conn, request []byte) {
		conn.Write([]byte(string(reply(t, request, ack)) + strings.Join(all, "\n") + "\n"))
	})
	s, err := c.Subscribe(t.Context(), []string{"w1:p2"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []Event
	for {
		e, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	want := []Event{
		{Type: "pane_agent_status_changed", PaneID: "w1:p2", Status: Done, Kind: "claude"},
		{Type: "pane_agent_detected", PaneID: "w1:p2", Status: Idle, Kind: "claude", Released: true},
		{Type: "pane_agent_detected", PaneID: "w1:p2", Kind: "claude"},
		{Type: "pane_closed", PaneID: "w1:p2"},
		{Type: "pane_moved", PaneID: "w1:p3", PreviousPane: "w1:p2", Status: Unknown},
		{Type: "pane_agent_status_changed", PaneID: "w1:p2", Status: "pondering"},
		{Type: "weather_changed"},
		{Type: "tea_ready"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// More events than the buffer holds, with a line among them that is larger than it.
func TestEventsKeepTheirOrderHoweverManyCome(t *testing.T) {
	const n = 3000
	s := subscribed(t, func(conn net.Conn) {
		var all strings.Builder
		for i := range n {
			long := ""
			if i == n/2 {
				long = strings.Repeat("x", 5*firstBuf)
			}
			fmt.Fprintf(&all, `{"event":"pane_closed","data":{"type":"pane_closed","pane_id":"w1:p%d","x":"%s"}}`+"\n", i, long)
		}
		io.WriteString(conn, all.String())
	})
	for i := range n {
		if e, err := s.Next(); err != nil || e.PaneID != fmt.Sprintf("w1:p%d", i) {
			t.Fatalf("event %d is %+v, %v", i, e, err)
		}
	}
}

func TestAStreamOutlivesTheDeadlineOfItsRequest(t *testing.T) {
	over := make(chan struct{})
	c := serve(t, func(conn net.Conn, request []byte) {
		conn.Write(reply(t, request, ack))
		<-over
		conn.Write([]byte(`{"event":"pane_closed","data":{"pane_id":"w1:p9"}}` + "\n"))
	})
	c.Deadline = 300 * time.Millisecond
	s, err := c.Subscribe(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	time.AfterFunc(2*c.Deadline, func() { close(over) })
	if e, err := s.Next(); err != nil || e.PaneID != "w1:p9" {
		t.Errorf("event %+v, %v", e, err)
	}
}

func TestASubscriptionThatIsNotAcknowledgedFails(t *testing.T) {
	_, err := answers(t, `{"id":"?","error":{"code":"pane_not_found","message":"pane w1:p9 not found"}}`).Subscribe(t.Context(), []string{"w1:p9"})
	if Code(err) != PaneNotFound {
		t.Errorf("error is %v", err)
	}
	_, err = answers(t, `{"event":"pane_closed","data":{}}`).Subscribe(t.Context(), nil)
	is(t, err, ErrGarbage)
	_, err = serve(t, func(net.Conn, []byte) {}).Subscribe(t.Context(), nil)
	is(t, err, ErrCut)
	c := serve(t, func(conn net.Conn, _ []byte) { waitHangup(t, conn) })
	c.Deadline = 50 * time.Millisecond
	_, err = c.Subscribe(t.Context(), nil)
	is(t, err, ErrTimeout)
	_, err = (&Client{Socket: "/nonexistent"}).Subscribe(t.Context(), nil)
	is(t, err, ErrUnreachable)
}

func TestTheEndOfAStreamSaysWhy(t *testing.T) {
	end := func(talk func(conn net.Conn)) error {
		t.Helper()
		s := subscribed(t, talk)
		_, err := s.Next()
		if _, again := s.Next(); again == nil {
			t.Error("the stream goes on after its end")
		}
		return err
	}
	if err := end(func(net.Conn) {}); err != io.EOF {
		t.Errorf("closed by herdr: %v", err)
	}
	is(t, end(func(conn net.Conn) { conn.Write([]byte(`{"event":"pane_cl`)) }), ErrCut)
	is(t, end(func(conn net.Conn) { conn.Write([]byte("nonsense\n")) }), ErrGarbage)
	is(t, end(func(conn net.Conn) { conn.Write([]byte("{}\n")) }), ErrGarbage)
	lost := end(func(conn net.Conn) {
		conn.Write([]byte(`{"id":"events.subscribe","error":{"code":"events_lost","message":"lagging"}}` + "\n"))
	})
	if Code(lost) != EventsLost {
		t.Errorf("events lost: %v", lost)
	}
}

// Nothing may be written to a stream: any byte would end it. Closing is all that the server sees.
func TestCloseEndsANextThatWaits(t *testing.T) {
	hungUp := make(chan []byte, 1)
	s := subscribed(t, func(conn net.Conn) { hungUp <- waitHangup(t, conn) })
	time.AfterFunc(20*time.Millisecond, s.Close)
	if _, err := s.Next(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error is %v", err)
	}
	if written := <-hungUp; len(written) > 0 {
		t.Errorf("the client wrote %q", written)
	}
	s.Close()
}

func TestAnEndedContextEndsTheStream(t *testing.T) {
	c := serve(t, func(conn net.Conn, request []byte) {
		conn.Write(reply(t, request, ack))
		waitHangup(t, conn)
	})
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.Subscribe(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
