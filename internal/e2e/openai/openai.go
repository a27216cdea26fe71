// Package openai is a model for tests: a server on loopback that speaks as much of the OpenAI chat completions API as the
// clients with a provider of one's own use. What it does is in the words that it is told, so that a test needs no state in
// two places: the last text of a user that holds
//
//	SLOW3   is answered over three seconds,
//	GATE7   is answered until Open(7), or until the client goes,
//	TOOL4   asks for the tool bash with `sleep 4`, once per turn, and is answered when the result is there,
//	FAIL    is an HTTP status 500,
//
// and everything else gets a short answer at once. It is no judge of what it is sent, and it keeps all of it in memory.
package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Request is one call of the model.
type Request struct {
	Last   string    // the last text of a user
	Users  []string  // all texts of users in the conversation, oldest first
	Tools  int       // how many tools it may call: 0 for titles and summaries
	Result bool      // it brings a tool's result: the turn goes on
	At     time.Time // when it came
}

// A Server is the model. It ends with its test.
type Server struct {
	URL string // the base, with /v1

	http     *httptest.Server
	mu       sync.Mutex
	requests []Request
	gates    map[int]chan struct{}
}

// Start starts a model for a test.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{gates: map[int]chan struct{}{}}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL + "/v1"
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Requests are those that came so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Turns counts the turns that a user's text with the needle has begun.
func (s *Server) Turns(needle string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Tools > 0 && !r.Result && strings.Contains(r.Last, needle) {
			n++
		}
	}
	return n
}

// patience is far beyond what any step takes, so that a busy machine fails nothing.
const patience = 60 * time.Second

// Wait waits until the requests are such that done says so.
func (s *Server) Wait(t *testing.T, done func([]Request) bool, what string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if done(s.Requests()) {
			return
		}
	}
	t.Fatalf("not within %s: %s; the model was asked:\n%s", patience, what, s.Dump())
}

// Open lets the answers to GATEn end, those that are being given and those to come.
func (s *Server) Open(n int) {
	gate := s.gate(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-gate:
	default:
		close(gate)
	}
}

// Shut holds up the answers to GATEn that are to come, after an Open.
func (s *Server) Shut(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gates, n)
}

func (s *Server) gate(n int) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates[n] == nil {
		s.gates[n] = make(chan struct{})
	}
	return s.gates[n]
}

// Dump tells the requests to a person, one a line.
func (s *Server) Dump() string {
	var b strings.Builder
	for _, r := range s.Requests() {
		fmt.Fprintf(&b, "%s tools=%d result=%v %q\n", r.At.Format("15:04:05.000"), r.Tools, r.Result, r.Last[max(0, len(r.Last)-300):])
	}
	return b.String()
}

// wire is what is read of a request's body.
type wire struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"mock-1","object":"model"}]}`)
		return
	}
	var body wire
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
		return
	}
	req, n := s.note(body)
	if strings.Contains(req.Last, "FAIL") {
		http.Error(w, `{"error":{"message":"the mock fails as it was told","type":"server_error"}}`, http.StatusInternalServerError)
		return
	}
	reply{s, w, r, body, req, n}.send()
}

// note keeps the request and says which one it is.
func (s *Server) note(body wire) (Request, int) {
	req := Request{Tools: len(body.Tools), At: time.Now()}
	for _, m := range body.Messages {
		if m.Role == "user" {
			req.Users = append(req.Users, text(m.Content))
		}
		req.Result = m.Role == "tool"
	}
	if len(req.Users) > 0 {
		req.Last = req.Users[len(req.Users)-1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	return req, len(s.requests)
}

// text flattens a message's content: a string, or a list of parts.
func text(content json.RawMessage) string {
	var whole string
	if json.Unmarshal(content, &whole) == nil {
		return whole
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

var (
	slow = regexp.MustCompile(`SLOW(\d+)`)
	gate = regexp.MustCompile(`GATE(\d+)`)
	tool = regexp.MustCompile(`TOOL(\d+)`)
)

// number is what stands behind the word, and whether it is there.
func number(word *regexp.Regexp, in string) (int, bool) {
	m := word.FindStringSubmatch(in)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// A reply is one answer on its way to the client.
type reply struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	body wire
	req  Request
	n    int
}

func (p reply) send() {
	said := fmt.Sprintf("mock reply %d", p.n)
	if !p.body.Stream {
		p.linger(func() {})
		json.NewEncoder(p.w).Encode(p.envelope("chat.completion", map[string]any{"index": 0, "finish_reason": "stop",
			"message": map[string]any{"role": "assistant", "content": said}}))
		return
	}
	p.w.Header().Set("Content-Type", "text/event-stream")
	p.chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	if seconds, wanted := number(tool, p.req.Last); wanted && p.req.Tools > 0 && !p.req.Result {
		arguments, _ := json.Marshal(map[string]any{"command": fmt.Sprintf("sleep %d; echo slept", seconds), "description": "sleep"})
		p.chunk(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": fmt.Sprintf("call_%d", p.n), "type": "function",
			"function": map[string]any{"name": "bash", "arguments": string(arguments)}}}}, nil)
		p.chunk(map[string]any{}, "tool_calls")
	} else {
		p.linger(func() { p.chunk(map[string]any{"content": "."}, nil) })
		p.chunk(map[string]any{"content": said}, nil)
		p.chunk(map[string]any{}, "stop")
	}
	fmt.Fprint(p.w, "data: [DONE]\n\n")
}

// linger lasts as long as the text says, and says so to the client meanwhile.
func (p reply) linger(sign func()) {
	var enough <-chan time.Time
	var open <-chan struct{}
	if n, held := number(gate, p.req.Last); held {
		open = p.s.gate(n)
	} else if seconds, held := number(slow, p.req.Last); held {
		enough = time.After(time.Duration(seconds) * time.Second)
	} else {
		return
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-open:
			return
		case <-enough:
			return
		case <-p.r.Context().Done():
			return
		case <-tick.C:
			sign()
		}
	}
}

func (p reply) envelope(object string, choice map[string]any) map[string]any {
	return map[string]any{"id": fmt.Sprintf("mock-%d", p.n), "object": object, "created": 1, "model": p.body.Model, "choices": []any{choice},
		"usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
}

func (p reply) chunk(delta map[string]any, finish any) {
	line, _ := json.Marshal(p.envelope("chat.completion.chunk", map[string]any{"index": 0, "delta": delta, "finish_reason": finish}))
	fmt.Fprintf(p.w, "data: %s\n\n", line)
	if f, ok := p.w.(http.Flusher); ok {
		f.Flush()
	}
}
