//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// overloaded is the service's own status for having too much to do.
const overloaded = 529

// An api is a mock of Anthropic's Messages API. It answers every turn with a short text; when says otherwise.
type api struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	answers  []*answer
}

// A request is one call of the model.
type request struct {
	at   time.Time
	main bool // the model loop, which carries tools; the others make titles and summaries, or are a judge's
	// model is the one that is asked for.
	model string
	// tail is what the model is told since it last spoke, one text per message.
	tail []string
}

// An answer is what the model does once when it is told something that holds the needle.
type answer struct {
	needle string
	say    string        // a text,
	bash   string        // or a call of the Bash tool,
	behind bool          // which goes on in the background,
	asks   *choice       // or of the one that asks a person,
	status int           // or an error with this HTTP status
	gate   chan struct{} // the answer starts at once, and ends when this is closed (nil: at once)
	stays  bool          // it is given more than once
	bare   bool          // it is for a model without tools
	spends int           // tokens of output, where it matters
	asked  chan struct{} // closed when the model was called with the needle
}

// A choice is a question of the model's that is a dialog.
type choice struct {
	question string
	options  []string
}

func newAPI(t *testing.T) *api {
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// when queues an answer to the next main request whose news holds the needle; each is used once, in order.
func (a *api) when(needle string, ans answer) *answer {
	ans.needle, ans.asked = needle, make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers = append(a.answers, &ans)
	return &ans
}

// turns counts the main requests in which the needle is news to the model.
func (a *api) turns(needle string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if r.main && strings.Contains(strings.Join(r.tail, "\n"), needle) {
			n++
		}
	}
	return n
}

// told returns the first message that brought the model the needle, or "".
func (a *api) told(needle string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		for _, m := range r.tail {
			if r.main && strings.Contains(m, needle) {
				return m
			}
		}
	}
	return ""
}

// together reports whether one request brought the model both needles.
func (a *api) together(one, other string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.requests, func(r request) bool {
		news := strings.Join(r.tail, "\n")
		return r.main && strings.Contains(news, one) && strings.Contains(news, other)
	})
}

// refuse answers whatever holds the needle with an error that ends the turn, until relent is called. It does so more than
// once: the newer client tries older forms of a request before it gives up.
func (a *api) refuse(needle string) (relent func()) {
	return a.refuseWith(http.StatusBadRequest, needle)
}

func (a *api) refuseWith(status int, needle string) (relent func()) {
	ans := a.when(needle, answer{status: status})
	a.mu.Lock()
	defer a.mu.Unlock()
	ans.stays = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.answers = slices.DeleteFunc(a.answers, func(other *answer) bool { return other == ans })
	}
}

func (a *api) dump() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for _, r := range a.requests {
		last := ""
		if len(r.tail) > 0 {
			last = r.tail[len(r.tail)-1]
		}
		fmt.Fprintf(&b, "main=%v %q\n", r.main, last[max(0, len(last)-300):])
	}
	return b.String()
}

// wire is what the mock reads of a request body.
type wire struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		fmt.Fprint(w, `{"input_tokens":10}`)
		return
	default:
		fmt.Fprint(w, `{}`)
		return
	}
	var body wire
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ans, n := a.take(body)
	if ans.status != 0 {
		kind := "invalid_request_error"
		if ans.status == overloaded {
			kind = "overloaded_error"
		}
		w.WriteHeader(ans.status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":"mock error"}}`, kind)
		return
	}
	reply{w, r, body, ans, n}.send()
}

// take notes the request and picks its answer.
func (a *api) take(body wire) (*answer, int) {
	req := request{at: time.Now(), main: len(body.Tools) > 1, model: body.Model}
	for _, m := range body.Messages {
		if m.Role == "assistant" {
			req.tail = nil
			continue
		}
		req.tail = append(req.tail, text(m.Content))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, req)
	n := len(a.requests)
	news := strings.Join(req.tail, "\n")
	for i, ans := range a.answers {
		if ans.bare != req.main && strings.Contains(news, ans.needle) {
			if !ans.stays {
				a.answers = slices.Delete(a.answers, i, i+1)
				close(ans.asked)
			}
			return ans, n
		}
	}
	if !req.main {
		return &answer{say: `{"title":"mock title"}`}, n
	}
	return &answer{say: fmt.Sprintf("mock reply %d", n)}, n
}

// text flattens a message's content: a string, or a list of blocks.
func text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return string(content)
	}
	var parts []string
	for _, b := range blocks {
		if b.Content != nil {
			parts = append(parts, "<tool_result>"+text(b.Content)+"</tool_result>")
			continue
		}
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

// A reply is one answer on its way to the client.
type reply struct {
	w    http.ResponseWriter
	r    *http.Request
	body wire
	ans  *answer
	n    int
}

func (p reply) send() {
	block, stop := map[string]any{"type": "text", "text": p.ans.say}, "end_turn"
	if tool, input := p.ans.call(); tool != "" {
		stop = "tool_use"
		block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_mock_%d", p.n), "name": tool, "input": input}
	}
	msg := map[string]any{"id": fmt.Sprintf("msg_mock_%d", p.n), "type": "message", "role": "assistant", "model": p.body.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 10, "output_tokens": 1}}
	if !p.body.Stream {
		p.waitForGate(nil)
		msg["content"], msg["stop_reason"] = []any{block}, stop
		json.NewEncoder(p.w).Encode(msg)
		return
	}
	p.w.Header().Set("Content-Type", "text/event-stream")
	p.event("message_start", map[string]any{"message": msg})
	p.event("content_block_start", map[string]any{"index": 0, "content_block": empty(block)})
	p.waitForGate(func() { p.event("ping", map[string]any{}) })
	p.event("content_block_delta", map[string]any{"index": 0, "delta": delta(block)})
	p.event("content_block_stop", map[string]any{"index": 0})
	p.event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": max(5, p.ans.spends)}})
	p.event("message_stop", map[string]any{})
}

// call is the tool that the model calls, "" for none.
func (a *answer) call() (tool string, input map[string]any) {
	switch {
	case a.bash != "":
		input = map[string]any{"command": a.bash, "description": "mock"}
		if a.behind {
			input["run_in_background"] = true
		}
		return "Bash", input
	case a.asks != nil:
		var options []any
		for _, o := range a.asks.options {
			options = append(options, map[string]any{"label": o, "description": "it is of " + o})
		}
		return "AskUserQuestion", map[string]any{"questions": []any{map[string]any{
			"question": a.asks.question, "header": "mock", "options": options, "multiSelect": false}}}
	}
	return "", nil
}

func empty(block map[string]any) map[string]any {
	if block["type"] == "text" {
		return map[string]any{"type": "text", "text": ""}
	}
	return map[string]any{"type": "tool_use", "id": block["id"], "name": block["name"], "input": map[string]any{}}
}

func delta(block map[string]any) map[string]any {
	if block["type"] == "text" {
		return map[string]any{"type": "text_delta", "text": block["text"]}
	}
	input, _ := json.Marshal(block["input"])
	return map[string]any{"type": "input_json_delta", "partial_json": string(input)}
}

// waitForGate keeps the connection alive until the gate opens or the client is gone.
func (p reply) waitForGate(ping func()) {
	if p.ans.gate == nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-p.ans.gate:
			return
		case <-p.r.Context().Done():
			return
		case <-tick.C:
			if ping != nil {
				ping()
			}
		}
	}
}

func (p reply) event(kind string, data map[string]any) {
	data["type"] = kind
	line, _ := json.Marshal(data)
	fmt.Fprintf(p.w, "event: %s\ndata: %s\n\n", kind, line)
	if f, ok := p.w.(http.Flusher); ok {
		f.Flush()
	}
}
