package herdrtest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
)

func prompting(p *herdrtest.Pane, text, wait string) string {
	if wait != "" {
		wait = `,"wait":` + wait
	}
	return fmt.Sprintf(`{"target":%q,"text":%q%s}`, p.CurrentID(), text, wait)
}

// soon waits for a condition that is to come.
func soon(t *testing.T, srv *herdrtest.Server, holds func() bool) {
	t.Helper()
	srv.Await(20*time.Second, holds)
}

func TestAPromptReachesTheAgentAndSetsItToWork(t *testing.T) {
	for _, protocol := range []int{17, 19, 20, 22} {
		srv := start(t, protocol)
		p := srv.Agent(herdrtest.Agent{})
		must(t, srv, "agent.prompt", prompting(p, "do it", ""))
		soon(t, srv, func() bool { return p.Status() == "working" })
		want(t, "prompts", len(p.Prompts()), 1)
		want(t, "text", p.Prompts()[0].Text, "do it")
	}
}

func TestBeforeProtocol22AnAnswerDoesNotMeanThatEnterWasPressed(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Profile: 20, Speed: 0.1}) // Enter after three seconds
	p := srv.Agent(herdrtest.Agent{})
	must(t, srv, "agent.prompt", prompting(p, "do it", ""))
	want(t, "prompts at the answer", len(p.Prompts()), 0)

	srv = start(t, 22)
	p = srv.Agent(herdrtest.Agent{})
	r := must(t, srv, "agent.prompt", prompting(p, "do it", ""))
	want(t, "prompts at the answer of 22", len(p.Prompts()), 1)
	want(t, "status in it", r.at("agent.agent_status"), any("working"))
}

func TestAPromptThatMovesNothingStalls(t *testing.T) {
	for _, c := range []struct {
		protocol int
		wait     string
	}{{20, `{"until":["working","blocked"],"timeout_ms":20000}`}, {22, ""}} {
		srv := start(t, c.protocol)
		p := srv.Agent(herdrtest.Agent{})
		p.OnPrompt(func(*herdrtest.Pane, string) []herdrtest.Step { return nil })
		r := ask(t, srv, "agent.prompt", prompting(p, "do it", c.wait))
		want(t, "code", r.code(), "agent_prompt_stalled")
		if r.Error != nil && !strings.Contains(r.Error.Message, "status is idle and state_change_seq remained 1") {
			t.Errorf("it says %q, want the status and the sequence", r.Error.Message)
		}
		want(t, "prompts that were delivered all the same", len(p.Prompts()), 1)
	}
}

func TestAPromptCanWaitForTheEndOfItsTurn(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	p.OnPrompt(func(*herdrtest.Pane, string) []herdrtest.Step {
		return []herdrtest.Step{{After: time.Second, State: herdrtest.Working}, {After: time.Second, State: herdrtest.Idle}}
	})
	r := must(t, srv, "agent.prompt", prompting(p, "do it", `{"until":["idle","done"],"timeout_ms":60000}`))
	want(t, "status", r.at("agent.agent_status"), any("done"))
	want(t, "sequence", r.at("agent.state_change_seq"), any(3.0))
	r = ask(t, srv, "agent.prompt", prompting(p, "again", `{"until":["blocked"],"timeout_ms":10000}`))
	want(t, "code when it does not come", r.code(), "timeout")
}

func TestPromptsThatCannotBeDelivered(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{State: herdrtest.Blocked})
	refused(t, srv, "agent.prompt", prompting(p, "x", ""), "agent_blocked")
	refused(t, srv, "agent.prompt", prompting(p, " \n", ""), "empty_agent_prompt")
	refused(t, srv, "agent.prompt", prompting(srv.Root(), "x", ""), "agent_not_found")
	must(t, srv, "agent.start", `{"name":"late","kind":"codex","pane_id":"w1:p1"}`)
	refused(t, srv, "agent.prompt", `{"target":"late","text":"x"}`, "agent_launch_pending")
	want(t, "prompts", len(p.Prompts()), 0)

	old := start(t, 19)
	p = old.Agent(herdrtest.Agent{State: herdrtest.Blocked})
	must(t, old, "agent.prompt", prompting(p, "into the dialog", ""))
	soon(t, old, func() bool { return len(p.Prompts()) == 1 })
}

func TestTypedTextIsSubmittedByEnterOnly(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	must(t, srv, "pane.send_text", fmt.Sprintf(`{"pane_id":%q,"text":"hel"}`, p.ID))
	must(t, srv, "pane.send_input", fmt.Sprintf(`{"pane_id":%q,"text":"lo","keys":["Enter"]}`, p.ID))
	want(t, "prompts", len(p.Prompts()), 1)
	want(t, "text", p.Prompts()[0].Text, "hello")
	must(t, srv, "agent.send_keys", fmt.Sprintf(`{"target":%q,"keys":["Escape","ctrl+c","y"]}`, p.ID))
	want(t, "keys", strings.Join(p.Keys(), " "), "Enter Escape ctrl+c y")
	want(t, "typed", strings.Join(p.Typed(), "|"), "hel|lo")
	refused(t, srv, "pane.send_keys", fmt.Sprintf(`{"pane_id":%q,"keys":["Entre"]}`, p.ID), "invalid_key")
}

func TestAWaitAnswersAtOnceWhatHoldsAlready(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{State: herdrtest.Working})
	must(t, srv, "agent.wait", fmt.Sprintf(`{"target":%q,"until":["working"]}`, p.ID))
	refused(t, srv, "agent.wait", fmt.Sprintf(`{"target":%q,"timeout_ms":1000}`, p.ID), "timeout")
	refused(t, srv, "agent.wait", `{"target":"nobody"}`, "agent_not_found")
}

func TestAWaitEndsWithTheStatusOrTheAgent(t *testing.T) {
	for name, c := range map[string]struct {
		then func(*herdrtest.Pane)
		code string
	}{
		"the status":        {(*herdrtest.Pane).Idle, ""},
		"a dialog":          {(*herdrtest.Pane).Blocked, ""},
		"the agent is gone": {(*herdrtest.Pane).Gone, "agent_not_running"},
		"the pane closes":   {(*herdrtest.Pane).Close, "agent_not_running"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := start(t, 20)
			p := srv.Agent(herdrtest.Agent{State: herdrtest.Working})
			c1 := dial(t, srv)
			c1.put(request("agent.wait", fmt.Sprintf(`{"target":%q}`, p.ID)))
			soon(t, srv, func() bool { return len(srv.Requests("agent.wait")) == 1 })
			c.then(p)
			want(t, "code", parse(t, c1.line()).code(), c.code)
		})
	}
}

func TestAWaitDoesNotNoticeThatAnEndWasSeen(t *testing.T) {
	for protocol, code := range map[int]string{20: "timeout", 22: ""} {
		srv := herdrtest.New(t, herdrtest.Options{Profile: protocol})
		p := srv.Agent(herdrtest.Agent{Unseen: true})
		c := dial(t, srv)
		c.put(request("agent.wait", fmt.Sprintf(`{"target":%q,"until":["idle"],"timeout_ms":1500}`, p.ID)))
		soon(t, srv, func() bool { return srv.Waiting() == 1 })
		p.Focus()
		srv.Agent(herdrtest.Agent{}) // what happens elsewhere does not make it look again
		want(t, fmt.Sprintf("code of protocol %d", protocol), parse(t, c.line()).code(), code)
	}
}

func TestAnyByteOfTheClientEndsAWait(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{State: herdrtest.Working})
	c := dial(t, srv)
	c.put(request("agent.wait", target(p)))
	soon(t, srv, func() bool { return len(srv.Requests("agent.wait")) == 1 })
	c.put("x")
	want(t, "answer", c.line(), "")
}

func TestAStartedAgentIsANameThenStartsThenTakesPrompts(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 20})
	p := srv.Shell("/proj")
	var launch herdrtest.Launch
	srv.OnLaunch("claude", func(p *herdrtest.Pane, l herdrtest.Launch) []herdrtest.Step {
		launch = l
		return []herdrtest.Step{{After: 4 * time.Second, State: herdrtest.Idle, Screen: "❯ \n", Title: "✳ Claude Code"}}
	})
	r := must(t, srv, "agent.start", fmt.Sprintf(
		`{"name":"soldier","kind":"claude","pane_id":%q,"args":["--name","x"],"timeout_ms":30000}`, p.ID))
	for path, value := range map[string]any{
		"agent.name": "soldier", "agent.launch_pending": true, "agent.agent": nil, "agent.interactive_ready": nil,
		"agent.agent_status": "unknown", "argv.0": "claude", "argv.2": "x",
	} {
		want(t, path, r.at(path), value)
	}
	soon(t, srv, func() bool { return must(t, srv, "agent.get", target(p)).at("agent.agent") == "claude" })
	want(t, "status while it starts", p.Status(), "unknown")
	soon(t, srv, func() bool { return p.Status() != "unknown" })
	r = must(t, srv, "agent.get", `{"target":"soldier"}`)
	for path, value := range map[string]any{
		"agent.launch_pending": nil, "agent.interactive_ready": true, "agent.agent_status": "done", "agent.state_change_seq": 1.0,
	} {
		want(t, path, r.at(path), value)
	}
	want(t, "cwd", launch.CWD, "/proj")
	want(t, "args", strings.Join(launch.Args, " "), "--name x")
	want(t, "socket in its environment", launch.Env["HERDR_SOCKET_PATH"], srv.Socket)
}

func TestStartsThatCannotBe(t *testing.T) {
	srv := start(t, 20)
	srv.Agent(herdrtest.Agent{Name: "taken"})
	busy := srv.Shell("/")
	busy.Busy(true)
	for _, c := range []struct{ params, code string }{
		{`{"name":"Upper","kind":"claude","pane_id":"w1:p1"}`, "invalid_agent_name"},
		{`{"name":"taken","kind":"claude","pane_id":"w1:p1"}`, "agent_name_taken"},
		{`{"name":"a","kind":"clod","pane_id":"w1:p1"}`, "unsupported_agent_kind"},
		{`{"name":"a","kind":"muse","pane_id":"w1:p1"}`, "unsupported_agent_kind"},
		{`{"name":"a","kind":"claude","pane_id":"w1:p1","args":["a\nb"]}`, "invalid_agent_argument"},
		{`{"name":"a","kind":"claude","pane_id":"w1:p1","timeout_ms":3000}`, "invalid_agent_timeout"},
		{`{"name":"a","kind":"claude","pane_id":"w1:p1","timeout_ms":300001}`, "invalid_agent_timeout"},
		{`{"name":"a","kind":"claude","pane_id":"w9:p1"}`, "agent_pane_not_found"},
		{`{"name":"a","kind":"claude","pane_id":"w1:p2"}`, "agent_pane_busy"},
		{`{"name":"a","kind":"claude","pane_id":"w1:p3"}`, "agent_pane_unavailable"},
	} {
		refused(t, srv, "agent.start", c.params, c.code)
	}
	must(t, start(t, 22), "agent.start", `{"name":"a","kind":"muse","pane_id":"w1:p1"}`)
}

func TestSomethingRealCanStandBehindAPane(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	screen, state := "real\n", herdrtest.Idle
	var got []string
	p.Back(herdrtest.Backing{
		Screen: func() string { return screen },
		Title:  func() string { return "✳ real" },
		State:  func() string { return state },
		Processes: func() []herdrtest.Process {
			return []herdrtest.Process{{PID: 4242, Name: "claude", Argv: []string{"claude"}, CWD: "/proj"}}
		},
		Prompt: func(text string) error {
			got = append(got, text)
			return nil
		},
		Press: func(keys []string) error { got = append(got, keys...); return nil },
		Close: func() { got = append(got, "closed") },
	})
	want(t, "screen", must(t, srv, "pane.read", reading(p, "detection")).at("read.text"), any("real\n"))
	r := must(t, srv, "pane.process_info", pane(p))
	want(t, "pid", r.at("process_info.foreground_processes.0.pid"), any(4242.0))
	want(t, "title", must(t, srv, "agent.list", "{}").at("agents.0.terminal_title"), any("✳ real"))
	want(t, "foreground cwd", must(t, srv, "agent.list", "{}").at("agents.0.foreground_cwd"), any("/proj"))

	must(t, srv, "agent.prompt", prompting(p, "go", ""))
	soon(t, srv, func() bool { return len(p.Prompts()) == 1 })
	must(t, srv, "agent.send_keys", fmt.Sprintf(`{"target":%q,"keys":["Escape"]}`, p.ID))
	must(t, srv, "pane.close", pane(p))
	if !slices.Equal(got, []string{"go", "Escape", "closed"}) {
		t.Errorf("behind the pane came %q, want go Escape closed", got)
	}
}

func TestADeliveryThatFailsBehindThePaneIsTold(t *testing.T) {
	srv := start(t, 22)
	p := srv.Agent(herdrtest.Agent{})
	p.Back(herdrtest.Backing{
		Prompt: func(string) error { return errors.New("no terminal") },
		Press:  func([]string) error { return errors.New("no terminal") },
	})
	refused(t, srv, "agent.prompt", prompting(p, "x", ""), "agent_prompt_failed")
	refused(t, srv, "agent.send_keys", fmt.Sprintf(`{"target":%q,"keys":["Enter"]}`, p.ID), "agent_send_keys_failed")
	refused(t, srv, "pane.send_keys", fmt.Sprintf(`{"pane_id":%q,"keys":["Enter"]}`, p.ID), "pane_send_failed")
}

func TestFromProtocol22AWaitingPromptNeedsWorkOrADialog(t *testing.T) {
	for protocol, code := range map[int]string{20: "", 22: "agent_prompt_stalled"} {
		srv := start(t, protocol)
		p := srv.Agent(herdrtest.Agent{State: herdrtest.Unknown, Beside: srv.Root()})
		p.OnPrompt(func(*herdrtest.Pane, string) []herdrtest.Step { return []herdrtest.Step{{State: herdrtest.Idle}} })
		r := ask(t, srv, "agent.prompt", prompting(p, "x", `{"until":["idle"]}`))
		want(t, "code", r.code(), code)
	}
}
