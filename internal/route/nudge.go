package route

import (
	"context"
	"errors"
	"fmt"

	"vx/internal/claude"
	"vx/internal/commander"
	"vx/internal/herdr"
	"vx/internal/pace"
	"vx/internal/screen"
	"vx/internal/wake"
)

// nudge types the wakes into the pane of a commander that is idle, whose prompt is seen to be empty. Whether they arrived
// its transcript tells, if anything does: they are not told a second time.
func (r *Router) nudge(ctx context.Context, p *project, e commander.Entry) error {
	c := &herdr.Client{Socket: e.Socket}
	to := wake.Recipient{Client: e.Process, Harness: e.Harness, Session: e.Session, Pane: e.Pane, Typed: true}
	if e.Harness == "claude" {
		if s, ok := claude.SessionOf(e.Process); ok {
			to.Session, to.Transcript = s.SessionID, s.Transcript()
		}
		if _, wait := pace.Failing(e.Process); wait > 0 {
			return errLater
		}
	}
	pane, err := idle(ctx, c, e)
	if err != nil {
		return err
	}
	to.Pane = pane
	d, err := r.claim(ctx, p, to)
	if err != nil {
		return err
	}
	_, err = c.Prompt(context.WithoutCancel(ctx), pane, d.Text)
	switch {
	case err == nil:
		r.Log.Info("wakes were typed into a pane", "pane", pane, "harness", e.Harness, "wakes", len(d.Wakes))
		return errors.Join(d.Emit(), leave(d))
	case refused(err):
		return errors.Join(err, release(ctx, d, "herdr did not take them"))
	case e.Listens():
		// Its session may be reached again, and tell.
		p.doubts = append(p.doubts, &doubt{delivery: d, to: e, since: r.Awake()})
	default:
		err = errors.Join(err, leave(d))
	}
	return fmt.Errorf("they may have been typed, and are not sent again: %w", err)
}

// refused reports whether herdr says that nothing was typed. Any other error leaves that open.
func refused(err error) bool {
	switch herdr.Code(err) {
	case "":
		return errors.Is(err, herdr.ErrUnreachable)
	case herdr.AgentNotFound, herdr.AgentNotReady, herdr.AgentNotIdle, herdr.AgentBlocked, herdr.PaneNotFound,
		"agent_launch_pending", "invalid_request":
		return true
	}
	return false
}

// idle finds a commander's agent by its terminal, and makes sure that it does nothing and that nothing stands in its
// prompt. It returns the pane.
func idle(ctx context.Context, c *herdr.Client, e commander.Entry) (string, error) {
	all, err := c.Agents(ctx)
	if err != nil {
		return "", err
	}
	var a herdr.Agent
	for _, candidate := range all {
		if candidate.TerminalID == e.Terminal {
			a = candidate
		}
	}
	switch {
	case a.TerminalID == "":
		return "", errors.New("its pane is gone, or shows another terminal")
	case a.Kind != e.Harness:
		return "", fmt.Errorf("its pane has another program: %q", wake.Clean(a.Kind))
	case !a.Status.Rests(), a.LaunchPending, !a.InteractiveReady:
		return "", errLater
	}
	if s, ok := claude.SessionOf(e.Process); ok && e.Harness == "claude" && s.Status != "" && s.Status != "idle" && s.Status != "shell" {
		return "", errLater
	}
	shown, err := c.Styled(ctx, a.PaneID)
	switch {
	case herdr.Code(err) == herdr.AgentNotIdle:
		return "", errLater
	case err != nil:
		return "", err
	case !screen.Empty(a.Kind, shown.Text):
		return "", errLater
	}
	return a.PaneID, nil
}
