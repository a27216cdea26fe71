package herdrtest

import "slices"

type workspaceParams struct {
	WorkspaceID string `json:"workspace_id" need:"true"`
}

type tabParams struct {
	TabID string `json:"tab_id" need:"true"`
}

type createParams struct {
	WorkspaceID string            `json:"workspace_id"`
	CWD         string            `json:"cwd"`
	Label       string            `json:"label"`
	Env         map[string]string `json:"env"`
	Focus       bool              `json:"focus"`
}

type labelParams struct {
	WorkspaceID string `json:"workspace_id"`
	TabID       string `json:"tab_id"`
	Label       string `json:"label" need:"true"`
}

func (s *Server) listWorkspaces(none) (any, *Error) {
	list := []workspaceInfo{}
	for _, w := range s.spaces {
		list = append(list, s.workspaceInfo(w))
	}
	return answer("workspace_list", "workspaces", list), nil
}

func (s *Server) getWorkspace(p workspaceParams) (any, *Error) {
	w, e := s.workspaceByID(p.WorkspaceID)
	if e != nil {
		return nil, e
	}
	return answer("workspace_info", "workspace", s.workspaceInfo(w)), nil
}

func (s *Server) createWorkspace(p createParams) (any, *Error) {
	if p.Label == "" {
		p.Label = "workspace"
	}
	root := s.addWorkspace(p.Label, s.cwd(p.CWD, s.focusedPane()), p.Env)
	if p.Focus {
		s.focusPane(root)
	}
	return answer("workspace_created", "workspace", s.workspaceInfo(root.tab.space), "tab", s.tabInfo(root.tab),
		"root_pane", s.paneInfo(root)), nil
}

// cwd is the directory that was asked for, else that of the pane that a new one comes from.
func (s *Server) cwd(asked string, from *Pane) string {
	if asked == "" && from != nil {
		return from.cwd
	}
	return asked
}

func (s *Server) focusWorkspace(p workspaceParams) (any, *Error) {
	w, e := s.workspaceByID(p.WorkspaceID)
	if e != nil {
		return nil, e
	}
	s.focusPane(w.active.focused)
	s.emit("workspace_focused", map[string]any{"workspace_id": w.id})
	return answer("workspace_info", "workspace", s.workspaceInfo(w)), nil
}

func (s *Server) renameWorkspace(p labelParams) (any, *Error) {
	w, e := s.workspaceByID(p.WorkspaceID)
	if e != nil {
		return nil, e
	}
	w.label = p.Label
	s.emit("workspace_renamed", map[string]any{"workspace_id": w.id, "label": w.label})
	return answer("workspace_info", "workspace", s.workspaceInfo(w)), nil
}

func (c *conn) closeWorkspace(p workspaceParams) (any, *Error) {
	c.s.mu.Lock()
	w, e := c.s.workspaceByID(p.WorkspaceID)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	c.s.closePanes(func(p *Pane) bool { return p.tab.space == w })
	return fine()
}

func (s *Server) listTabs(p createParams) (any, *Error) {
	list := []tabInfo{}
	for _, w := range s.spaces {
		for _, t := range w.tabs {
			if p.WorkspaceID == "" || p.WorkspaceID == w.id {
				list = append(list, s.tabInfo(t))
			}
		}
	}
	if p.WorkspaceID != "" && len(list) == 0 {
		return nil, errorf("workspace_not_found", "workspace %s not found", p.WorkspaceID)
	}
	return answer("tab_list", "tabs", list), nil
}

func (s *Server) getTab(p tabParams) (any, *Error) {
	t, e := s.tabByID(p.TabID)
	if e != nil {
		return nil, e
	}
	return answer("tab_info", "tab", s.tabInfo(t)), nil
}

func (s *Server) createTab(p createParams) (any, *Error) {
	if p.WorkspaceID == "" {
		p.WorkspaceID = s.focus
	}
	w, e := s.workspaceByID(p.WorkspaceID)
	if e != nil {
		return nil, e
	}
	root := s.addTab(w, p.Label, s.cwd(p.CWD, w.active.focused), p.Env)
	if p.Focus {
		s.focusPane(root)
	}
	return answer("tab_created", "tab", s.tabInfo(root.tab), "root_pane", s.paneInfo(root)), nil
}

func (s *Server) focusTab(p tabParams) (any, *Error) {
	t, e := s.tabByID(p.TabID)
	if e != nil {
		return nil, e
	}
	s.focusPane(t.focused)
	s.emit("tab_focused", map[string]any{"tab_id": t.id, "workspace_id": t.space.id})
	return answer("tab_info", "tab", s.tabInfo(t)), nil
}

func (s *Server) renameTab(p labelParams) (any, *Error) {
	t, e := s.tabByID(p.TabID)
	if e != nil {
		return nil, e
	}
	t.label = p.Label
	s.emit("tab_renamed", map[string]any{"tab_id": t.id, "workspace_id": t.space.id, "label": t.label})
	return answer("tab_info", "tab", s.tabInfo(t)), nil
}

func (c *conn) closeTab(p tabParams) (any, *Error) {
	c.s.mu.Lock()
	t, e := c.s.tabByID(p.TabID)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	c.s.closePanes(func(p *Pane) bool { return p.tab == t })
	return fine()
}

type moveParams struct {
	PaneID      string `json:"pane_id" need:"true"`
	Focus       bool   `json:"focus"`
	Destination struct {
		Type        string `json:"type"`
		TabID       string `json:"tab_id"`
		WorkspaceID string `json:"workspace_id"`
		Label       string `json:"label"`
	} `json:"destination" need:"true"`
}

// movePane gives a pane that goes to another workspace a new id. Its old one still names it to pane methods, to agent methods
// it does not.
func (s *Server) movePane(m moveParams) (any, *Error) {
	p, e := s.pane(m.PaneID)
	if e != nil {
		return nil, e
	}
	from := p.tab
	moved := map[string]any{"previous_pane_id": p.id, "previous_tab_id": from.id, "previous_workspace_id": from.space.id}
	to, e := s.destination(p, m, moved)
	if e != nil {
		return nil, e
	}
	if to != from {
		closedTab, closedSpace := s.leaveTab(p)
		for key, id := range map[string]string{"closed_tab_id": closedTab, "closed_workspace_id": closedSpace} {
			if id != "" {
				moved[key] = id
			}
		}
		s.enterTab(p, to)
	}
	if m.Focus {
		s.focusPane(p)
	}
	moved["pane"] = s.paneInfo(p)
	if to != from {
		s.emit("pane_moved", moved)
	}
	s.notify()
	result := map[string]any{"changed": to != from, "target_layout": s.layout(to), "focused_pane_id": s.focusedPane().id}
	for k, v := range moved {
		result[k] = v
	}
	return answer("pane_move", "move_result", result), nil
}

// destination is the tab that a pane is to go to, which may have to be made.
func (s *Server) destination(p *Pane, m moveParams, moved map[string]any) (*tab, *Error) {
	w := p.tab.space
	switch m.Destination.Type {
	case "tab":
		return s.tabByID(m.Destination.TabID)
	case "new_workspace":
		s.counts.workspace++
		w = &workspace{id: "w" + number(s.counts.workspace), number: s.counts.workspace, label: m.Destination.Label}
		s.spaces = append(s.spaces, w)
	case "new_tab":
		if m.Destination.WorkspaceID != "" {
			var e *Error
			if w, e = s.workspaceByID(m.Destination.WorkspaceID); e != nil {
				return nil, e
			}
		}
	default:
		return nil, errorf("invalid_params", "unknown destination %q", m.Destination.Type)
	}
	w.lastTab++
	t := &tab{id: w.id + ":t" + number(w.lastTab), number: w.lastTab, label: m.Destination.Label, space: w}
	w.tabs = append(w.tabs, t)
	if w.active == nil {
		w.active = t
		moved["created_workspace"] = s.workspaceInfo(w)
	}
	moved["created_tab"] = s.tabInfo(t)
	return t, nil
}

func (s *Server) enterTab(p *Pane, t *tab) {
	if t.space != p.tab.space {
		t.space.lastPane++
		p.aliases = append(p.aliases, p.id)
		p.id = t.space.id + ":p" + number(t.space.lastPane)
	}
	p.tab = t
	if t.focused == nil {
		t.focused = p
	}
	// Lists go by workspace and tab, as a user sees them.
	slices.SortStableFunc(s.panes, func(a, b *Pane) int {
		if a.tab.space != b.tab.space {
			return a.tab.space.number - b.tab.space.number
		}
		return a.tab.number - b.tab.number
	})
}
