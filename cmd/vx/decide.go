//go:build !windows

package main

import (
	"context"
	"errors"

	"vx/internal/dispatch"
	"vx/internal/state"
)

type decideCommand struct {
	ID      string `arg:"" name:"id" help:"The task; its id may be shortened."`
	Answer  string `arg:"" name:"answer" optional:"" help:"The decision, in quotes; - reads it from stdin."`
	Dismiss bool   `name:"dismiss" help:"It is no question: judge what was delivered, and tell the soldier nothing."`
	JSON    bool   `name:"json" help:"Print JSON."`
	place
}

func (decideCommand) Help() string {
	return "For a task that is blocked: its soldier has ended its turn with a question, which vx task show shows."
}

// Validate is called by kong after parsing.
func (c *decideCommand) Validate() error {
	if (c.Answer == "") != c.Dismiss {
		return errors.New("want either an answer or --dismiss")
	}
	return nil
}

func (c *decideCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	answer, err := spoken(std, c.Answer)
	if err != nil {
		return err
	}
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) {
		if c.Dismiss {
			return d.Dismiss(ctx, c.ID)
		}
		return d.Decide(ctx, c.ID, answer)
	})
}
