//go:build !windows

package main

import (
	"context"

	"vx/internal/dispatch"
	"vx/internal/state"
)

type landCommand struct {
	ID   string `arg:"" name:"id" help:"The task; its id may be shortened."`
	JSON bool   `name:"json" help:"Print JSON."`
	place
}

func (landCommand) Help() string {
	return "Its branch is merged into the one that it began at. On a conflict, or where that would touch what is not " +
		"committed, nothing is changed."
}

func (c *landCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) { return d.Land(ctx, c.ID) })
}
