package herdrtest

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vx/internal/herdr/herdrtest/schema"
)

// The lines of the fixtures are put to fakes that are in the state of which they tell. Each answer has to be the fixture's, to
// the value.

// decoded is JSON as values.
func decoded(t *testing.T, line []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

// fixtures are the lines of each kind by their id; events come in their order.
func fixtures(t *testing.T) (byID map[string]map[string][]byte, events []map[string]any) {
	t.Helper()
	byID = map[string]map[string][]byte{}
	for kind, line := range schema.Fixtures() {
		v := decoded(t, line)
		id, has := v["id"].(string)
		if !has {
			events = append(events, v)
			continue
		}
		if byID[id] == nil {
			byID[id] = map[string][]byte{}
		}
		if kind == "success_response" || kind == "error_response" {
			kind = "answer"
		}
		byID[id][kind] = line
	}
	return byID, events
}

func send(t *testing.T, s *Server, line []byte) *bufio.Reader {
	t.Helper()
	c, err := net.Dial("unix", s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

func next(t *testing.T, r *bufio.Reader) map[string]any {
	t.Helper()
	line, err := r.ReadBytes('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return decoded(t, line)
}

// worker makes the state of the fixtures: an agent in w1:p2, beside the first pane.
func worker(s *Server) *Pane {
	p := s.Agent(Agent{Kind: "claude", Name: "worker-a", CWD: "/home/u/proj", Beside: s.Root(), Title: "✳ fix tests",
		Session: "8a6d0c1e-2f7b-4c55-9d0e-1b2c3d4e5f60", Screen: "❯ \n"})
	defer p.lock()()
	s.counts.seq = 11
	s.setRaw(p, Working)
	p.terminal, p.revision = "term_65836b28947ef1", 3
	return p
}

func TestTheFakeAnswersTheFixturesRequestsWithTheFixturesAnswers(t *testing.T) {
	still := func(s *Server) {
		p := worker(s)
		p.OnPrompt(func(*Pane, string) []Step { return nil })
		p.lock()
		defer s.mu.Unlock()
		p.raw, p.seen = Idle, true
	}
	setups := map[string]func(*Server){
		"s1": func(*Server) {},
		"s2": func(s *Server) { worker(s) },
		"s4": func(s *Server) { s.addToRoot() },
		"s5": func(s *Server) {
			p := s.addToRoot()
			p.cwd, p.terminal, p.revision = "/home/u/proj", "term_65836b28947ef1", 4
		},
		"s6": func(s *Server) { worker(s) },
		"s7": func(s *Server) { worker(s) },
		"s8": still,
		"s9": still,
		"s10": func(s *Server) {
			s.addToRoot()
		},
		"s13": func(s *Server) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.spaces[0].label = "proj"
			p := s.panes[0]
			p.agent, p.raw, p.hidden = "claude", Idle, true
		},
	}
	byID, _ := fixtures(t)
	for id, setup := range setups {
		t.Run(id, func(t *testing.T) {
			s := New(t, Options{Speed: 1000, Validate: schema.Validate})
			setup(s)
			got := next(t, send(t, s, byID[id]["request"]))
			want := decoded(t, byID[id]["answer"])
			if id == "s13" { // the fixture's session has neither panes nor a focus
				snap := got["result"].(map[string]any)["snapshot"].(map[string]any)
				for name := range snap {
					if strings.HasPrefix(name, "focused_") {
						delete(snap, name)
					}
				}
				snap["layouts"] = []any{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the answer differs (-fixture +fake):\n%s", diff)
			}
		})
	}
}

// addToRoot adds a shell beside the first pane.
func (s *Server) addToRoot() *Pane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addPane(s.panes[0].tab, "", nil)
}

func TestAnEmptySessionListsNoAgents(t *testing.T) {
	byID, _ := fixtures(t)
	s := New(t, Options{Validate: schema.Validate})
	got := next(t, send(t, s, []byte(`{"id":"s3","method":"agent.list","params":{}}`)))
	if diff := cmp.Diff(decoded(t, byID["s3"]["answer"]), got); diff != "" {
		t.Errorf("the answer differs (-fixture +fake):\n%s", diff)
	}
}

func TestTheFakeRefusesARemovedMethodAsTheFixtureDoes(t *testing.T) {
	byID, _ := fixtures(t)
	s := New(t, Options{})
	got := next(t, send(t, s, []byte(`{"id":"x","method":"agent.send","params":{"target":"w1:p2","text":"x"}}`)))
	if diff := cmp.Diff(decoded(t, byID[""]["answer"]), got); diff != "" {
		t.Errorf("the answer differs (-fixture +fake):\n%s", diff)
	}
}

func TestTheFakeTakesTheFixturesReportAndStart(t *testing.T) {
	byID, _ := fixtures(t)
	s := New(t, Options{Validate: schema.Validate})
	s.addToRoot()
	s.addToRoot()
	for _, id := range []string{"s11", "s12"} {
		if got := next(t, send(t, s, byID[id]["request"])); got["error"] != nil {
			t.Errorf("%s: %v", byID[id]["request"], got["error"])
		}
	}
	if p := s.Pane("w1:p2"); p.Status() != Working || p.agent != "vx" {
		t.Errorf("after the report the pane has %s %s, want vx working", p.agent, p.Status())
	}
	if p := s.Pane("w1:p3"); p.name != "worker-b" {
		t.Errorf("after the start the pane has the name %q, want worker-b", p.name)
	}
}

func TestTheFakeSendsTheFixturesEvents(t *testing.T) {
	byID, want := fixtures(t)
	s := New(t, Options{Profile: 22, Speed: 100, Validate: schema.Validate})
	p := worker(s)
	other := s.Shell("/") // another tab, shown: what the worker ends with is unseen
	other.Focus()
	r := send(t, s, byID["s6"]["request"])
	next(t, r)
	p.Idle()
	got := []map[string]any{next(t, r)}
	p.Focus()
	next(t, r) // seen
	p.Gone()
	for len(got) < 2 {
		if e := next(t, r); e["event"] == "pane_agent_detected" {
			got = append(got, e)
		}
	}
	s.mu.Lock()
	s.detect(p, "claude")
	s.mu.Unlock()
	for len(got) < 3 {
		if e := next(t, r); e["event"] == "pane_agent_detected" {
			got = append(got, e)
		}
	}
	s.mu.Lock() // closed as a shell, whose agent herdr has dropped before
	p.agent = ""
	s.mu.Unlock()
	p.Close()
	for len(got) < 4 {
		if e := next(t, r); e["event"] == "pane_closed" {
			got = append(got, e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the events differ (-fixture +fake):\n%s", diff)
	}
}

func TestNumbersAreBijectiveInBase32(t *testing.T) {
	for n, digits := range map[int]string{1: "1", 9: "9", 10: "A", 31: "Z", 32: "0", 33: "11", 43: "1B", 64: "10", 65: "21", 32 + 32*32: "00"} {
		if got := number(n); got != digits {
			t.Errorf("%d is %s, want %s", n, got, digits)
		}
	}
}
