package herdr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Event is a hint that something has changed. herdr sends old ones anew (before 0.9), repeats them, and loses them: what
// is true is in the next [Client.Agents].
type Event struct {
	Type         string // pane_agent_status_changed, pane_agent_detected, pane_closed, pane_exited, pane_moved, or an unknown one
	PaneID       string
	PreviousPane string // of a pane that was moved
	Kind         string // of the agent
	Status       Status // the new one, or the last one of an agent that is gone
	Released     bool   // the agent is gone
}

// Stream is a subscription. Every error ends it.
type Stream struct {
	conn *conn
	in   *lines
}

// Subscribe has herdr send the changes of status in the panes, and what happens to panes as such. It lives until ctx
// ends, Close is called, or herdr closes it. One pane that does not exist fails all, with [PaneNotFound]. Each pane costs
// herdr a look every 100 ms.
func (c *Client) Subscribe(ctx context.Context, panes []string) (*Stream, error) {
	s, err := c.subscribe(ctx, panes)
	if err != nil {
		return nil, fmt.Errorf("herdr events.subscribe: %w", err)
	}
	return s, nil
}

func (c *Client) subscribe(ctx context.Context, panes []string) (*Stream, error) {
	type subscription struct {
		Type string `json:"type"`
		Pane string `json:"pane_id,omitempty"`
	}
	wanted := []subscription{{Type: "pane.agent_detected"}, {Type: "pane.closed"}, {Type: "pane.exited"}, {Type: "pane.moved"}}
	for _, pane := range panes {
		wanted = append(wanted, subscription{"pane.agent_status_changed", pane})
	}
	conn, err := c.send(ctx, c.patience(), "events.subscribe", struct {
		Subscriptions []subscription `json:"subscriptions"`
	}{wanted})
	if err != nil {
		return nil, err
	}
	s := &Stream{conn: conn, in: newLines(conn.file)}
	if err := s.acknowledged(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// acknowledged reads the answer to the subscription, and takes the deadline away. From here on nothing may be written:
// any byte ends the stream.
func (s *Stream) acknowledged() error {
	line, err := s.in.next()
	if err != nil {
		return s.conn.explain(err)
	}
	if _, err := open(line, "events.subscribe", "subscription_started"); err != nil {
		return err
	}
	if !s.conn.stop() {
		return ended(s.conn.ctx.Err())
	}
	s.conn.stop = context.AfterFunc(s.conn.ctx, func() { s.conn.file.Close() })
	return s.conn.file.SetDeadline(time.Time{})
}

// Close ends the stream, and a Next that waits.
func (s *Stream) Close() { s.conn.close() }

// Next waits for the next event. The error is io.EOF when herdr has closed the stream (it stops, or hands over to a new
// one), os.ErrClosed after Close, that of ctx after its end, *[Error] when herdr says why ([EventsLost]).
func (s *Stream) Next() (Event, error) {
	e, err := s.next()
	if err == nil {
		return e, nil
	}
	s.Close()
	if err == io.EOF {
		return Event{}, io.EOF
	}
	return Event{}, fmt.Errorf("herdr events: %w", err)
}

func (s *Stream) next() (Event, error) {
	line, err := s.in.next()
	switch {
	case err == nil:
		return decodeEvent(line)
	case s.conn.ctx.Err() == nil && (err == io.EOF || errors.Is(err, os.ErrClosed)):
		return Event{}, err
	}
	return Event{}, s.conn.explain(err)
}

// decodeEvent reads both forms that come on one stream: of one pane with a dotted name, of the session with the same
// name underlined. Only the name must be there: an event of a kind that is not known here is a hint all the same.
func decodeEvent(line []byte) (Event, error) {
	var e struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
		Error *Error          `json:"error"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	if e.Error != nil && e.Error.Code != "" {
		return Event{}, e.Error
	}
	if e.Event == "" {
		return Event{}, fmt.Errorf("%w: no event", ErrGarbage)
	}
	var data struct {
		PaneID       string `json:"pane_id"`
		PreviousPane string `json:"previous_pane_id"`
		Kind         string `json:"agent"`
		Status       Status `json:"agent_status"`
		Final        Status `json:"final_status"`
		Released     bool   `json:"released"`
		Pane         Pane   `json:"pane"`
	}
	event := Event{Type: strings.ReplaceAll(e.Event, ".", "_")}
	if json.Unmarshal(e.Data, &data) != nil {
		return event, nil
	}
	event.PaneID, event.PreviousPane, event.Kind, event.Status, event.Released = data.PaneID, data.PreviousPane, data.Kind, data.Status, data.Released
	if event.PaneID == "" {
		event.PaneID, event.Kind, event.Status = data.Pane.PaneID, data.Pane.Kind, data.Pane.Status
	}
	if event.Status == "" {
		event.Status = data.Final
	}
	return event, nil
}
