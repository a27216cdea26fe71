//go:build !windows

package main

import (
	"context"

	"vx/internal/dispatch"
	"vx/internal/state"
)

type promptCommand struct {
	ID   string `arg:"" name:"id" help:"The task; its id may be shortened."`
	Text string `arg:"" name:"text" help:"What is to be done now, in quotes; - reads it from stdin."`
	JSON bool   `name:"json" help:"Print JSON."`
	place
}

func (promptCommand) Help() string {
	return "For a task that is done, shipped or unconfirmed. It runs again, and its next end wakes you. A blocked one is " +
		"answered with vx decide, an interrupted one given to another agent with vx redispatch."
}

func (c *promptCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	text, err := spoken(std, c.Text)
	if err != nil {
		return err
	}
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) { return d.Prompt(ctx, c.ID, text) })
}
