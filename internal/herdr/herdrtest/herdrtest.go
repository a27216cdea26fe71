// Package herdrtest is a herdr for tests: it speaks herdr's socket protocol, and its agents are scripts. It was written from
// the description of the protocol alone, not from a client of it, so a client that agrees with it agrees with the description.
//
//	srv := herdrtest.New(t, herdrtest.Options{Profile: 20, Validate: schema.Validate})
//	soldier := srv.Agent(herdrtest.Agent{Kind: "claude", Name: "soldier-a", Screen: "❯ \n"})
//	soldier.OnPrompt(func(p *herdrtest.Pane, text string) []herdrtest.Step {
//		return []herdrtest.Step{
//			{State: herdrtest.Working, Title: "✻ work"},
//			{After: 20 * time.Second, State: herdrtest.Idle, Screen: "● done\n❯ \n", Title: "✳ work"},
//		}
//	})
//
// A test fails, through the fake, when the fake is sent a read of a `recent` source or a read of an agent that works: herdr
// scrolls the user's screen for such reads. With Options.Validate it fails too when a line in either direction is not in the
// schema.
//
// The test says what herdr concludes of an agent, by Pane.Set and steps; how herdr gets there from screens and processes is not
// modelled, neither the 700 ms that it may hold an end. Where the description is silent, the fake does the following.
//
//   - A request that does not parse, a subscription of an unknown type included, is an invalid_request without its id. So are
//     one that is too long and one that does not arrive; then the connection is closed.
//   - A prompt that does not wait stalls from protocol 22 on, where the answer waits for the prompt to be taken, and never before.
//   - An agent that starts where nobody looks is Done when it is first idle.
//   - A Restart and a Handoff make a new socket file with a new inode, and the ring of events is empty after them.
//   - agent.explain tells pane_id, agent, state, authority (screen or hook), visible_idle, and fallback_reason for a guess.
//   - Ids in the forms of before 0.7.0 are not understood, and process ids are not invented.
//
// It is not for programs that people run. It keeps nothing on disk but its socket, which Cleanup removes; a test binary that is
// killed leaves a directory with a dead socket in the temporary directory.
package herdrtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// TB is what the fake needs of a test; a program that is no test can bring its own.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Options say which herdr it is.
type Options struct {
	Profile int    // the protocol that it speaks: 17, 19, 20 or 22; 0 is 20
	Version string // what ping calls it; "" is the first release with that protocol

	// Speed makes the fake's time run that many times faster: its ticks, debounces and startup graces, the timeout_ms of a
	// request and the After of a step. 0 is 1. The delay of a fault is real time, and a client has a second at least for its
	// request and for taking a line.
	Speed float64

	// Validate is asked about each line in both directions; schema.Validate is meant for it. The kind is request,
	// success_response, error_response, event or subscription_event. What a fault spoils on purpose is not asked about.
	Validate func(kind string, line []byte) error

	// Transcript gets each line as the fixtures have them: the kind, a space, the line.
	Transcript io.Writer

	// ReadGrace is how long an agent may have been working already when a read of it arrives. 0 allows none: right where the
	// test moves its agents by hand. A test whose agents move on their own gives the time between two looks of its client.
	ReadGrace time.Duration

	// AnyRead lets reads of `recent` sources and of working agents pass; for tests of the fake and of herdr's own commands.
	AnyRead bool

	// NoDetection refuses the read source `detection`, as a herdr that does not know it.
	NoDetection bool

	// EventsLost ends the stream of a subscriber that fell behind the ring, with an error. Else it silently loses events.
	EventsLost bool

	// Socket is where to listen; "" is herdr.sock in a new short directory, so that its path fits into a socket address.
	Socket string
}

// Server is a running fake herdr. Its methods may be called from any goroutine.
type Server struct {
	Socket string // the path of its socket, as HERDR_SOCKET_PATH has it

	t       TB
	o       Options
	dir     string
	methods map[string]method
	ctx     context.Context // ends with the test
	work    sync.WaitGroup  // scripts and connections

	mu       sync.Mutex
	runs     int
	profile  int
	version  string
	run      *instance // nil while nobody listens
	blurred  bool
	focus    string // workspace
	spaces   []*workspace
	panes    []*Pane
	counts   counters
	launch   map[string]func(*Pane, Launch) []Step
	ring     []event
	events   uint64 // sequence of the last event
	tamper   EventFaults
	changed  chan struct{} // closed at each change
	thawed   chan struct{} // nil while it is not frozen
	faults   []*Fault
	cli      string // directory of the command herdr
	requests []Request
	waiting  int
}

// counters never go back: closed ids are not used again.
type counters struct {
	workspace int
	terminal  uint64
	seq       uint64 // the one state_change_seq of the server
}

// instance is one life of the server process: from a listen to its end.
type instance struct {
	ln  *net.UnixListener
	ctx context.Context
	end context.CancelFunc
}

// New starts a fake with one workspace, w1, that has one tab with a shell, w1:p1. It ends with the test.
func New(t TB, o Options) *Server {
	t.Helper()
	if o.Profile == 0 {
		o.Profile = 20
	}
	if versionOf(o.Profile) == "" {
		t.Fatalf("herdrtest: no profile %d", o.Profile)
	}
	if o.Speed <= 0 {
		o.Speed = 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		Socket: o.Socket, t: t, o: o, methods: methods(), ctx: ctx,
		profile: o.Profile, version: o.Version, changed: make(chan struct{}), launch: map[string]func(*Pane, Launch) []Step{},
	}
	if s.version == "" {
		s.version = versionOf(o.Profile)
	}
	s.dir = shortDir(t)
	if s.Socket == "" {
		s.Socket = filepath.Join(s.dir, "herdr.sock")
	}
	s.counts.terminal = 0x65836b28947ef0
	s.mu.Lock()
	s.addWorkspace("main", "/", nil)
	s.mu.Unlock()
	s.Start()
	t.Cleanup(func() {
		s.Thaw()
		s.Stop()
		cancel()
		s.work.Wait()
	})
	return s
}

// versionOf is the first release that speaks the protocol; "" for one that no release spoke.
func versionOf(protocol int) string {
	switch protocol {
	case 17:
		return "0.7.5"
	case 19:
		return "0.8.0"
	case 20:
		return "0.8.2"
	case 22:
		return "0.9.0"
	}
	return ""
}

// shortDir is a new directory whose path leaves room in the 104 bytes of a socket address.
func shortDir(t TB) string {
	t.Helper()
	parent := os.TempDir()
	if len(parent) > 60 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "hd")
	if err != nil {
		t.Fatalf("herdrtest: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Start listens, after a Stop or Stale: on a new socket file, so with a new inode. Panes and agents are as they were.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.t.Fatalf("herdrtest: started twice")
	}
	s.retire()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Socket, Net: "unix"})
	if err != nil {
		s.t.Fatalf("herdrtest: %v", err)
	}
	ln.SetUnlinkOnClose(false)
	if err := os.Chmod(s.Socket, 0o600); err != nil {
		s.t.Fatalf("herdrtest: %v", err)
	}
	run := &instance{ln: ln}
	run.ctx, run.end = context.WithCancel(s.ctx)
	s.run = run
	s.work.Go(func() { s.accept(run) })
}

// Stop ends the server: streams end without a word, and the socket's file is gone (ENOENT).
func (s *Server) Stop() {
	s.Stale()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retire()
}

// retire takes the socket's file away and keeps it, so that no later one gets its inode. The caller holds the lock.
func (s *Server) retire() {
	s.runs++
	if os.Rename(s.Socket, filepath.Join(s.dir, fmt.Sprint("gone", s.runs))) == nil {
		return
	}
	if err := os.Remove(s.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Errorf("herdrtest: %v", err)
	}
}

// Stale ends the server as a kill does: streams end without a word, and the socket's file stays behind (ECONNREFUSED).
func (s *Server) Stale() {
	s.mu.Lock()
	run := s.run
	s.run = nil
	s.mu.Unlock()
	if run != nil {
		run.ln.Close()
		run.end()
	}
}

// SetProfile is what the next Restart or Handoff comes back as, or the running server at once.
func (s *Server) SetProfile(protocol int) {
	s.t.Helper()
	v := versionOf(protocol)
	if v == "" {
		s.t.Fatalf("herdrtest: no profile %d", protocol)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profile, s.version = protocol, v
}

// FocusTerminal says whether the user's terminal has the focus. While it has not, no completion counts as seen.
func (s *Server) FocusTerminal(focused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blurred = !focused
}

// Requests are the requests so far that could be parsed, oldest first; Method "" selects all.
func (s *Server) Requests(method string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []Request
	for _, r := range s.requests {
		if method == "" || r.Method == method {
			some = append(some, r)
		}
	}
	return some
}

// after is a duration of the fake's time in real time.
func (s *Server) after(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.o.Speed)
}

// sleep waits a duration of the fake's time; false when the context ended first.
func (s *Server) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(s.after(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// notify wakes whoever waits for a change. The caller holds the lock.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Error is an error answer.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
