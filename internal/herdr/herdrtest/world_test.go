package herdrtest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
)

// recorder is a test that the fake may fail without failing the one that it is part of.
type recorder struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// complaints are what the fake failed the recorded test for.
func (r *recorder) complaints() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.said...)
}

// start is a fake of a protocol, a hundred times as fast as herdr, whose lines are held against the schema.
func start(t testing.TB, protocol int) *herdrtest.Server {
	t.Helper()
	return herdrtest.New(t, herdrtest.Options{Profile: protocol, Speed: 100, Validate: schema.Validate})
}

// client is one connection to a fake.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func dial(t testing.TB, srv *herdrtest.Server) *client {
	t.Helper()
	c, err := net.Dial("unix", srv.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{t: t, Conn: c, r: bufio.NewReader(c)}
}

// put sends a line. That the fake has heard enough before its end is no error.
func (c *client) put(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil && !errors.Is(err, syscall.EPIPE) {
		c.t.Fatal(err)
	}
}

// line is the next line; "" at the end.
func (c *client) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// raw sends a line and is all that comes back.
func raw(t testing.TB, srv *herdrtest.Server, line string) string {
	t.Helper()
	c := dial(t, srv)
	c.put(line)
	all, err := io.ReadAll(c.r)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Fatal(err)
	}
	return string(all)
}

// reply is an answer, decoded as far as these tests look.
type reply struct {
	ID     string
	Result map[string]any
	Error  *herdrtest.Error
}

// at is a value inside the result: keys and list indices, with dots between.
func (r reply) at(path string) any {
	var v any = r.Result
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func (r reply) code() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

func parse(t testing.TB, line string) reply {
	t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("answer %q: %v", line, err)
	}
	return r
}

func request(method, params string) string {
	return fmt.Sprintf(`{"id":"t","method":%q,"params":%s}`, method, params)
}

// ask sends a request and is its answer.
func ask(t testing.TB, srv *herdrtest.Server, method, params string) reply {
	t.Helper()
	return parse(t, raw(t, srv, request(method, params)))
}

// must is the answer to a request that is to succeed.
func must(t testing.TB, srv *herdrtest.Server, method, params string) reply {
	t.Helper()
	r := ask(t, srv, method, params)
	if r.Error != nil {
		t.Fatalf("%s %s: %v", method, params, r.Error)
	}
	return r
}

// refused is the code of the error that a request is to get.
func refused(t testing.TB, srv *herdrtest.Server, method, params, code string) {
	t.Helper()
	if r := ask(t, srv, method, params); r.code() != code {
		t.Errorf("%s %s: %v, want %s", method, params, r, code)
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestAnAgentIsListedWithWhatItDoes(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Kind: "claude", Name: "worker-a", Title: "✳ fix tests", CWD: "/home/u/proj"})
	p.Working()
	r := must(t, srv, "agent.list", "{}")
	for path, value := range map[string]any{
		"type": "agent_list", "agents.0.name": "worker-a", "agents.0.agent": "claude", "agents.0.agent_status": "working",
		"agents.0.pane_id": p.ID, "agents.0.terminal_title_stripped": "fix tests", "agents.0.state_change_seq": 2.0,
		"agents.0.focused": false, "agents.0.launch_pending": nil, "agents.1": nil,
	} {
		want(t, path, r.at(path), value)
	}
}
