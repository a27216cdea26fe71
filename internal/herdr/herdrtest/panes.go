package herdrtest

import (
	"slices"
	"strings"
	"unicode/utf8"
)

type paneParams struct {
	PaneID string `json:"pane_id" need:"true"`
}

func (s *Server) paneInfos(workspace string) []paneInfo {
	list := []paneInfo{}
	for _, p := range s.panes {
		if !p.hidden && (workspace == "" || p.tab.space.id == workspace) {
			list = append(list, s.paneInfo(p))
		}
	}
	return list
}

func (s *Server) listPanes(p createParams) (any, *Error) {
	if p.WorkspaceID != "" {
		if _, e := s.workspaceByID(p.WorkspaceID); e != nil {
			return nil, e
		}
	}
	return answer("pane_list", "panes", s.paneInfos(p.WorkspaceID)), nil
}

func (s *Server) getPane(q paneParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	return answer("pane_info", "pane", s.paneInfo(p)), nil
}

type currentParams struct {
	Caller *string `json:"caller_pane_id"`
}

// currentPane is the pane that the caller names itself to be in, else the focused one.
func (s *Server) currentPane(q currentParams) (any, *Error) {
	p := s.focusedPane()
	if q.Caller != nil {
		var e *Error
		if p, e = s.pane(*q.Caller); e != nil {
			return nil, e
		}
	}
	if p == nil {
		return nil, errorf("pane_not_found", "no pane is focused")
	}
	return answer("pane_current", "pane", s.paneInfo(p)), nil
}

type splitParams struct {
	Direction   directionWord     `json:"direction" need:"true"`
	Target      string            `json:"target_pane_id"`
	WorkspaceID string            `json:"workspace_id"`
	CWD         string            `json:"cwd"`
	Env         map[string]string `json:"env"`
	Focus       bool              `json:"focus"`
	Ratio       *float64          `json:"ratio"`
}

func (s *Server) splitPane(q splitParams) (any, *Error) {
	from := s.focusedPane()
	var e *Error
	switch {
	case q.Target != "":
		if from, e = s.pane(q.Target); e != nil {
			return nil, e
		}
	case q.WorkspaceID != "":
		w, e := s.workspaceByID(q.WorkspaceID)
		if e != nil {
			return nil, e
		}
		from = w.active.focused
	}
	if from == nil {
		return nil, errorf("pane_not_found", "no pane is focused")
	}
	p := s.addPane(from.tab, s.cwd(q.CWD, from), q.Env)
	if q.Focus {
		s.focusPane(p)
	}
	return answer("pane_info", "pane", s.paneInfo(p)), nil
}

func (s *Server) focusPaneByID(q paneParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	s.focusPane(p)
	return answer("pane_info", "pane", s.paneInfo(p)), nil
}

type paneLabelParams struct {
	PaneID string `json:"pane_id" need:"true"`
	Label  string `json:"label"`
}

func (s *Server) renamePane(q paneLabelParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	p.label = q.Label
	return answer("pane_info", "pane", s.paneInfo(p)), nil
}

func (c *conn) closePane(q paneParams) (any, *Error) {
	c.s.mu.Lock()
	p, e := c.s.pane(q.PaneID)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	p.Close()
	return fine()
}

type maybePaneParams struct {
	PaneID *string `json:"pane_id"`
}

type processInfo struct {
	PaneID     string    `json:"pane_id"`
	ShellPID   int       `json:"shell_pid,omitempty"`
	Group      int       `json:"foreground_process_group_id,omitempty"`
	Foreground []Process `json:"foreground_processes"`
}

func (s *Server) processInfo(q maybePaneParams) (any, *Error) {
	p := s.focusedPane()
	if q.PaneID != nil {
		var e *Error
		if p, e = s.pane(*q.PaneID); e != nil {
			return nil, e
		}
	}
	if p == nil {
		return nil, errorf("pane_not_found", "no pane is focused")
	}
	info := processInfo{PaneID: p.id, ShellPID: p.shellPID, Foreground: slices.Clone(p.foreground)}
	if len(info.Foreground) == 0 {
		info.Foreground = []Process{}
	} else {
		info.Group = info.Foreground[0].PID
	}
	return answer("pane_process_info", "process_info", info), nil
}

type textParams struct {
	PaneID string `json:"pane_id" need:"true"`
	Text   string `json:"text" need:"true"`
}

type keysParams struct {
	PaneID string   `json:"pane_id" need:"true"`
	Keys   []string `json:"keys" need:"true"`
}

type inputParams struct {
	PaneID string   `json:"pane_id" need:"true"`
	Text   string   `json:"text"`
	Keys   []string `json:"keys"`
}

// sendText types; it never submits.
func (c *conn) sendText(q textParams) (any, *Error) {
	return c.input(inputParams{PaneID: q.PaneID, Text: q.Text})
}

func (c *conn) sendKeys(q keysParams) (any, *Error) {
	return c.input(inputParams{PaneID: q.PaneID, Keys: q.Keys})
}

func (c *conn) sendInput(q inputParams) (any, *Error) { return c.input(q) }

func (c *conn) input(q inputParams) (any, *Error) {
	c.s.mu.Lock()
	p, e := c.s.pane(q.PaneID)
	c.s.mu.Unlock()
	if e != nil {
		return nil, e
	}
	if e := p.press(q.Text, q.Keys); e != nil {
		return nil, e
	}
	return fine()
}

// press types a text and presses keys. An Enter submits what was typed to the agent; to a shell it is a command.
func (p *Pane) press(text string, keys []string) *Error {
	for _, key := range keys {
		if !validKey(key) {
			return errorf("invalid_key", "invalid key %s", key)
		}
	}
	unlock := p.lock()
	if text != "" {
		p.typed = append(p.typed, text)
		p.draft += text
	}
	p.keys = append(p.keys, keys...)
	draft, backing, agent := p.draft, p.backing, p.agent != ""
	enter := slices.ContainsFunc(keys, func(key string) bool { return strings.EqualFold(key, "enter") })
	if enter {
		p.draft = ""
	}
	p.s.notify()
	unlock()
	if e := backing.typeIn(text, keys); e != nil {
		return e
	}
	if enter && agent && draft != "" && backing == nil {
		return p.submit(draft)
	}
	return nil
}

// typeIn passes text and keys on to what really stands behind a pane, if anything does.
func (b *Backing) typeIn(text string, keys []string) *Error {
	if b == nil {
		return nil
	}
	if b.Type != nil && text != "" {
		if err := b.Type(text); err != nil {
			return errorf("pane_send_failed", "%v", err)
		}
	}
	if b.Press != nil && len(keys) > 0 {
		if err := b.Press(keys); err != nil {
			return errorf("pane_send_failed", "%v", err)
		}
	}
	return nil
}

// validKey knows the keys that have a name, single characters, and both with modifiers.
func validKey(key string) bool {
	for {
		mod, rest, found := strings.Cut(strings.ToLower(key), "+")
		if !found || rest == "" || !slices.Contains([]string{"ctrl", "alt", "shift", "super", "meta", "cmd"}, mod) {
			break
		}
		key = rest
	}
	if utf8.RuneCountInString(key) == 1 {
		return true
	}
	named := strings.Fields(`enter return tab backtab escape esc space backspace delete insert up down left right home end
		pageup pagedown f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12`)
	return slices.Contains(named, strings.ToLower(key))
}
