package herdrtest_test

import (
	"fmt"
	"strings"
	"testing"

	"vx/internal/herdr/herdrtest"
)

func TestASplitSharesTheTabAndTakesNoFocus(t *testing.T) {
	srv := start(t, 20)
	r := must(t, srv, "pane.split", `{"direction":"right","target_pane_id":"w1:p1","cwd":"/proj","env":{"A":"b"}}`)
	for path, value := range map[string]any{
		"pane.pane_id": "w1:p2", "pane.tab_id": "w1:t1", "pane.cwd": "/proj", "pane.focused": false, "pane.agent_status": "unknown",
	} {
		want(t, path, r.at(path), value)
	}
	env := strings.Join(srv.Pane("w1:p2").Env(), " ")
	want(t, "environment", env, "A=b HERDR_ENV=1 HERDR_PANE_ID=w1:p2 HERDR_SOCKET_PATH="+srv.Socket+" HERDR_TAB_ID=w1:t1 HERDR_WORKSPACE_ID=w1")
	refused(t, srv, "pane.split", `{"direction":"right","target_pane_id":"w1:p9"}`, "pane_not_found")
	must(t, srv, "pane.split", `{"direction":"down","focus":true}`)
	want(t, "current", must(t, srv, "pane.current", `{}`).at("pane.pane_id"), any("w1:p3"))
	want(t, "caller", must(t, srv, "pane.current", `{"caller_pane_id":"w1:p2"}`).at("pane.pane_id"), any("w1:p2"))
}

func TestTabsAndWorkspacesComeWithAShellAndGoWithTheirLastPane(t *testing.T) {
	srv := start(t, 20)
	r := must(t, srv, "tab.create", `{"cwd":"/proj","label":"soldier"}`)
	want(t, "tab", r.at("tab.tab_id"), any("w1:t2"))
	want(t, "its pane", r.at("root_pane.pane_id"), any("w1:p2"))
	want(t, "focus", r.at("tab.focused"), any(false))
	r = must(t, srv, "workspace.create", `{"cwd":"/other","label":"other"}`)
	want(t, "workspace", r.at("workspace.workspace_id"), any("w2"))
	want(t, "its tab", r.at("tab.tab_id"), any("w2:t1"))
	want(t, "its pane", r.at("root_pane.pane_id"), any("w2:p1"))

	must(t, srv, "pane.close", `{"pane_id":"w1:p2"}`)
	refused(t, srv, "tab.get", `{"tab_id":"w1:t2"}`, "tab_not_found")
	want(t, "next tab", must(t, srv, "tab.create", `{}`).at("tab.tab_id"), any("w1:t3"))
	must(t, srv, "tab.close", `{"tab_id":"w1:t3"}`)
	refused(t, srv, "pane.get", `{"pane_id":"w1:p3"}`, "pane_not_found")
	must(t, srv, "workspace.close", `{"workspace_id":"w2"}`)
	refused(t, srv, "workspace.get", `{"workspace_id":"w2"}`, "workspace_not_found")
	want(t, "next workspace", must(t, srv, "workspace.create", `{}`).at("workspace.workspace_id"), any("w3"))
	want(t, "tabs of the first", must(t, srv, "tab.list", `{"workspace_id":"w1"}`).at("tabs.1"), nil)
	refused(t, srv, "tab.list", `{"workspace_id":"w2"}`, "workspace_not_found")
}

func TestAllCanBeClosedAndBegunAnew(t *testing.T) {
	srv := start(t, 20)
	must(t, srv, "workspace.close", `{"workspace_id":"w1"}`)
	want(t, "panes", must(t, srv, "session.snapshot", `{}`).at("snapshot.panes.0"), nil)
	refused(t, srv, "pane.current", `{}`, "pane_not_found")
	p := srv.Agent(herdrtest.Agent{})
	want(t, "workspace", must(t, srv, "agent.get", target(p)).at("agent.workspace_id"), any("w2"))
}

func TestAPaneThatMovesToAnotherWorkspaceGetsAnotherID(t *testing.T) {
	srv := start(t, 22)
	p := srv.Agent(herdrtest.Agent{Name: "a", State: herdrtest.Working})
	events := stream(t, srv, `{"type":"pane.moved"}`)
	wait := dial(t, srv)
	wait.put(request("agent.wait", target(p)))
	soon(t, srv, func() bool { return len(srv.Requests("agent.wait")) == 1 })
	r := must(t, srv, "pane.move", fmt.Sprintf(`{"pane_id":%q,"destination":{"type":"new_workspace","label":"other"}}`, p.ID))
	want(t, "id", r.at("move_result.pane.pane_id"), any("w2:p1"))
	want(t, "its old tab", r.at("move_result.closed_tab_id"), any("w1:t2"))
	want(t, "the wait", parse(t, wait.line()).code(), "agent_not_running")
	e := events.event()
	want(t, "event", e.Event, "pane_moved")
	want(t, "previous id", e.Data["previous_pane_id"], any(p.ID))

	want(t, "pane by its old id", must(t, srv, "pane.get", fmt.Sprintf(`{"pane_id":%q}`, p.ID)).at("pane.pane_id"), any("w2:p1"))
	refused(t, srv, "agent.get", fmt.Sprintf(`{"target":%q}`, p.ID), "agent_not_found")
	want(t, "agent by its name", must(t, srv, "agent.get", `{"target":"a"}`).at("agent.pane_id"), any("w2:p1"))
	want(t, "current id", p.CurrentID(), "w2:p1")
}

func TestASnapshotHasEverything(t *testing.T) {
	srv := start(t, 20)
	srv.Agent(herdrtest.Agent{Name: "a", Beside: srv.Root()})
	srv.Agent(herdrtest.Agent{Name: "b"})
	r := must(t, srv, "session.snapshot", "{}")
	for path, value := range map[string]any{
		"snapshot.version": "0.8.2", "snapshot.protocol": 20.0, "snapshot.focused_pane_id": "w1:p1", "snapshot.workspaces.0.tab_count": 2.0,
		"snapshot.tabs.1.tab_id": "w1:t2", "snapshot.panes.2.pane_id": "w1:p3", "snapshot.agents.1.name": "b",
		"snapshot.layouts.0.panes.1.pane_id": "w1:p2",
	} {
		want(t, path, r.at(path), value)
	}
}

func TestProcessesAreThoseThatTheTestGives(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	r := must(t, srv, "pane.process_info", pane(p))
	want(t, "shell", r.at("process_info.shell_pid"), nil)
	want(t, "processes", r.at("process_info.foreground_processes.0"), nil)
	p.ShellPID(10)
	p.Foreground(herdrtest.Process{PID: 11, Name: "claude", Argv: []string{"claude", "--name", "x"}})
	r = must(t, srv, "pane.process_info", pane(p))
	want(t, "shell", r.at("process_info.shell_pid"), any(10.0))
	want(t, "group", r.at("process_info.foreground_process_group_id"), any(11.0))
	want(t, "argument", r.at("process_info.foreground_processes.0.argv.1"), any("--name"))
}
