// Package herdr speaks to a running herdr, the terminal multiplexer that agents live in, over its API socket. It is for
// asking what the agents do and for starting and prompting them. It is not for deciding what an answer means: an error
// here says nothing about an agent. It has no command-line fallback, and keeps nothing: a crash in the middle leaves a
// connection that the kernel closes, and of a request that acts maybe its effect; only [ErrUnreachable] says that
// nothing was asked.
//
// Every request has its own connection: one line there, in one write, one line back, always with a deadline. Unknown
// fields and unknown values are no errors: herdr's protocols 17 to 22 differ in what they add, and the number also moves
// for reasons that this socket does not show. So there is a floor, [FloorProtocol], and never an equality.
//
// All text in answers comes from terminals and other programs: clean it before it is printed.
package herdr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// FloorProtocol is the oldest protocol that has what this package asks for (herdr 0.7.5).
const FloorProtocol = 17

const (
	patience   = 3 * time.Second
	acting     = 10 * time.Second // more for a request that acts: herdr itself watches a prompt for 5 s before it answers
	maxRequest = 1 << 20          // herdr's own limit
)

// What can be wrong with herdr itself; an *[Error] is its word on a request.
var (
	ErrUnreachable = errors.New("not reachable")      // no socket, nobody behind it, no right to it: nothing was asked
	ErrTimeout     = errors.New("no answer in time")  // frozen or overloaded
	ErrCut         = errors.New("connection cut off") // the answer never became whole: it stops, restarts or hands over
	ErrGarbage     = errors.New("not herdr's answer") // a line that is not the answer to this request
)

// Error is herdr's refusal of a request.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Codes of an [Error] that a caller may decide on.
const (
	AgentNotFound   = "agent_not_found"
	AgentNotRunning = "agent_not_running"
	AgentNotReady   = "agent_not_ready"
	AgentNotIdle    = "agent_not_idle"
	AgentBlocked    = "agent_blocked"
	AgentNameTaken  = "agent_name_taken"
	PaneNotFound    = "pane_not_found"
	PromptStalled   = "agent_prompt_stalled" // the text may have been taken all the same
	EventsLost      = "events_lost"
)

// Code is the code of herdr's refusal in err, "" when err is none.
func Code(err error) string {
	if refusal, ok := errors.AsType[*Error](err); ok {
		return refusal.Code
	}
	return ""
}

// Client asks the herdr behind one socket. It may be used by many goroutines.
type Client struct {
	Socket   string
	Deadline time.Duration // of each request, dial and all; 3 s where it is 0, and 10 s more where herdr has to act

	last  listing
	spare spare
}

func (c *Client) patience() time.Duration {
	if c.Deadline > 0 {
		return c.Deadline
	}
	return patience
}

// Pong is who answers at the socket.
type Pong struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
}

// Old reports that herdr is older than what this package can speak to.
func (p Pong) Old() bool { return p.Protocol < FloorProtocol }

// Ping asks who is there.
func (c *Client) Ping(ctx context.Context) (Pong, error) {
	var pong Pong
	err := c.ask(ctx, c.patience(), "ping", nothing{}, "pong", &pong)
	return pong, err
}

type nothing struct{} // params must be there even when there are none

// ask sends one request and decodes the result, which must be of the type want, into result; a nil result is not looked
// into.
func (c *Client) ask(ctx context.Context, within time.Duration, method string, params any, want string, result any) error {
	return c.exchange(ctx, within, method, params, func(line []byte) error {
		raw, err := open(line, method, want)
		if err != nil || result == nil {
			return err
		}
		if err := json.Unmarshal(raw, result); err != nil {
			return fmt.Errorf("%w: %w", ErrGarbage, err)
		}
		return nil
	})
}

// exchange is one connection: dial, ask, read one line, close. The line is decode's only while that runs.
func (c *Client) exchange(ctx context.Context, within time.Duration, method string, params any, decode func(line []byte) error) error {
	err := func() error {
		conn, err := c.send(ctx, within, method, params)
		if err != nil {
			return err
		}
		defer conn.close()
		in := c.spare.lines(conn.file)
		defer c.spare.keep(in)
		line, err := in.next()
		if err != nil {
			return conn.explain(err)
		}
		return decode(line)
	}()
	if err != nil {
		return fmt.Errorf("herdr %s: %w", method, err)
	}
	return nil
}

// request is a line that is sent. The id is the method: nothing else is ever asked on the same connection.
type request struct {
	ID     string `json:"id"`
	Method string `json:"method"`
	Params any    `json:"params"`
}

// encode is the request's line with its end.
func encode(method string, params any) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(request{ID: method, Method: method, Params: params}); err != nil {
		return nil, err
	}
	if line.Len() > maxRequest {
		return nil, fmt.Errorf("request of %d bytes is over herdr's limit of %d", line.Len(), maxRequest)
	}
	return line.Bytes(), nil
}

// send dials and writes the request. The whole line goes out in one write: herdr sleeps for 100 ms whenever it finds
// nothing more to read.
func (c *Client) send(ctx context.Context, within time.Duration, method string, params any) (*conn, error) {
	line, err := encode(method, params)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, c.Socket, time.Now().Add(within))
	if err != nil {
		return nil, err
	}
	// A herdr that refuses a request may close before it has read it, with its reason already on the way.
	if _, err := conn.file.Write(line); err != nil && !isHangup(err) {
		defer conn.close()
		return nil, conn.explain(err)
	}
	return conn, nil
}

// envelope is what every answer has around its result.
type envelope struct {
	ID     *string         `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// open takes the result out of an answer to the method, after the checks that make it one.
func open(line []byte, method, want string) (json.RawMessage, error) {
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	if err := e.check(method); err != nil {
		return nil, err
	}
	var kind struct{ Type string }
	if err := json.Unmarshal(e.Result, &kind); err != nil || kind.Type != want {
		return nil, fmt.Errorf("%w: result is no %s", ErrGarbage, want)
	}
	return e.Result, nil
}

func (e *envelope) check(method string) error {
	switch {
	case e.ID == nil:
		return fmt.Errorf("%w: no id", ErrGarbage)
	case e.Error != nil && e.Error.Code != "" && (*e.ID == method || *e.ID == ""):
		return e.Error // a request that herdr could not read at all is refused without its id
	case *e.ID != method:
		return fmt.Errorf("%w: id of another request", ErrGarbage)
	case len(e.Result) == 0:
		return fmt.Errorf("%w: neither result nor error", ErrGarbage)
	}
	return nil
}

// Epoch is one life of a socket: herdr binds a new file at each start. The time is there because a file system may give
// the new file the inode of the old one.
type Epoch struct {
	Dev, Inode uint64
	Changed    int64 // ns since 1970
}

// EpochOf is the epoch of the socket as it is now.
func EpochOf(socket string) (Epoch, error) {
	info, err := os.Stat(socket)
	if err != nil {
		return Epoch{}, fmt.Errorf("epoch: %w", err)
	}
	return epochOf(info), nil
}
