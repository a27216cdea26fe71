package herdrtest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Fault is what goes wrong with some requests. The first that fits a request meets it. The request is carried out all the same,
// and only its answer suffers, unless Error, Line or Unserved says otherwise: a prompt whose answer is lost was delivered.
type Fault struct {
	Method string             // only this method; "" is all of them
	When   func(Request) bool // only these requests; nil is all of them
	Times  int                // meets so many requests; 0 is all until the fault is lifted

	Delay    time.Duration // before the request is carried out, in real time
	Unserved bool          // read and never carried out: with Drop closed at once, else hung
	Hang     bool          // no answer, until the client hangs up or the server ends
	Drop     bool          // closed without an answer
	Half     bool          // half of the line, then closed
	Split    int           // the line in so many writes, 20 ms apart
	Extra    []byte        // this further line in the same packet
	Line     []byte        // this line instead of an answer: garbage
	Oversize int           // an answer of at least so many bytes
	Error    *Error        // this error
	Fields   bool          // fields and types that no version has, in every object
	Status   string        // this in place of each agent_status: a value that no version has
}

// Inject makes requests meet the fault, from now until lift is called.
func (s *Server) Inject(f Fault) (lift func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := &f
	s.faults = append(s.faults, own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(other *Fault) bool { return other == own })
	}
}

// meet is the fault that the request meets; the zero Fault for none.
func (s *Server) meet(r Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Method != "" && f.Method != r.Method || f.When != nil && !f.When(r) {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = slices.DeleteFunc(s.faults, func(other *Fault) bool { return other == f })
			}
		}
		return *f
	}
	return Fault{}
}

// Freeze stops the server as SIGSTOP does: connections are taken and nothing is answered, streams are silent. What was asked
// meanwhile is answered at Thaw, if the client is still there.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thawed == nil {
		s.thawed = make(chan struct{})
	}
}

// Thaw ends a Freeze.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thawed != nil {
		close(s.thawed)
		s.thawed = nil
	}
}

// wait holds while the server is frozen; false when the context ended first.
func (s *Server) wait(ctx context.Context) bool {
	s.mu.Lock()
	thawed := s.thawed
	s.mu.Unlock()
	if thawed == nil {
		return ctx.Err() == nil
	}
	select {
	case <-thawed:
		return true
	case <-ctx.Done():
		return false
	}
}

// delayed waits as the fault says.
func (c *conn) delayed() bool {
	select {
	case <-time.After(c.fault.Delay):
		return true
	case <-c.ctx.Done():
		return false
	}
}

// silence keeps the connection without a word, or closes it.
func (c *conn) silence() {
	if c.fault.Drop {
		return
	}
	c.alone()
	<-c.ctx.Done()
}

// deliver writes a line in the way of the fault.
func (c *conn) deliver(line []byte) bool {
	f := c.fault
	switch {
	case f.Hang, f.Drop:
		c.silence()
		return false
	case f.Half:
		c.put(line[:len(line)/2])
		return false
	case f.Split > 1:
		return c.split(line, f.Split)
	case f.Extra != nil:
		return c.put(slices.Concat(line, f.Extra, []byte{'\n'}))
	}
	return c.put(line)
}

func (c *conn) split(line []byte, pieces int) bool {
	size := max(1, (len(line)+pieces-1)/pieces)
	for part := range slices.Chunk(line, size) {
		if !c.put(part) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// spoil is the line with the fault's foreign fields, values and padding.
func (f Fault) spoil(line []byte) []byte {
	if !f.Fields && f.Status == "" && f.Oversize <= len(line) {
		return line
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return line
	}
	f.walk(v)
	if top, ok := v.(map[string]any); ok && f.Oversize > len(line) {
		top["padding"] = string(bytes.Repeat([]byte{'x'}, f.Oversize-len(line)))
	}
	spoiled, err := json.Marshal(v)
	if err != nil {
		return line
	}
	return spoiled
}

func (f Fault) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, each := range v {
			f.walk(each)
		}
	case map[string]any:
		for _, each := range v {
			f.walk(each)
		}
		if _, has := v["agent_status"]; has && f.Status != "" {
			v["agent_status"] = f.Status
		}
		if f.Fields {
			v["from_the_future"] = map[string]any{"list": []any{1, nil, "x"}, "id": 7}
		}
	}
}

// EventFaults are what goes wrong with the events of all streams.
type EventFaults struct {
	Duplicate bool          // each comes twice
	Lag       time.Duration // each comes so much later, in real time
	Lose      bool          // none comes
}

// TamperEvents sets what goes wrong with events from now on; the zero value is nothing.
func (s *Server) TamperEvents(f EventFaults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tamper = f
}
