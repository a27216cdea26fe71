package herdr

import (
	"context"
	"fmt"
)

// Pane is a pane, with or without an agent in it.
type Pane struct {
	PaneID        string `json:"pane_id"`
	TerminalID    string `json:"terminal_id"`
	WorkspaceID   string `json:"workspace_id"`
	TabID         string `json:"tab_id"`
	Kind          string `json:"agent"` // "" for a shell
	Status        Status `json:"agent_status"`
	Title         string `json:"terminal_title"`
	CWD           string `json:"cwd"`
	ForegroundCWD string `json:"foreground_cwd"`
}

// Source is the text of a pane that is read. There is no source here for what has scrolled away: herdr scrolls an
// agent's screen before the user's eyes to get it.
type Source string

const (
	Visible   Source = "visible"   // the screen as the user has it, who may have scrolled back
	Detection Source = "detection" // the end of the buffer, which herdr's own detection reads
)

// Reading is the text of a pane.
type Reading struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"` // rows above were left out; never set before herdr 0.8
}

// Processes is what runs in a pane.
type Processes struct {
	Shell      int       `json:"shell_pid"`
	Group      int       `json:"foreground_process_group_id"`
	Foreground []Process `json:"foreground_processes"`
}

// Process is one of the processes in the foreground. A pid alone proves nothing: compare its start with your own.
type Process struct {
	PID  int      `json:"pid"`
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	CWD  string   `json:"cwd"`
}

type paneParams struct {
	Pane string `json:"pane_id"`
}

// Pane is the pane with the id, which may be an old one of a pane that was moved.
func (c *Client) Pane(ctx context.Context, id string) (Pane, error) {
	return c.pane(ctx, false, "pane.get", paneParams{id}, "pane_info")
}

// Current is the pane that a process runs in whose HERDR_PANE_ID is pane; with "", the pane that has the focus.
func (c *Client) Current(ctx context.Context, pane string) (Pane, error) {
	return c.pane(ctx, false, "pane.current", struct {
		Caller string `json:"caller_pane_id,omitempty"`
	}{pane}, "pane_current")
}

// Read reads a pane without touching it: its last lines, or all there is of the source where lines is 0.
func (c *Client) Read(ctx context.Context, pane string, source Source, lines int) (Reading, error) {
	if source != Visible && source != Detection {
		return Reading{}, fmt.Errorf("herdr pane.read: source %q would scroll the pane", source)
	}
	var result struct{ Read Reading }
	err := c.ask(ctx, c.patience(), "pane.read", struct {
		Pane   string `json:"pane_id"`
		Source Source `json:"source"`
		Lines  int    `json:"lines,omitempty"`
	}{pane, source, max(lines, 0)}, "pane_read", &result)
	return result.Read, err
}

// Styled is the screen of a pane as the user has it, with its colours as escape sequences. The text of [Detection] has none.
func (c *Client) Styled(ctx context.Context, pane string) (Reading, error) {
	var result struct{ Read Reading }
	err := c.ask(ctx, c.patience(), "pane.read", struct {
		Pane   string `json:"pane_id"`
		Source Source `json:"source"`
		Format string `json:"format"`
		Strip  bool   `json:"strip_ansi"`
	}{pane, Visible, "ansi", false}, "pane_read", &result)
	return result.Read, err
}

// Processes are the processes of a pane.
func (c *Client) Processes(ctx context.Context, pane string) (Processes, error) {
	var result struct {
		Info Processes `json:"process_info"`
	}
	err := c.ask(ctx, c.patience(), "pane.process_info", paneParams{pane}, "pane_process_info", &result)
	return result.Info, err
}

// Split is a pane to be made by splitting another, to its right or, with Down, below it.
type Split struct {
	Pane  string // which is split; the focused one where it is ""
	Down  bool
	CWD   string
	Env   map[string]string
	Focus bool
}

// Split splits a pane, and is the new one.
func (c *Client) Split(ctx context.Context, s Split) (Pane, error) {
	direction := "right"
	if s.Down {
		direction = "down"
	}
	return c.pane(ctx, true, "pane.split", struct {
		Direction string            `json:"direction"`
		Target    string            `json:"target_pane_id,omitempty"`
		CWD       string            `json:"cwd,omitempty"`
		Env       map[string]string `json:"env,omitempty"`
		Focus     bool              `json:"focus"`
	}{direction, s.Pane, s.CWD, s.Env, s.Focus}, "pane_info")
}

// Tab is a tab to be made, or with [Client.CreateWorkspace] a workspace.
type Tab struct {
	Workspace string // that it is made in; the active one where it is ""
	Label     string
	CWD       string
	Env       map[string]string
	Focus     bool
}

type tabParams struct {
	Workspace string            `json:"workspace_id,omitempty"`
	Label     string            `json:"label,omitempty"`
	CWD       string            `json:"cwd,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Focus     bool              `json:"focus"`
}

// CreateTab makes a tab, and is the pane in it.
func (c *Client) CreateTab(ctx context.Context, t Tab) (Pane, error) {
	return c.pane(ctx, true, "tab.create", tabParams(t), "tab_created")
}

// CreateWorkspace makes a workspace with a tab, and is the pane in that.
func (c *Client) CreateWorkspace(ctx context.Context, t Tab) (Pane, error) {
	t.Workspace = ""
	return c.pane(ctx, true, "workspace.create", tabParams(t), "workspace_created")
}

// ClosePane closes a pane and ends what runs in it.
func (c *Client) ClosePane(ctx context.Context, id string) error {
	return c.ask(ctx, c.patience()+acting, "pane.close", paneParams{id}, "ok", nil)
}

// SendKeys presses keys in a pane, one after the other.
func (c *Client) SendKeys(ctx context.Context, pane string, keys ...string) error {
	return c.ask(ctx, c.patience()+acting, "pane.send_keys", struct {
		Pane string   `json:"pane_id"`
		Keys []string `json:"keys"`
	}{pane, append([]string{}, keys...)}, "ok", nil)
}

// pane asks what is answered with a pane.
func (c *Client) pane(ctx context.Context, acts bool, method string, params any, want string) (Pane, error) {
	within := c.patience()
	if acts {
		within += acting
	}
	var result struct {
		Pane Pane `json:"pane"`
		Root Pane `json:"root_pane"`
	}
	if err := c.ask(ctx, within, method, params, want, &result); err != nil {
		return Pane{}, err
	}
	p := result.Pane
	if p.PaneID == "" {
		p = result.Root
	}
	if p.PaneID == "" {
		return Pane{}, fmt.Errorf("herdr %s: %w: a pane without an id", method, ErrGarbage)
	}
	return p, nil
}
