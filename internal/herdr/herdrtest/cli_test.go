package herdrtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
)

func TestMain(m *testing.M) {
	herdrtest.RunAsCLI()
	os.Exit(m.Run())
}

// herdr runs the command in the environment of a pane.
func herdr(t *testing.T, p *herdrtest.Pane, protocol string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	env := map[string]string{"HERDRTEST_PROTOCOL": protocol}
	for _, pair := range p.Env() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	var out, err bytes.Buffer
	status = herdrtest.CLI(args, func(name string) string { return env[name] }, &out, &err)
	return out.String(), err.String(), status
}

func TestTheCommandPrintsAnAnswerOrAnErrorOrItsUsage(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 100, AnyRead: true, Validate: schema.Validate})
	p := srv.Agent(herdrtest.Agent{Name: "a", Screen: "one\ntwo\n"})
	for _, c := range []struct {
		args   string
		status int
		out    string // what stdout begins with; "-" is nothing
		err    string // what stderr has
	}{
		{"agent list", 0, `{"id":"cli","result":{"agents":[`, ""},
		{"agent get a", 0, `{"id":"cli","result":{"agent":{`, ""},
		{"agent get b", 1, "-", `"code":"agent_not_found"`},
		{"agent explain a --json", 0, `{"id":"cli","result":{"explain"`, ""},
		{"agent read a --source recent-unwrapped --lines 1", 0, "two\n", ""},
		{"agent read a", 0, "one\ntwo\n", ""},
		{"agent read a --source latest", 1, "-", "invalid source"},
		{"agent read a --lines many", 1, "-", "invalid --lines"},
		{"agent rename a b", 0, `{"id":"cli"`, ""},
		{"agent rename b", 2, "-", "usage: herdr agent rename"},
		{"agent rename b --clear", 0, `{"id":"cli"`, ""},
		{"agent wait " + p.ID, 0, `{"id":"cli"`, ""},
		{"agent wait " + p.ID + " --until working --timeout 100", 1, "-", `"code":"timeout"`},
		{"agent prompt " + p.ID + " text --timeout 5", 2, "-", "need --wait"},
		{"agent prompt " + p.ID + " text --wait --until working", 0, `{"id":"cli"`, ""},
		{"agent send-keys " + p.ID + " Escape", 0, `{"id":"cli"`, ""},
		{"agent focus " + p.ID, 0, `{"id":"cli"`, ""},
		{"pane send-keys w1:p1 Enter", 0, "-", ""},
		{"pane send-text w1:p1 ls", 0, "-", ""},
		{"pane run w1:p1 go test", 0, "-", ""},
		{"pane read w1:p1 --source visible", 0, "-", ""},
		{"pane current", 0, `{"id":"cli","result":{"pane":{`, ""},
		{"pane split w1:p1 --direction right --env A=b", 0, `{"id":"cli"`, ""},
		{"pane split w1:p1", 2, "-", "usage: herdr pane split"},
		{"pane wait-output " + p.ID + " --match two", 0, `{"id":"cli"`, ""},
		{"pane get w1:p9", 1, "-", `"code":"pane_not_found"`},
		{"pane process-info w1:p1", 0, `{"id":"cli"`, ""},
		{"pane list --workspace w1", 0, `{"id":"cli"`, ""},
		{"pane close w1:p3", 0, `{"id":"cli"`, ""},
		{"api snapshot", 0, `{"id":"cli"`, ""},
		{"agent list --all", 2, "-", "usage: herdr agent list"},
		{"agent", 2, "-", "usage"},
		{"", 2, "-", "usage"},
		{"wait agent-status w1:p2 --status idle", 2, "-", "unknown command: wait"},
		{"agent send a text", 2, "-", "unknown agent command: send"},
	} {
		out, err, status := herdr(t, p, "", strings.Fields(c.args)...)
		wrong := c.out == "-" && out != "" || c.out != "-" && !strings.HasPrefix(out, c.out)
		if status != c.status || wrong || !strings.Contains(err, c.err) || c.err == "" && err != "" {
			t.Errorf("herdr %s: status %d, stdout %q, stderr %q; want %d, %q, %q", c.args, status, out, err, c.status, c.out, c.err)
		}
		if status == 1 && strings.Contains(c.err, "code") && !json.Valid([]byte(err)) {
			t.Errorf("herdr %s: stderr %q is no JSON", c.args, err)
		}
	}
	want(t, "what was typed", strings.Join(srv.Root().Typed(), "|"), "ls|go test")
	if pings, all := len(srv.Requests("ping")), len(srv.Requests("")); pings*2 != all {
		t.Errorf("%d pings among %d requests, want one before each", pings, all)
	}
}

func TestTheCommandRefusesAServerOfAnotherProtocol(t *testing.T) {
	srv := start(t, 20)
	_, err, status := herdr(t, srv.Root(), "22", "agent", "list")
	want(t, "status", status, 1)
	if !strings.Contains(err, `"code":"protocol_mismatch"`) {
		t.Errorf("stderr %q, want protocol_mismatch", err)
	}
	want(t, "requests", len(srv.Requests("agent.list")), 0)
	out, _, status := herdr(t, srv.Root(), "22", "status", "--json")
	want(t, "status's status", status, 0)
	if !strings.Contains(out, `"compatible":false`) {
		t.Errorf("status says %s, want it incompatible", out)
	}
}

func TestTheCommandSaysWhenNoServerRuns(t *testing.T) {
	srv := start(t, 20)
	srv.Stop()
	_, err, status := herdr(t, srv.Root(), "", "agent", "list")
	want(t, "status", status, 1)
	if !strings.Contains(err, `"code":"server_not_running"`) {
		t.Errorf("stderr %q, want server_not_running", err)
	}
	out, _, status := herdr(t, srv.Root(), "", "status", "server", "--json")
	want(t, "status's status", status, 0)
	if !strings.Contains(out, `"running":false`) {
		t.Errorf("status says %s, want that it does not run", out)
	}
}

func TestTheCommandWaitsUntilAStartedAgentIsReady(t *testing.T) {
	srv := start(t, 20)
	out, err, status := herdr(t, srv.Root(), "", "agent", "start", "a", "--kind", "claude", "--pane", "w1:p1", "--", "-m", "x")
	if status != 0 || !strings.Contains(out, `"interactive_ready":true`) {
		t.Errorf("start: %d %s %s, want a ready agent", status, out, err)
	}
	srv.OnLaunch("codex", func(*herdrtest.Pane, herdrtest.Launch) []herdrtest.Step {
		return []herdrtest.Step{{State: herdrtest.Blocked}}
	})
	srv.Shell("/")
	_, err, status = herdr(t, srv.Root(), "", "agent", "start", "b", "--kind", "codex", "--pane", "w1:p2")
	if status != 1 || !strings.Contains(err, "agent_not_ready") {
		t.Errorf("start of a blocked one: %d %s, want agent_not_ready", status, err)
	}
}

func TestATestBinaryCanBeTheCommand(t *testing.T) {
	srv := start(t, 20)
	dir := srv.CommandDir()
	cmd := exec.Command(filepath.Join(dir, "herdr"), "agent", "get", "nobody")
	cmd.Env = append(os.Environ(), srv.Root().Env()...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), "agent_not_found") {
		t.Errorf("herdr agent get nobody: %v, %s; want agent_not_found", err, stderr.String())
	}
	if env := strings.Join(srv.Root().Env(), " "); !strings.Contains(env, "HERDR_BIN_PATH="+dir) {
		t.Errorf("a pane's environment is %s, want the command in it", env)
	}
}
