package herdrtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"time"
)

// Limits of a request, and the server's patience with a reader.
const (
	maxRequest     = 1 << 20
	requestTime    = 5 * time.Second
	sendTime       = 5 * time.Second
	tick           = 100 * time.Millisecond
	detectTick     = 300 * time.Millisecond
	unidentified   = 500 * time.Millisecond
	startupGrace   = 3 * time.Second
	enterDelay     = 300 * time.Millisecond
	stallTime      = 5 * time.Second
	defaultStartMS = 30_000
)

// patience is how long the server bears with a client, which is no faster in a fast fake: a second at least.
func (s *Server) patience(d time.Duration) time.Time {
	return time.Now().Add(max(s.after(d), min(d, time.Second)))
}

// Request is what a client asked.
type Request struct {
	ID     string
	Method string
	Params json.RawMessage
	At     time.Time
}

// Param is a string among the parameters; "" when there is none.
func (r Request) Param(name string) string {
	var all map[string]any
	if json.Unmarshal(r.Params, &all) != nil {
		return ""
	}
	v, _ := all[name].(string)
	return v
}

// conn is one connection, which is good for one request.
type conn struct {
	*net.UnixConn
	s      *Server
	id     string
	fault  Fault
	ctx    context.Context // ends with the server, and once alone was called with the client's patience
	cancel context.CancelFunc
}

func (s *Server) accept(run *instance) {
	for {
		c, err := run.ln.AcceptUnix()
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(run.ctx)
		s.work.Go(func() {
			defer cancel()
			defer c.Close()
			defer context.AfterFunc(run.ctx, func() { c.Close() })()
			(&conn{UnixConn: c, s: s, ctx: ctx, cancel: cancel}).serve()
		})
	}
}

// serve answers one line and leaves. Only subscriptions and waits stay.
func (c *conn) serve() {
	line, e := c.readLine()
	if e != nil {
		c.fail(e)
		return
	}
	if line == nil {
		return
	}
	c.s.check("request", line)
	req, bound, e := c.s.parse(line)
	c.id = req.ID
	if req.Method != "" {
		c.s.remember(req)
		c.s.judge(req)
		c.fault = c.s.meet(req)
	}
	if !c.s.wait(c.ctx) || !c.delayed() {
		return
	}
	switch {
	case c.fault.Line != nil:
		c.put(append(bytes.Clone(c.fault.Line), '\n'))
	case c.fault.Error != nil:
		c.fail(c.fault.Error)
	case e != nil:
		c.fail(e)
	case c.fault.Unserved:
		c.silence()
	default:
		c.reply(bound(c))
	}
}

// readLine takes what arrives until a line is whole. As herdr it looks again only every 100 ms while nothing more is there, so
// that a line in two writes costs a tick. No line and no error: the client left.
func (c *conn) readLine() ([]byte, *Error) {
	c.SetReadDeadline(c.s.patience(requestTime))
	var line []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		line = append(line, buf[:n]...)
		if i := bytes.IndexByte(line, '\n'); i >= 0 && i <= maxRequest {
			c.SetReadDeadline(time.Time{})
			return line[:i], nil
		}
		switch {
		case len(line) > maxRequest:
			return nil, errorf("invalid_request", "request line exceeds %d bytes", maxRequest)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, errorf("invalid_request", "request line did not arrive in time")
		case err != nil:
			return nil, nil
		}
		if n < len(buf) && !c.s.sleep(c.ctx, tick) {
			return nil, nil
		}
	}
}

// parse reads a request as a strict decoder does: whatever does not fit is an invalid_request that has lost its id.
func (s *Server) parse(line []byte) (Request, bound, *Error) {
	var raw struct {
		ID     *string         `json:"id"`
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	invalid := func(format string, args ...any) (Request, bound, *Error) {
		return Request{}, nil, errorf("invalid_request", "invalid request: "+format, args...)
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return invalid("%v", err)
	}
	switch {
	case raw.ID == nil:
		return invalid("missing field `id`")
	case raw.Method == nil:
		return invalid("missing field `method`")
	case raw.Params == nil:
		return invalid("missing field `params`")
	}
	m, known := s.methods[*raw.Method]
	if !known {
		return invalid("unknown variant `%s`", *raw.Method)
	}
	b, err := m(raw.Params)
	if err != nil {
		return invalid("%v", err)
	}
	return Request{ID: *raw.ID, Method: *raw.Method, Params: raw.Params, At: time.Now()}, b, nil
}

func (s *Server) remember(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// reply sends what a method came to. A nil result is for streams, which have said everything themselves.
func (c *conn) reply(result any, e *Error) {
	switch {
	case e != nil:
		c.fail(e)
	case result != nil:
		c.success(result)
	}
}

func (c *conn) success(result any) bool {
	return c.send("success_response", map[string]any{"id": c.id, "result": result})
}

func (c *conn) fail(e *Error) bool {
	return c.send("error_response", map[string]any{"id": c.id, "error": e})
}

// send writes one line, unless a fault does it in its way; false when the connection is of no more use.
func (c *conn) send(kind string, v any) bool {
	if !c.s.wait(c.ctx) {
		return false
	}
	line, err := json.Marshal(v)
	if err != nil {
		c.s.t.Errorf("herdrtest: %v", err)
		return false
	}
	spoiled := c.fault.spoil(line)
	if bytes.Equal(spoiled, line) && !c.s.older(line) {
		c.s.check(kind, line)
	}
	return c.deliver(append(spoiled, '\n'))
}

// older tells lines that the schema, which is that of protocol 20, cannot know.
func (s *Server) older(line []byte) bool {
	return s.Protocol() < 20 && bytes.Contains(line, []byte(`"type":"pane_read"`))
}

// put writes bytes as one packet.
func (c *conn) put(b []byte) bool {
	c.SetWriteDeadline(c.s.patience(sendTime))
	_, err := c.Write(b)
	return err == nil
}

// alone watches the client of a wait or a stream: any byte of it, its half-close and its end cancel the connection's context.
func (c *conn) alone() {
	c.s.work.Go(func() {
		c.Read(make([]byte, 1))
		c.cancel()
	})
}

// check asks the validator about a line, and writes the transcript.
func (s *Server) check(kind string, line []byte) {
	if s.o.Transcript != nil {
		s.mu.Lock()
		s.o.Transcript.Write([]byte(kind + " " + string(line) + "\n"))
		s.mu.Unlock()
	}
	if s.o.Validate == nil {
		return
	}
	if err := s.o.Validate(kind, line); err != nil {
		s.t.Errorf("herdrtest: this %s is not in herdr's schema: %s\n%v", strings.ReplaceAll(kind, "_", " "), clip(line), err)
	}
}

// clip keeps a line readable in a message.
func clip(line []byte) string {
	const most = 400
	if len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(line)
}
