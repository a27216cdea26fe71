package herdrtest_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
)

func TestAFaultMeetsTheRequestsThatItIsFor(t *testing.T) {
	srv := start(t, 20)
	srv.Inject(herdrtest.Fault{Method: "ping", Times: 2, Error: &herdrtest.Error{Code: "server_unavailable", Message: "stalled"}})
	lift := srv.Inject(herdrtest.Fault{
		When:  func(r herdrtest.Request) bool { return r.Param("pane_id") == "w1:p1" },
		Error: &herdrtest.Error{Code: "internal_error", Message: "no"},
	})
	must(t, srv, "agent.list", "{}")
	refused(t, srv, "ping", "{}", "server_unavailable")
	refused(t, srv, "ping", "{}", "server_unavailable")
	must(t, srv, "ping", "{}")
	refused(t, srv, "pane.get", `{"pane_id":"w1:p1"}`, "internal_error")
	refused(t, srv, "pane.get", `{"pane_id":"w1:p2"}`, "pane_not_found")
	lift()
	must(t, srv, "pane.get", `{"pane_id":"w1:p1"}`)
}

func TestAnswersCanSufferOnTheirWay(t *testing.T) {
	whole := `{"id":"t","result":`
	for name, c := range map[string]struct {
		fault herdrtest.Fault
		right func(got string) bool
	}{
		"half a line":  {herdrtest.Fault{Half: true}, func(got string) bool { return strings.HasPrefix(got, whole) && !strings.Contains(got, "\n") }},
		"no answer":    {herdrtest.Fault{Drop: true}, func(got string) bool { return got == "" }},
		"not served":   {herdrtest.Fault{Drop: true, Unserved: true}, func(got string) bool { return got == "" }},
		"garbage":      {herdrtest.Fault{Line: []byte("\x00\xffhello")}, func(got string) bool { return got == "\x00\xffhello\n" }},
		"pieces":       {herdrtest.Fault{Split: 5}, func(got string) bool { return json.Valid([]byte(got)) && strings.HasPrefix(got, whole) }},
		"two lines":    {herdrtest.Fault{Extra: []byte("more")}, func(got string) bool { return strings.HasSuffix(got, "}\nmore\n") }},
		"very long":    {herdrtest.Fault{Oversize: 3 << 20}, func(got string) bool { return len(got) > 3<<20 && json.Valid([]byte(got)) }},
		"new fields":   {herdrtest.Fault{Fields: true}, func(got string) bool { return strings.Count(got, "from_the_future") == 3 }},
		"a new status": {herdrtest.Fault{Status: "pondering"}, func(got string) bool { return strings.Contains(got, `"agent_status":"pondering"`) }},
	} {
		t.Run(name, func(t *testing.T) {
			srv := start(t, 20)
			srv.Agent(herdrtest.Agent{})
			srv.Inject(c.fault)
			if got := raw(t, srv, request("agent.list", "{}")); !c.right(got) {
				t.Errorf("it came as %.300q", got)
			}
		})
	}
}

func TestALostAnswerDoesNotMeanThatNothingHappened(t *testing.T) {
	for _, unserved := range []bool{false, true} {
		srv := start(t, 22)
		p := srv.Agent(herdrtest.Agent{})
		srv.Inject(herdrtest.Fault{Method: "agent.prompt", Drop: true, Unserved: unserved})
		want(t, "answer", raw(t, srv, request("agent.prompt", prompting(p, "x", ""))), "")
		want(t, "delivered", len(p.Prompts()) == 1, !unserved)
	}
}

func TestAHungRequestHangsUntilItsClientLeavesAndHoldsUpNobody(t *testing.T) {
	srv := start(t, 20)
	srv.Inject(herdrtest.Fault{Method: "agent.list", Hang: true, Times: 1})
	c := dial(t, srv)
	c.put(request("agent.list", "{}"))
	soon(t, srv, func() bool { return len(srv.Requests("agent.list")) == 1 })
	must(t, srv, "agent.list", "{}")
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := c.r.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the hung request came to %v, want nothing", err)
	}
}

func TestADelayIsRealTime(t *testing.T) {
	srv := start(t, 20)
	srv.Inject(herdrtest.Fault{Delay: 200 * time.Millisecond})
	began := time.Now()
	must(t, srv, "ping", "{}")
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("it took %v, want 200ms or more", took)
	}
}

func TestAFrozenServerAnswersWhenItThaws(t *testing.T) {
	srv := start(t, 22)
	p := srv.Agent(herdrtest.Agent{})
	events := stream(t, srv, statusOf(p, ""))
	srv.Freeze()
	c := dial(t, srv)
	c.put(request("ping", "{}"))
	asleep := dial(t, srv)
	asleep.put(request("agent.rename", `{"target":"w1:p2","name":"renamed"}`))
	soon(t, srv, func() bool { return len(srv.Requests("")) == 3 })
	p.Working()
	events.nothing()
	want(t, "name while it is frozen", p.Name(), "")
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := c.r.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a frozen server came to %v, want nothing", err)
	}
	srv.Thaw()
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	want(t, "answer", parse(t, c.line()).at("type"), any("pong"))
	want(t, "event", events.event().Data["agent_status"], any("working"))
	want(t, "answer", parse(t, asleep.line()).at("type"), any("agent_info"))
	want(t, "name", p.Name(), "renamed")
}

func TestAServerCanBeGoneOrLeaveADeadSocket(t *testing.T) {
	srv := start(t, 20)
	srv.Agent(herdrtest.Agent{Name: "a"})
	refuses := func(want syscall.Errno) {
		t.Helper()
		if _, err := net.Dial("unix", srv.Socket); !errors.Is(err, want) {
			t.Errorf("dial: %v, want %v", err, want)
		}
	}
	srv.Stale()
	refuses(syscall.ECONNREFUSED)
	srv.Start()
	must(t, srv, "agent.get", `{"target":"a"}`)
	srv.Stop()
	refuses(syscall.ENOENT)
	srv.Start()
	must(t, srv, "agent.get", `{"target":"a"}`)
}

// inode is that of the server's socket.
func inode(t *testing.T, srv *herdrtest.Server) os.FileInfo {
	t.Helper()
	info, err := os.Stat(srv.Socket)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestARestartKeepsPaneIDsAndNothingElseThatIsNumbered(t *testing.T) {
	for name, c := range map[string]struct {
		after                              herdrtest.After
		listed, named, agent, ready, alive bool
	}{
		"resumed":  {herdrtest.Resumed, true, true, true, false, true},
		"nameless": {herdrtest.Nameless, true, false, true, false, true},
		"shells":   {herdrtest.Shells, false, false, false, false, false},
		"names":    {herdrtest.Names, true, true, false, false, false},
		"ghosts":   {herdrtest.Ghosts, true, true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := herdrtest.New(t, herdrtest.Options{Speed: 10, Validate: schema.Validate})
			p := srv.Agent(herdrtest.Agent{Name: "a", State: herdrtest.Working})
			p.Idle()
			before := must(t, srv, "pane.get", pane(p)).at("pane.terminal_id")
			events := stream(t, srv, `{"type":"pane.closed"}`)
			srv.Restart(c.after)
			want(t, "the stream's end", events.line(), "")

			r := must(t, srv, "pane.get", pane(p))
			if now := r.at("pane.terminal_id"); now == before {
				t.Errorf("the terminal is still %v", now)
			}
			r = must(t, srv, "agent.list", "{}")
			want(t, "listed", r.at("agents.0") != nil, c.listed)
			want(t, "named", r.at("agents.0.name") != nil, c.named)
			want(t, "agent", r.at("agents.0.agent") != nil, c.agent)
			want(t, "ready", r.at("agents.0.interactive_ready") != nil, c.ready)
			want(t, "sequence", r.at("agents.0.state_change_seq"), nil)
			if c.alive {
				soon(t, srv, func() bool { return p.Seq() == 1 })
				want(t, "status", p.Status(), "done")
			}
		})
	}
}

func TestAHandoffHidesWhatAgentsDoAndForgetsTheirSequence(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 10, Validate: schema.Validate})
	p, q := srv.Agent(herdrtest.Agent{State: herdrtest.Working}), srv.Agent(herdrtest.Agent{Unseen: true})
	terminal := must(t, srv, "pane.get", pane(p)).at("pane.terminal_id")
	old := inode(t, srv)
	events := stream(t, srv, `{"type":"pane.closed"}`)
	srv.SetProfile(22)
	srv.Handoff(5 * time.Second)
	want(t, "the stream's end", events.line(), "")
	want(t, "protocol", must(t, srv, "ping", "{}").at("protocol"), any(22.0))
	if os.SameFile(old, inode(t, srv)) {
		t.Error("the socket is the same file, want another")
	}
	r := must(t, srv, "agent.list", "{}")
	want(t, "status meanwhile", r.at("agents.0.agent_status"), any("unknown"))
	want(t, "sequence meanwhile", r.at("agents.0.state_change_seq"), nil)
	want(t, "terminal", must(t, srv, "pane.get", pane(p)).at("pane.terminal_id"), terminal)
	soon(t, srv, func() bool { return p.Status() == "working" && q.Status() == "done" })
	want(t, "sequences", p.Seq()+q.Seq(), 3)
}
