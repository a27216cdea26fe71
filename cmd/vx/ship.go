//go:build !windows

package main

import (
	"context"

	"vx/internal/dispatch"
	"vx/internal/state"
)

type shipCommand struct {
	ID   string `arg:"" name:"id" help:"The task; its id may be shortened."`
	JSON bool   `name:"json" help:"Print JSON."`
	place
}

func (shipCommand) Help() string {
	return "Its branch is pushed to the remote of the one that it began at, and a pull request opened with gh, in the " +
		"words of the commits. Where gh is not installed it is pushed only."
}

func (c *shipCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) { return d.Ship(ctx, c.ID) })
}
