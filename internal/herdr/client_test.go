package herdr

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const paneAnswer = `{"pane_id":"w1:p3","terminal_id":"term_1","workspace_id":"w1","tab_id":"w1:t2","focused":false,"agent_status":"unknown","revision":0}`

// What each method asks, and what it makes of the answer. The server checks every request against the schema.
func TestEachMethodAsksAsTheSchemaSays(t *testing.T) {
	pane := Pane{PaneID: "w1:p3", TerminalID: "term_1", WorkspaceID: "w1", TabID: "w1:t2", Status: Unknown}
	tab := `{"tab_id":"w1:t2","workspace_id":"w1","number":2,"label":"x","focused":false,"pane_count":1,"agent_status":"unknown"}`
	workspace := `{"workspace_id":"w1","number":1,"label":"x","focused":false,"pane_count":1,"tab_count":1,"active_tab_id":"w1:t2","agent_status":"unknown"}`
	agent := `{"terminal_id":"term_1","agent_status":"idle","workspace_id":"w1","tab_id":"w1:t2","pane_id":"w1:p3","focused":false,"revision":0,"launch_pending":true}`
	started := Agent{TerminalID: "term_1", Status: Idle, WorkspaceID: "w1", TabID: "w1:t2", PaneID: "w1:p3", LaunchPending: true}
	env := map[string]string{"A": "b"}
	for _, test := range []struct {
		asked  string // after the id
		result string
		call   func(ctx context.Context, c *Client) (any, error)
		want   any
	}{
		{
			`"method":"pane.current","params":{"caller_pane_id":"w1:p3"}`, `{"type":"pane_current","pane":` + paneAnswer + `}`,
			func(ctx context.Context, c *Client) (any, error) { return c.Current(ctx, "w1:p3") }, pane,
		},
		{
			`"method":"pane.current","params":{}`, `{"type":"pane_current","pane":` + paneAnswer + `}`,
			func(ctx context.Context, c *Client) (any, error) { return c.Current(ctx, "") }, pane,
		},
		{
			`"method":"pane.split","params":{"direction":"right","target_pane_id":"w1:p1","cwd":"/c","env":{"A":"b"},"focus":false}`,
			`{"type":"pane_info","pane":` + paneAnswer + `}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.Split(ctx, Split{Pane: "w1:p1", CWD: "/c", Env: env})
			}, pane,
		},
		{
			`"method":"pane.split","params":{"direction":"down","focus":true}`, `{"type":"pane_info","pane":` + paneAnswer + `}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.Split(ctx, Split{Down: true, Focus: true})
			}, pane,
		},
		{
			`"method":"tab.create","params":{"workspace_id":"w1","label":"l","cwd":"/c","env":{"A":"b"},"focus":false}`,
			`{"type":"tab_created","tab":` + tab + `,"root_pane":` + paneAnswer + `}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.CreateTab(ctx, Tab{Workspace: "w1", Label: "l", CWD: "/c", Env: env})
			}, pane,
		},
		{
			`"method":"workspace.create","params":{"label":"l","focus":false}`,
			`{"type":"workspace_created","workspace":` + workspace + `,"tab":` + tab + `,"root_pane":` + paneAnswer + `}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.CreateWorkspace(ctx, Tab{Workspace: "w9", Label: "l"})
			}, pane,
		},
		{
			`"method":"pane.close","params":{"pane_id":"w1:p3"}`, `{"type":"ok"}`,
			func(ctx context.Context, c *Client) (any, error) { return nil, c.ClosePane(ctx, "w1:p3") }, nil,
		},
		{
			`"method":"pane.send_keys","params":{"pane_id":"w1:p3","keys":["Esc","Enter"]}`, `{"type":"ok"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return nil, c.SendKeys(ctx, "w1:p3", "Esc", "Enter")
			}, nil,
		},
		{
			`"method":"pane.send_keys","params":{"pane_id":"w1:p3","keys":[]}`, `{"type":"ok"}`,
			func(ctx context.Context, c *Client) (any, error) { return nil, c.SendKeys(ctx, "w1:p3") }, nil,
		},
		{
			`"method":"pane.read","params":{"pane_id":"w1:p3","source":"visible","lines":20}`,
			`{"type":"pane_read","read":{"pane_id":"w1:p3","workspace_id":"w1","tab_id":"w1:t2","source":"visible","format":"text","text":"a\nb","revision":0,"truncated":true}}`,
			func(ctx context.Context, c *Client) (any, error) { return c.Read(ctx, "w1:p3", Visible, 20) },
			Reading{Text: "a\nb", Truncated: true},
		},
		{
			`"method":"pane.process_info","params":{"pane_id":"w1:p3"}`,
			`{"type":"pane_process_info","process_info":{"pane_id":"w1:p3","shell_pid":7,"foreground_process_group_id":9,"foreground_processes":[{"pid":9,"name":"claude","argv":["claude","-c"],"cwd":"/c"},{"pid":10,"name":"node","argv":null}]}}`,
			func(ctx context.Context, c *Client) (any, error) { return c.Processes(ctx, "w1:p3") },
			Processes{Shell: 7, Group: 9, Foreground: []Process{{PID: 9, Name: "claude", Argv: []string{"claude", "-c"}, CWD: "/c"}, {PID: 10, Name: "node"}}},
		},
		{
			`"method":"agent.get","params":{"target":"worker-a"}`, `{"type":"agent_info","agent":` + agent + `}`,
			func(ctx context.Context, c *Client) (any, error) { return c.Agent(ctx, "worker-a") }, started,
		},
		{
			`"method":"agent.start","params":{"name":"a","kind":"claude","pane_id":"w1:p3","timeout_ms":60000}`, `{"type":"agent_started","agent":` + agent + `,"argv":["claude"]}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.Start(ctx, Start{Name: "a", Kind: "claude", Pane: "w1:p3", Timeout: time.Minute})
			}, started,
		},
		{
			`"method":"agent.prompt","params":{"target":"w1:p3","text":"fix <a> & \"b\"\nthen é"}`, `{"type":"agent_prompted","agent":` + agent + `}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.Prompt(ctx, "w1:p3", "fix <a> & \"b\"\nthen é")
			}, started,
		},
		{
			`"method":"agent.explain","params":{"target":"w1:p3"}`,
			`{"type":"agent_explain","explain":{"agent":"pi","evaluated_rules":[{"id":"x","matched":false}],"fallback_reason":"default_known_agent_idle_fallback","matched_rule":null,"screen_detection_skipped":false,"state":"idle"}}`,
			func(ctx context.Context, c *Client) (any, error) { return c.Explain(ctx, "w1:p3") },
			Explanation{State: Idle, FallbackReason: "default_known_agent_idle_fallback"},
		},
	} {
		t.Run(test.asked, func(t *testing.T) {
			var asked string
			c := serve(t, func(conn net.Conn, request []byte) {
				asked = string(request)
				answer := reply(t, request, `{"id":"?","result":`+test.result+`}`)
				valid(t, "success_response", answer)
				conn.Write(answer)
			})
			got, err := test.call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if _, rest, _ := strings.Cut(asked, ","); rest != test.asked+"}\n" {
				t.Errorf("asked %s\nwant  %s", rest, test.asked)
			}
		})
	}
}

func TestASourceThatScrollsThePaneIsNotAskedFor(t *testing.T) {
	c := serve(t, func(_ net.Conn, request []byte) { t.Errorf("asked %s", request) })
	for _, source := range []Source{"recent", "recent_unwrapped", ""} {
		if _, err := c.Read(t.Context(), "w1:p1", source, 80); err == nil {
			t.Errorf("source %q was read", source)
		}
	}
}

func TestAnOldHerdrIsOneBelowTheFloorAndNothingElse(t *testing.T) {
	for protocol, old := range map[int]bool{16: true, 17: false, 19: false, 20: false, 22: false, 99: false} {
		if (Pong{Protocol: protocol}).Old() != old {
			t.Errorf("protocol %d: old is %v", protocol, !old)
		}
	}
}

func TestARequestOverHerdrsLimitIsNotSent(t *testing.T) {
	c := serve(t, func(_ net.Conn, request []byte) { t.Errorf("asked with %d bytes", len(request)) })
	_, err := c.Prompt(t.Context(), "w1:p1", strings.Repeat("x", maxRequest))
	if err == nil || errors.Is(err, ErrTimeout) {
		t.Errorf("error is %v", err)
	}
}

// A text of the largest size is more than a socket takes at once.
func TestALargePromptArrivesWhole(t *testing.T) {
	text := strings.Repeat("é<\n", maxRequest/8)
	got := 0
	c := serve(t, func(conn net.Conn, request []byte) {
		got = strings.Count(string(request), `é<\n`)
		conn.Write(reply(t, request, `{"id":"?","error":{"code":"agent_blocked","message":"m"}}`))
	})
	if _, err := c.Prompt(t.Context(), "w1:p1", text); Code(err) != AgentBlocked {
		t.Fatal(err)
	}
	if got != maxRequest/8 {
		t.Errorf("%d of %d pieces arrived", got, maxRequest/8)
	}
}
