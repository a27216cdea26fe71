//go:build !windows

package main

import (
	"context"

	"vx/internal/dispatch"
	"vx/internal/state"
)

type redispatchCommand struct {
	ID   string   `arg:"" name:"id" help:"The task; its id may be shortened."`
	Args []string `arg:"" name:"args" optional:"" passthrough:"" help:"Behind --: what is passed on to the agent's own program. Default: as to the one before; -- alone is nothing."`
	JSON bool     `name:"json" help:"Print JSON."`
	place
}

func (redispatchCommand) Help() string {
	return "For a task that is interrupted: another agent goes on, in a new pane and the same camp."
}

// Validate is called by kong after parsing.
func (c *redispatchCommand) Validate() (err error) {
	c.Args, err = behindDashes(c.Args)
	return err
}

func (c *redispatchCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) { return d.Redispatch(ctx, c.ID, c.Args) })
}
