package openai_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"vx/internal/e2e/openai"
)

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// ask calls the model as a client does, with one tool, and returns the status and all that it answers.
func ask(t *testing.T, s *openai.Server, messages ...message) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "mock-1", "stream": true, "tools": []any{map[string]any{}}, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(s.URL+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestWhatTheModelDoesIsInTheWordsThatItIsTold(t *testing.T) {
	s := openai.Start(t)
	user := func(text string) message { return message{"user", text} }
	for _, c := range []struct {
		name     string
		messages []message
		status   int
		want     string
	}{
		{"a short answer", []message{user("hello")}, 200, `"content":"mock reply 1"`},
		{"a failure", []message{user("FAIL now")}, 500, "server_error"},
		{"a tool", []message{user("TOOL4 now")}, 200, `sleep 4; echo slept`},
		{"an answer after the tool", []message{user("TOOL4 now"), {"assistant", "x"}, {"tool", "slept"}}, 200, `"content":"mock reply 4"`},
		{"time", []message{user("SLOW1 now")}, 200, `"content":"."`},
		{"parts", []message{{"user", []any{map[string]any{"type": "text", "text": "FAIL in parts"}}}}, 500, "server_error"},
	} {
		status, out := ask(t, s, c.messages...)
		if status != c.status || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d, want %d with %s in it:\n%s", c.name, status, c.status, c.want, out)
		}
	}
	if n := s.Turns("TOOL4"); n != 1 {
		t.Errorf("a turn with a tool counts as %d turns, want 1", n)
	}
	if got := s.Requests()[3]; !got.Result || got.Last != "TOOL4 now" || got.Tools != 1 {
		t.Errorf("the request with the result reads as %+v", got)
	}
}

func TestAnAnswerBehindAGateEndsWhenItIsOpened(t *testing.T) {
	s := openai.Start(t)
	answer := make(chan string)
	go func() {
		_, out := ask(t, s, message{"user", "GATE7 please"})
		answer <- out
	}()
	s.Wait(t, func(all []openai.Request) bool { return len(all) == 1 }, "the request")
	select {
	case out := <-answer:
		t.Errorf("answered before the gate was opened: %s", out)
	default:
	}
	s.Open(7)
	s.Open(7)
	if out := <-answer; !strings.HasSuffix(strings.TrimSpace(out), "[DONE]") {
		t.Errorf("the answer does not end: %s", out)
	}
	s.Shut(7)
	go func() {
		_, out := ask(t, s, message{"user", "GATE7 again"})
		answer <- out
	}()
	s.Wait(t, func(all []openai.Request) bool { return len(all) == 2 }, "the other request")
	select {
	case out := <-answer:
		t.Errorf("answered though the gate was shut: %s", out)
	default:
	}
	s.Open(7)
	<-answer
}
