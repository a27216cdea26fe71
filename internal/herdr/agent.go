package herdr

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Status is herdr's word on an agent. Values that are not listed here may come: treat them as [Unknown].
type Status string

// Idle and Done are the same state, seen and unseen by the user.
const (
	Idle    Status = "idle"
	Done    Status = "done"
	Working Status = "working"
	Blocked Status = "blocked"
	Unknown Status = "unknown"
)

// Rests reports that the agent does nothing, as far as herdr can see.
func (s Status) Rests() bool { return s == Idle || s == Done }

// Agent is an agent in a pane. Only what vx uses is decoded; what herdr left out is zero. The strings of one agent share
// their memory.
type Agent struct {
	TerminalID    string // of one process in the pane: new after a restart
	Name          string
	Kind          string // claude, codex, …; "" while it is launched, or was restored without a process
	Status        Status
	WorkspaceID   string
	TabID         string
	PaneID        string
	Title         string // as the agent wrote it, with its spinner
	CWD           string
	ForegroundCWD string

	// Seq moves with every change of state, from a counter of the whole server. It begins anew when herdr does.
	Seq    uint64
	HasSeq bool

	LaunchPending          bool
	InteractiveReady       bool
	ScreenDetectionSkipped bool // the agent reports its status itself

	Session Session
}

// Session is the agent's own session as an integration last reported it: a handle to resume it, no proof of life.
type Session struct {
	Source string
	Agent  string
	Kind   string // id or path
	Value  string
}

// Explanation is why an agent has its status. Its shape is not in herdr's schema.
type Explanation struct {
	State          Status `json:"state"`
	FallbackReason string `json:"fallback_reason"` // set: no rule matched the screen, and idle is only assumed
	VisibleIdle    bool   `json:"visible_idle"`

	ScreenDetectionSkipped bool `json:"screen_detection_skipped"`
}

// Agents lists the agents of all workspaces. The list is only to be read: later ones may share its memory.
func (c *Client) Agents(ctx context.Context) ([]Agent, error) {
	var all []Agent
	err := c.exchange(ctx, c.patience(), "agent.list", nothing{}, func(line []byte) (err error) {
		all, err = c.last.decode(line)
		return err
	})
	return all, err
}

// Agent is the agent that a live name or the id of a pane leads to.
func (c *Client) Agent(ctx context.Context, target string) (Agent, error) {
	return c.agent(ctx, c.patience(), "agent.get", targeted{target}, "agent_info")
}

type targeted struct {
	Target string `json:"target"`
}

// Explain says what a status rests on.
func (c *Client) Explain(ctx context.Context, target string) (Explanation, error) {
	var result struct{ Explain Explanation }
	err := c.ask(ctx, c.patience(), "agent.explain", targeted{target}, "agent_explain", &result)
	return result.Explain, err
}

// Start is an agent to be started in a pane that shows its shell's prompt.
type Start struct {
	Name    string // [a-z][a-z0-9_-]{0,31}
	Kind    string
	Pane    string
	Args    []string
	Timeout time.Duration // of the start: over 3 s, at most 5 min; herdr's own where it is 0
}

// Start starts an agent. herdr answers while the launch is still pending.
func (c *Client) Start(ctx context.Context, s Start) (Agent, error) {
	return c.agent(ctx, c.patience()+acting, "agent.start", struct {
		Name    string   `json:"name"`
		Kind    string   `json:"kind"`
		Pane    string   `json:"pane_id"`
		Args    []string `json:"args,omitempty"`
		Timeout int64    `json:"timeout_ms,omitempty"`
	}{s.Name, s.Kind, s.Pane, s.Args, s.Timeout.Milliseconds()}, "agent_started")
}

// Prompt types the text for an agent and submits it. After [PromptStalled], and after every error but
// [ErrUnreachable] and the other refusals, it may have arrived: it is not to be sent again blindly.
func (c *Client) Prompt(ctx context.Context, target, text string) (Agent, error) {
	return c.agent(ctx, c.patience()+acting, "agent.prompt", struct {
		Target string `json:"target"`
		Text   string `json:"text"`
	}{target, text}, "agent_prompted")
}

// agent asks what is answered with an agent.
func (c *Client) agent(ctx context.Context, within time.Duration, method string, params any, want string) (Agent, error) {
	var result struct{ Agent json.RawMessage }
	if err := c.ask(ctx, within, method, params, want, &result); err != nil {
		return Agent{}, err
	}
	s := scanner{in: result.Agent}
	_, a := s.agent()
	if a.PaneID == "" || !s.whole() {
		return Agent{}, fmt.Errorf("herdr %s: %w: an agent without its pane", method, ErrGarbage)
	}
	return a, nil
}
