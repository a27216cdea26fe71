package herdr

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vx/internal/herdr/herdrtest/schema"
)

// fixed is the fixture of the kind with the id.
func fixed(t *testing.T, kind, id string) string {
	t.Helper()
	for k, line := range schema.Fixtures() {
		if k == kind && strings.HasPrefix(string(line), `{"id":"`+id+`"`) {
			return string(line)
		}
	}
	t.Fatalf("no %s %s among the fixtures", kind, id)
	return ""
}

var fixedAgent = Agent{
	TerminalID: "term_65836b28947ef1", Name: "worker-a", Kind: "claude", Status: Working,
	WorkspaceID: "w1", TabID: "w1:t1", PaneID: "w1:p2", Title: "✳ fix tests",
	CWD: "/home/u/proj", ForegroundCWD: "/home/u/proj", Seq: 12, HasSeq: true, InteractiveReady: true,
	Session: Session{Source: "herdr:claude", Agent: "claude", Kind: "id", Value: "8a6d0c1e-2f7b-4c55-9d0e-1b2c3d4e5f60"},
}

// Each exchange of the fixtures that the client has a method for: the request is theirs, and so is the answer.
func TestTheClientSpeaksTheFixtures(t *testing.T) {
	type refused struct{ Code, Message string }
	call := func(v any, err error) any {
		if Code(err) != "" {
			return refused{Code(err), err.Error()}
		}
		if err != nil {
			return err.Error()
		}
		return v
	}
	for _, test := range []struct {
		request, kind, answer string
		ask                   func(ctx context.Context, c *Client) any
		want                  any
	}{
		{"s1", "success_response", "s1", func(ctx context.Context, c *Client) any { return call(c.Ping(ctx)) }, Pong{"0.8.2", 20}},
		{"s2", "success_response", "s2", func(ctx context.Context, c *Client) any { return call(c.Agents(ctx)) }, []Agent{fixedAgent}},
		{"s2", "success_response", "s3", func(ctx context.Context, c *Client) any { return call(c.Agents(ctx)) }, []Agent(nil)},
		{
			"s4", "error_response", "s4", func(ctx context.Context, c *Client) any { return call(c.Agent(ctx, "w1:p2")) },
			refused{AgentNotFound, "herdr agent.get: agent_not_found: agent target w1:p2 not found"},
		},
		{"s5", "success_response", "s5", func(ctx context.Context, c *Client) any { return call(c.Pane(ctx, "w1:p2")) }, Pane{
			PaneID: "w1:p2", TerminalID: "term_65836b28947ef1", WorkspaceID: "w1", TabID: "w1:t1", Status: Unknown, CWD: "/home/u/proj",
		}},
		{"s9", "success_response", "s9", func(ctx context.Context, c *Client) any { return call(c.Read(ctx, "w1:p2", Detection, 0)) }, Reading{Text: "❯ \n"}},
		{"s12", "success_response", "", func(ctx context.Context, c *Client) any {
			return call(c.Start(ctx, Start{Name: "worker-b", Kind: "codex", Pane: "w1:p3", Args: []string{"-m", "x"}}))
		}, fixedAgent},
	} {
		t.Run(test.request+test.answer, func(t *testing.T) {
			var asked []byte
			c := serve(t, func(conn net.Conn, request []byte) {
				asked = request
				conn.Write(renamed(t, request, fixedAnswer(t, test.kind, test.answer)))
			})
			if diff := cmp.Diff(test.want, test.ask(t.Context(), c)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(body(t, fixed(t, "request", test.request)), body(t, string(asked))); diff != "" {
				t.Error("request:", diff)
			}
		})
	}
}

// fixedAnswer is an answer of the fixtures, or where they have none, the one that the agent has started.
func fixedAnswer(t *testing.T, kind, id string) string {
	t.Helper()
	if id != "" {
		return fixed(t, kind, id)
	}
	list := fixed(t, "success_response", "s2")
	from, to := strings.Index(list, "[{"), strings.LastIndex(list, "}]")
	return `{"id":"s12","result":{"type":"agent_started","agent":` + list[from+1:to+1] + `,"argv":["codex","-m","x"]}}`
}

// renamed is the answer with the id of the request.
func renamed(t *testing.T, request []byte, answer string) []byte {
	t.Helper()
	_, rest, ok := strings.Cut(strings.TrimPrefix(answer, `{"id":"`), `"`)
	if !ok {
		t.Errorf("no id in %s", answer)
	}
	return reply(t, request, `{"id":"?"`+rest)
}

// body is a request but for its id.
func body(t *testing.T, line string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.NewDecoder(bytes.NewBufferString(line)).Decode(&m); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	delete(m, "id")
	return m
}
