//go:build !windows

package main

import (
	"context"

	"vx/internal/dispatch"
	"vx/internal/state"
)

type strikeCommand struct {
	ID    string `arg:"" name:"id" help:"The task; its id may be shortened."`
	Force bool   `name:"force" help:"Also when work is lost, or its soldier is at work."`
	JSON  bool   `name:"json" help:"Print JSON."`
	place
}

func (strikeCommand) Help() string {
	return "The camp, its branch and the pane that vx made go; the record stays. What is uncommitted or unmerged is not " +
		"dropped without --force. A session that is only watched is left alone."
}

func (c *strikeCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) { return d.Strike(ctx, c.ID, c.Force) })
}
