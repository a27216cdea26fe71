package herdrtest_test

import (
	"fmt"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
)

// target is the parameters of a request about one agent.
func target(p *herdrtest.Pane) string { return fmt.Sprintf(`{"target":%q}`, p.CurrentID()) }

// pane is the parameters of a request about one pane.
func pane(p *herdrtest.Pane) string { return fmt.Sprintf(`{"pane_id":%q}`, p.CurrentID()) }

func TestDoneIsIdleThatNobodyHasSeen(t *testing.T) {
	srv := start(t, 20)
	hidden, shown := srv.Agent(herdrtest.Agent{}), srv.Agent(herdrtest.Agent{Beside: srv.Root()})
	for _, p := range []*herdrtest.Pane{hidden, shown} {
		want(t, "at first", p.Status(), "idle")
		p.Working()
		want(t, "at work", p.Status(), "working")
		p.Idle()
	}
	want(t, "in a tab that is not shown", hidden.Status(), "done")
	want(t, "in the tab that is shown", shown.Status(), "idle")

	seq := hidden.Seq()
	r := must(t, srv, "agent.focus", target(hidden))
	want(t, "after its focus", r.at("agent.agent_status"), any("idle"))
	want(t, "sequence", hidden.Seq(), seq)
}

func TestWithoutTheTerminalsFocusNoEndIsSeen(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Beside: srv.Root(), State: herdrtest.Working})
	srv.FocusTerminal(false)
	p.Idle()
	want(t, "status", p.Status(), "done")
	srv.FocusTerminal(true)
	must(t, srv, "tab.focus", `{"tab_id":"w1:t1"}`)
	want(t, "after the tab was shown", p.Status(), "idle")
}

func TestReadsMarkNothingAsSeen(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Unseen: true})
	must(t, srv, "pane.read", fmt.Sprintf(`{"pane_id":%q,"source":"visible"}`, p.ID))
	want(t, "status", p.Status(), "done")
}

func TestOneCounterNumbersTheChangesOfAllAgents(t *testing.T) {
	srv := start(t, 20)
	a, b := srv.Agent(herdrtest.Agent{}), srv.Agent(herdrtest.Agent{})
	want(t, "a", a.Seq(), 1)
	want(t, "b", b.Seq(), 2)
	a.Working()
	a.Working()
	want(t, "a at work, said twice", a.Seq(), 3)
	b.Blocked()
	want(t, "b", b.Seq(), 4)
	want(t, "a still", a.Seq(), 3)
}

func TestARollupHidesWorkBehindAnUnseenEnd(t *testing.T) {
	srv := start(t, 20)
	srv.Agent(herdrtest.Agent{State: herdrtest.Working})
	want(t, "working", must(t, srv, "workspace.list", "{}").at("workspaces.0.agent_status"), any("working"))
	srv.Agent(herdrtest.Agent{Unseen: true})
	want(t, "with an end", must(t, srv, "workspace.list", "{}").at("workspaces.0.agent_status"), any("done"))
}

func TestAnAgentThatExitsIsIdleForAMomentThenAShell(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 1})
	p := srv.Agent(herdrtest.Agent{Name: "a", State: herdrtest.Working, Session: "s", Beside: srv.Root()})
	p.Exit()
	want(t, "at once", must(t, srv, "agent.get", target(p)).at("agent.agent_status"), any("idle"))
	srv.Await(10*time.Second, func() bool { return p.Status() == "unknown" })
	refused(t, srv, "agent.get", target(p), "agent_not_found")
	refused(t, srv, "agent.get", `{"target":"a"}`, "agent_not_found")
	r := must(t, srv, "pane.get", pane(p))
	want(t, "pane's agent", r.at("pane.agent"), nil)
	want(t, "pane's session", r.at("pane.agent_session"), nil)
	want(t, "pane's status", r.at("pane.agent_status"), any("unknown"))
}

func TestAnAgentCanBeMissingFromTheListsAndBeThere(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	p.Hide(true)
	want(t, "agents", must(t, srv, "agent.list", "{}").at("agents.0"), nil)
	want(t, "second pane", must(t, srv, "pane.list", "{}").at("panes.1"), nil)
	want(t, "pane.get", must(t, srv, "pane.get", pane(p)).at("pane.agent"), any("claude"))
	p.Hide(false)
	want(t, "agents again", must(t, srv, "agent.list", "{}").at("agents.0.pane_id"), any(p.ID))
}

func TestAnIntegrationsReportsHaveTheAuthority(t *testing.T) {
	srv := start(t, 20)
	p := srv.Shell("/")
	report := func(state string, seq int) {
		t.Helper()
		must(t, srv, "pane.report_agent", fmt.Sprintf(
			`{"pane_id":%q,"source":"herdr:pi","agent":"pi","state":%q,"seq":%d,"agent_session_path":"/s.jsonl"}`, p.ID, state, seq))
	}
	report("working", 2)
	report("idle", 1)
	r := must(t, srv, "agent.get", target(p))
	for path, value := range map[string]any{
		"agent.agent": "pi", "agent.agent_status": "working", "agent.screen_detection_skipped": true,
		"agent.agent_session.kind": "path", "agent.agent_session.value": "/s.jsonl",
	} {
		want(t, path, r.at(path), value)
	}
	want(t, "authority", must(t, srv, "agent.explain", target(p)).at("explain.authority"), any("hook"))
	must(t, srv, "pane.clear_agent_authority", pane(p))
	want(t, "screen again", must(t, srv, "agent.get", target(p)).at("agent.screen_detection_skipped"), nil)
	report("blocked", 1)
	must(t, srv, "pane.release_agent", fmt.Sprintf(`{"pane_id":%q,"source":"herdr:pi","agent":"pi"}`, p.ID))
	refused(t, srv, "agent.get", target(p), "agent_not_found")
}

func TestExplainTellsAGuessFromASight(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	r := must(t, srv, "agent.explain", target(p))
	want(t, "visible_idle", r.at("explain.visible_idle"), any(true))
	want(t, "fallback_reason", r.at("explain.fallback_reason"), nil)
	p.Fallback(true)
	r = must(t, srv, "agent.explain", target(p))
	want(t, "visible_idle of a guess", r.at("explain.visible_idle"), any(false))
	want(t, "fallback_reason of a guess", r.at("explain.fallback_reason"), any("default_known_agent_idle_fallback"))
	p.Explain(map[string]any{"other": "shape"})
	want(t, "a given shape", must(t, srv, "agent.explain", target(p)).at("explain.other"), any("shape"))
}

func TestAnAgentIsNamedByItsNameOrPaneAndNothingElse(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Name: "worker-a"})
	r := must(t, srv, "agent.get", `{"target":"worker-a"}`)
	want(t, "pane", r.at("agent.pane_id"), any(p.ID))
	for _, other := range []string{"claude", r.at("agent.terminal_id").(string), "w1-2", "w1:p1"} {
		refused(t, srv, "agent.get", fmt.Sprintf(`{"target":%q}`, other), "agent_not_found")
	}
	srv.Agent(herdrtest.Agent{Name: "worker-b"})
	refused(t, srv, "agent.rename", `{"target":"worker-b","name":"worker-a"}`, "agent_name_taken")
	refused(t, srv, "agent.rename", `{"target":"worker-b","name":"Worker"}`, "invalid_agent_name")
	want(t, "renamed", must(t, srv, "agent.rename", `{"target":"worker-b","name":"c"}`).at("agent.name"), any("c"))
	want(t, "cleared", must(t, srv, "agent.rename", `{"target":"c","name":null}`).at("agent.name"), nil)
}

func TestAScriptRunsUntilAnotherTakesItsPlace(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Beside: srv.Root()})
	p.Run(
		herdrtest.Step{State: herdrtest.Working, Screen: "one", Title: "✻ t"},
		herdrtest.Step{After: time.Second, Screen: "two"},
		herdrtest.Step{After: time.Second, State: herdrtest.Idle, Title: "✳ t"},
	)
	want(t, "the first step", p.Status(), "working")
	srv.Await(10*time.Second, func() bool { return p.Status() == "idle" })
	r := must(t, srv, "pane.read", fmt.Sprintf(`{"pane_id":%q,"source":"detection"}`, p.ID))
	want(t, "screen", r.at("read.text"), any("two"))
	want(t, "title", must(t, srv, "agent.list", "{}").at("agents.0.terminal_title"), any("✳ t"))

	p.Run(herdrtest.Step{After: time.Hour, State: herdrtest.Blocked})
	p.Run(herdrtest.Step{State: herdrtest.Working}, herdrtest.Step{After: time.Second, Do: (*herdrtest.Pane).Exit})
	srv.Await(10*time.Second, func() bool { return p.Status() == "unknown" })
}
