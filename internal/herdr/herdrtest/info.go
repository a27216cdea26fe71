package herdrtest

import "strings"

type agentInfo struct {
	TerminalID       string            `json:"terminal_id"`
	Name             string            `json:"name,omitempty"`
	Agent            string            `json:"agent,omitempty"`
	Title            string            `json:"title,omitempty"`
	DisplayAgent     string            `json:"display_agent,omitempty"`
	TerminalTitle    string            `json:"terminal_title,omitempty"`
	Stripped         string            `json:"terminal_title_stripped,omitempty"`
	Status           string            `json:"agent_status"`
	StateLabels      map[string]string `json:"state_labels,omitempty"`
	Tokens           map[string]string `json:"tokens,omitempty"`
	Session          *sessionInfo      `json:"agent_session,omitempty"`
	WorkspaceID      string            `json:"workspace_id"`
	TabID            string            `json:"tab_id"`
	PaneID           string            `json:"pane_id"`
	Focused          bool              `json:"focused"`
	LaunchPending    bool              `json:"launch_pending,omitempty"`
	InteractiveReady bool              `json:"interactive_ready,omitempty"`
	DetectionSkipped bool              `json:"screen_detection_skipped,omitempty"`
	Seq              uint64            `json:"state_change_seq,omitempty"`
	CWD              string            `json:"cwd,omitempty"`
	ForegroundCWD    string            `json:"foreground_cwd,omitempty"`
	Revision         uint64            `json:"revision"`
}

func (s *Server) agentInfo(p *Pane) agentInfo {
	return agentInfo{
		TerminalID: p.terminal, Name: p.name, Agent: p.agent, Title: p.metaTitle, DisplayAgent: p.display,
		TerminalTitle: p.title, Stripped: stripped(p.title), Status: p.status(), StateLabels: p.labels, Tokens: p.tokens,
		Session: p.session, WorkspaceID: p.tab.space.id, TabID: p.tab.id, PaneID: p.id, Focused: s.hasFocus(p),
		LaunchPending: p.pending, InteractiveReady: p.ready, DetectionSkipped: p.hook, Seq: p.seq,
		CWD: p.cwd, ForegroundCWD: p.foregroundCWD(), Revision: p.revision,
	}
}

// foregroundCWD is that of the last foreground process; of an agent without one, where the pane began.
func (p *Pane) foregroundCWD() string {
	if n := len(p.foreground); n > 0 && p.foreground[n-1].CWD != "" {
		return p.foreground[n-1].CWD
	}
	if p.agent == "" {
		return ""
	}
	return p.cwd
}

type paneInfo struct {
	PaneID        string            `json:"pane_id"`
	TerminalID    string            `json:"terminal_id"`
	WorkspaceID   string            `json:"workspace_id"`
	TabID         string            `json:"tab_id"`
	Focused       bool              `json:"focused"`
	CWD           string            `json:"cwd,omitempty"`
	ForegroundCWD string            `json:"foreground_cwd,omitempty"`
	Label         string            `json:"label,omitempty"`
	Agent         string            `json:"agent,omitempty"`
	Title         string            `json:"title,omitempty"`
	DisplayAgent  string            `json:"display_agent,omitempty"`
	TerminalTitle string            `json:"terminal_title,omitempty"`
	Stripped      string            `json:"terminal_title_stripped,omitempty"`
	Status        string            `json:"agent_status"`
	StateLabels   map[string]string `json:"state_labels,omitempty"`
	Tokens        map[string]string `json:"tokens,omitempty"`
	Session       *sessionInfo      `json:"agent_session,omitempty"`
	Scroll        *scrollInfo       `json:"scroll,omitempty"`
	Revision      uint64            `json:"revision"`
}

type scrollInfo struct {
	Offset   int `json:"offset_from_bottom"`
	Max      int `json:"max_offset_from_bottom"`
	Viewport int `json:"viewport_rows"`
}

// rows is the height of the screen that a herdr without a terminal draws.
const rows, columns = 40, 120

func (s *Server) paneInfo(p *Pane) paneInfo {
	return paneInfo{
		PaneID: p.id, TerminalID: p.terminal, WorkspaceID: p.tab.space.id, TabID: p.tab.id, Focused: s.hasFocus(p),
		CWD: p.cwd, ForegroundCWD: p.foregroundCWD(), Label: p.label, Agent: p.agent, Title: p.metaTitle, DisplayAgent: p.display,
		TerminalTitle: p.title, Stripped: stripped(p.title), Status: p.status(), StateLabels: p.labels, Tokens: p.tokens,
		Session: p.session, Scroll: p.scroll(), Revision: p.revision,
	}
}

func (p *Pane) scroll() *scrollInfo {
	above := max(0, strings.Count(p.screen, "\n")-rows)
	return &scrollInfo{Offset: min(p.scrollback, max(above, p.scrollback)), Max: max(above, p.scrollback), Viewport: rows}
}

type workspaceInfo struct {
	WorkspaceID string `json:"workspace_id"`
	Number      int    `json:"number"`
	Label       string `json:"label"`
	Focused     bool   `json:"focused"`
	PaneCount   int    `json:"pane_count"`
	TabCount    int    `json:"tab_count"`
	ActiveTabID string `json:"active_tab_id"`
	Status      string `json:"agent_status"`
}

func (s *Server) workspaceInfo(w *workspace) workspaceInfo {
	panes := s.panesOf(func(p *Pane) bool { return p.tab.space == w })
	info := workspaceInfo{
		WorkspaceID: w.id, Number: w.number, Label: w.label, Focused: s.focus == w.id,
		PaneCount: len(panes), TabCount: len(w.tabs), Status: rollup(panes),
	}
	if w.active != nil {
		info.ActiveTabID = w.active.id
	}
	return info
}

type tabInfo struct {
	TabID       string `json:"tab_id"`
	WorkspaceID string `json:"workspace_id"`
	Number      int    `json:"number"`
	Label       string `json:"label"`
	Focused     bool   `json:"focused"`
	PaneCount   int    `json:"pane_count"`
	Status      string `json:"agent_status"`
}

func (s *Server) tabInfo(t *tab) tabInfo {
	panes := s.panesOf(func(p *Pane) bool { return p.tab == t })
	return tabInfo{
		TabID: t.id, WorkspaceID: t.space.id, Number: t.number, Label: t.label,
		Focused: s.focus == t.space.id && t.space.active == t, PaneCount: len(panes), Status: rollup(panes),
	}
}

// rollup is the one status of several panes. As in herdr, an unseen end hides a sibling that works.
func rollup(panes []*Pane) string {
	for _, status := range []string{Blocked, Done, Working, Idle} {
		for _, p := range panes {
			if p.status() == status {
				return status
			}
		}
	}
	return Unknown
}

type rect struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// layout is a tab's: its panes side by side, which is as much as anybody here wants to know.
func (s *Server) layout(t *tab) map[string]any {
	panes := s.panesOf(func(p *Pane) bool { return p.tab == t })
	places := []map[string]any{}
	width := columns / max(1, len(panes))
	for i, p := range panes {
		places = append(places, map[string]any{
			"pane_id": p.id, "focused": t.focused == p, "rect": rect{X: i * width, Width: width, Height: rows},
		})
	}
	splits := []map[string]any{}
	for i := 1; i < len(panes); i++ {
		splits = append(splits, map[string]any{
			"id": number(i), "direction": "right", "ratio": 0.5, "rect": rect{X: (i - 1) * width, Width: columns - (i-1)*width, Height: rows},
		})
	}
	focused := ""
	if t.focused != nil {
		focused = t.focused.id
	}
	return map[string]any{
		"workspace_id": t.space.id, "tab_id": t.id, "zoomed": false, "area": rect{Width: columns, Height: rows},
		"focused_pane_id": focused, "panes": places, "splits": splits,
	}
}
