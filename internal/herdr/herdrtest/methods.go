package herdrtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// method decodes the parameters of a request; bound then carries it out.
type (
	method func(params json.RawMessage) (bound, error)
	bound  func(*conn) (any, *Error)
)

// quick is a method that is carried out at once, one after another, as herdr's app loop does.
func quick[P any](do func(*Server, P) (any, *Error)) method {
	return slow(func(c *conn, params P) (any, *Error) {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		return do(c.s, params)
	})
}

// slow is a method that waits, or that calls back into the test; it takes the lock itself.
func slow[P any](do func(*conn, P) (any, *Error)) method {
	return func(raw json.RawMessage) (bound, error) {
		var params P
		if err := decode(raw, &params); err != nil {
			return nil, err
		}
		return func(c *conn) (any, *Error) { return do(c, params) }, nil
	}
}

// decode reads parameters into a struct whose required fields have the tag `need:"true"`.
func decode(raw json.RawMessage, into any) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return err
	}
	if given == nil {
		return fmt.Errorf("invalid type: null, expected params")
	}
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, has := given[name]; f.Tag.Get("need") != "" && !has {
			return fmt.Errorf("missing field `%s`", name)
		}
	}
	return json.Unmarshal(raw, into)
}

// word is a string of a closed set; the decoder refuses others.
func word(b []byte, into *string, of ...string) error {
	if !slices.Contains(of, string(b)) {
		return fmt.Errorf("unknown variant `%s`, expected one of `%s`", b, strings.Join(of, "`, `"))
	}
	*into = string(b)
	return nil
}

type (
	statusWord    string
	stateWord     string
	sourceWord    string
	formatWord    string
	directionWord string
)

func (w *statusWord) UnmarshalText(b []byte) error {
	return word(b, (*string)(w), Idle, Working, Blocked, Done, Unknown)
}

func (w *stateWord) UnmarshalText(b []byte) error {
	return word(b, (*string)(w), Idle, Working, Blocked, Unknown)
}

func (w *sourceWord) UnmarshalText(b []byte) error {
	return word(b, (*string)(w), "visible", "recent", "recent_unwrapped", "detection")
}

func (w *formatWord) UnmarshalText(b []byte) error {
	return word(b, (*string)(w), "text", "ansi")
}

func (w *directionWord) UnmarshalText(b []byte) error {
	return word(b, (*string)(w), "right", "down")
}

type none struct{}

type ok struct {
	Type string `json:"type"`
}

// fine is the answer of what has nothing to tell.
func fine() (any, *Error) { return ok{"ok"}, nil }

// answer is a result of a type with one payload, or several.
func answer(kind string, payload ...any) map[string]any {
	m := map[string]any{"type": kind}
	for i := 0; i+1 < len(payload); i += 2 {
		m[payload[i].(string)] = payload[i+1]
	}
	return m
}

// methods are all that herdr has. What the fake does not model answers not_implemented; what herdr does not have, and what it
// had once, is not here.
func methods() map[string]method {
	m := map[string]method{
		"ping":             quick((*Server).ping),
		"session.snapshot": quick((*Server).snapshot),

		"workspace.list":   quick((*Server).listWorkspaces),
		"workspace.get":    quick((*Server).getWorkspace),
		"workspace.create": quick((*Server).createWorkspace),
		"workspace.focus":  quick((*Server).focusWorkspace),
		"workspace.rename": quick((*Server).renameWorkspace),
		"workspace.close":  slow((*conn).closeWorkspace),

		"tab.list":   quick((*Server).listTabs),
		"tab.get":    quick((*Server).getTab),
		"tab.create": quick((*Server).createTab),
		"tab.focus":  quick((*Server).focusTab),
		"tab.rename": quick((*Server).renameTab),
		"tab.close":  slow((*conn).closeTab),

		"pane.list":                  quick((*Server).listPanes),
		"pane.get":                   quick((*Server).getPane),
		"pane.current":               quick((*Server).currentPane),
		"pane.split":                 quick((*Server).splitPane),
		"pane.focus":                 quick((*Server).focusPaneByID),
		"pane.rename":                quick((*Server).renamePane),
		"pane.move":                  quick((*Server).movePane),
		"pane.process_info":          quick((*Server).processInfo),
		"pane.close":                 slow((*conn).closePane),
		"pane.read":                  slow((*conn).readPane),
		"pane.wait_for_output":       slow((*conn).waitForOutput),
		"pane.send_text":             slow((*conn).sendText),
		"pane.send_keys":             slow((*conn).sendKeys),
		"pane.send_input":            slow((*conn).sendInput),
		"pane.report_agent":          quick((*Server).reportAgent),
		"pane.report_agent_session":  quick((*Server).reportSession),
		"pane.report_metadata":       quick((*Server).reportMetadata),
		"pane.clear_agent_authority": quick((*Server).clearAuthority),
		"pane.release_agent":         quick((*Server).releaseReported),

		"agent.list":      quick((*Server).listAgents),
		"agent.get":       quick((*Server).getAgent),
		"agent.explain":   quick((*Server).explainAgent),
		"agent.rename":    quick((*Server).renameAgent),
		"agent.focus":     quick((*Server).focusAgent),
		"agent.start":     quick((*Server).startAgent),
		"agent.read":      slow((*conn).readAgent),
		"agent.send_keys": slow((*conn).sendAgentKeys),
		"agent.prompt":    slow((*conn).promptAgent),
		"agent.wait":      slow((*conn).waitAgent),

		"events.subscribe": slow((*conn).subscribe),
		"events.wait":      slow((*conn).waitEvent),
	}
	for name := range strings.FieldsSeq(`server.stop server.live_handoff server.reload_config server.agent_manifests
		server.reload_agent_manifests notification.show client.window_title.set client.window_title.clear workspace.move
		workspace.move_block workspace.report_metadata worktree.list worktree.create worktree.open worktree.remove tab.move
		agent.view.set agent.view.clear pane.swap pane.zoom pane.layout layout.export layout.apply layout.set_split_ratio
		pane.neighbor pane.edges pane.focus_direction pane.resize pane.input.set pane.graphics.set pane.graphics.clear
		pane.graphics.info popup.close integration.install integration.uninstall plugin.link plugin.list plugin.unlink
		plugin.enable plugin.disable plugin.action.list plugin.action.invoke plugin.log.list plugin.pane.open plugin.pane.focus
		plugin.pane.close`) {
		m[name] = quick(func(*Server, none) (any, *Error) {
			return nil, errorf("not_implemented", "the fake herdr does not model %s", name)
		})
	}
	return m
}

// Protocol is what ping tells.
func (s *Server) Protocol() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.profile
}

func (s *Server) ping(none) (any, *Error) {
	return answer("pong", "version", s.version, "protocol", s.profile,
		"capabilities", map[string]bool{"live_handoff": true, "detached_server_daemon": true}), nil
}

func (s *Server) snapshot(none) (any, *Error) {
	snap := map[string]any{"version": s.version, "protocol": s.profile}
	spaces, tabs, layouts := []workspaceInfo{}, []tabInfo{}, []map[string]any{}
	for _, w := range s.spaces {
		spaces = append(spaces, s.workspaceInfo(w))
		for _, t := range w.tabs {
			tabs = append(tabs, s.tabInfo(t))
			layouts = append(layouts, s.layout(t))
		}
	}
	snap["workspaces"], snap["tabs"], snap["layouts"] = spaces, tabs, layouts
	snap["panes"], snap["agents"] = s.paneInfos(""), s.agentInfos()
	if p := s.focusedPane(); p != nil {
		snap["focused_pane_id"], snap["focused_tab_id"], snap["focused_workspace_id"] = p.id, p.tab.id, p.tab.space.id
	}
	return answer("session_snapshot", "snapshot", snap), nil
}

// focusedPane is where keys go to; nil while there is no workspace.
func (s *Server) focusedPane() *Pane {
	w, e := s.workspaceByID(s.focus)
	if e != nil || w.active == nil {
		return nil
	}
	return w.active.focused
}
