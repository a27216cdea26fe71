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

// Agent is an agent in a pane. Only what vx uses is decoded; what herdr left out is zero.
type Agent struct {
	TerminalID    string `json:"terminal_id"` // of one process in the pane: new after a restart
	Name          string `json:"name"`
	Kind          string `json:"agent"` // claude, codex, …; "" while it is launched, or was restored without a process
	Status        Status `json:"agent_status"`
	WorkspaceID   string `json:"workspace_id"`
	TabID         string `json:"tab_id"`
	PaneID        string `json:"pane_id"`
	Title         string `json:"terminal_title"` // as the agent wrote it, with its spinner
	CWD           string `json:"cwd"`
	ForegroundCWD string `json:"foreground_cwd"`

	// Seq moves with every change of state, from a counter of the whole server. It begins anew when herdr does.
	Seq    uint64 `json:"state_change_seq"`
	HasSeq bool   `json:"-"`

	LaunchPending          bool `json:"launch_pending"`
	InteractiveReady       bool `json:"interactive_ready"`
	ScreenDetectionSkipped bool `json:"screen_detection_skipped"` // the agent reports its status itself

	Session Session `json:"agent_session"`
}

// Session is the agent's own session as an integration last reported it: a handle to resume it, no proof of life.
type Session struct {
	Source string `json:"source"`
	Agent  string `json:"agent"`
	Kind   string `json:"kind"` // id or path
	Value  string `json:"value"`
}

// Explanation is why an agent has its status. Its shape is not in herdr's schema.
type Explanation struct {
	State          Status `json:"state"`
	FallbackReason string `json:"fallback_reason"` // set: no rule matched the screen, and idle is only assumed
	VisibleIdle    bool   `json:"visible_idle"`

	ScreenDetectionSkipped bool `json:"screen_detection_skipped"`
}

// Agents lists the agents of all workspaces.
func (c *Client) Agents(ctx context.Context) ([]Agent, error) {
	var all []Agent
	err := c.exchange(ctx, c.patience(), "agent.list", nothing{}, func(line []byte) (err error) {
		all, err = decodeAgents(line)
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
	a, err := decodeAgent(result.Agent)
	if err != nil {
		return Agent{}, fmt.Errorf("herdr %s: %w", method, err)
	}
	return a, nil
}

func decodeAgents(line []byte) ([]Agent, error) {
	raw, err := open(line, "agent.list", "agent_list")
	if err != nil {
		return nil, err
	}
	var result struct{ Agents []json.RawMessage }
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	all := make([]Agent, 0, len(result.Agents))
	for _, raw := range result.Agents {
		a, err := decodeAgent(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func decodeAgent(raw json.RawMessage) (Agent, error) {
	var a struct {
		Agent
		Seq *uint64 `json:"state_change_seq"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return Agent{}, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	if a.Seq != nil {
		a.Agent.Seq, a.HasSeq = *a.Seq, true
	}
	if a.PaneID == "" {
		return Agent{}, fmt.Errorf("%w: an agent without its pane", ErrGarbage)
	}
	return a.Agent, nil
}
