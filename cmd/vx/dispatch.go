//go:build !windows

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"vx/internal/daemon"
	"vx/internal/dispatch"
	"vx/internal/state"
	"vx/internal/task"
)

type dispatchCommand struct {
	Prompt string   `arg:"" name:"prompt" help:"What is to be done, in quotes; - reads it from stdin."`
	Args   []string `arg:"" name:"args" optional:"" passthrough:"" help:"Behind --: what is passed on to the agent's own program."`
	Kind   string   `name:"kind" enum:"mission,scout" default:"mission" placeholder:"KIND" help:"A mission changes code (the default), a scout writes a report."`
	Agent  string   `name:"agent" enum:"claude,codex,pi,opencode" default:"claude" placeholder:"AGENT" help:"What is started: claude (the default), codex, pi or opencode."`
	Title  string   `name:"title" placeholder:"T" help:"What to call it. Default: the prompt's first line."`
	Model  string   `name:"model" placeholder:"M" help:"The agent's model."`
	Effort string   `name:"effort" placeholder:"E" help:"How hard the model is to think, in the agent's own words."`
	Base   string   `name:"base" placeholder:"REF" help:"What its branch begins at. Default: the branch that is checked out."`
	JSON   bool     `name:"json" help:"Print JSON."`
	place
}

// Validate is called by kong after parsing.
func (c *dispatchCommand) Validate() (err error) {
	c.Args, err = behindDashes(c.Args)
	return err
}

// behindDashes are the arguments for another program; without -- before them they were meant for vx.
func behindDashes(args []string) ([]string, error) {
	switch {
	case len(args) == 0:
		return nil, nil
	case args[0] != "--":
		return nil, fmt.Errorf("unexpected argument %s: put a prompt in quotes, and what is for the agent's program behind --", args[0])
	}
	return args[1:], nil
}

func (c *dispatchCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	prompt, err := spoken(std, c.Prompt)
	if err != nil {
		return err
	}
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) {
		return d.Dispatch(ctx, dispatch.Order{
			Kind: task.Kind(c.Kind), Agent: c.Agent, Title: c.Title, Model: c.Model, Effort: c.Effort, Base: c.Base, Prompt: prompt, Args: c.Args,
		})
	})
}

// maxSpoken is how much of stdin is read; far less can be typed into a terminal.
const maxSpoken = 1 << 20

// spoken is a text from the command line, or from stdin where that says -.
func spoken(std stdio, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	data, err := io.ReadAll(io.LimitReader(std.in, maxSpoken))
	if err != nil {
		return "", fmt.Errorf("stdin: %w", err)
	}
	return string(data), nil
}

// desk is where the orders of the project that is meant are given.
func (p place) desk(std stdio, dir *state.Dir) (*dispatch.Desk, error) {
	root, err := p.root(dir)
	if err != nil {
		return nil, err
	}
	_, git, err := dir.Resolve(root)
	if err != nil {
		return nil, err
	}
	return &dispatch.Desk{
		Project: dir.Project(root), Git: git, Getenv: os.Getenv, Sentinel: daemon.EnsureCurrent,
		Progress: func(line string) { fmt.Fprintf(std.errw(), "vx: %s\n", printable(line)) },
	}, nil
}

// order has an order carried out, and says what came of it and which command comes next.
func (p place) order(std stdio, dir *state.Dir, asJSON bool, give func(*dispatch.Desk) (dispatch.Result, error)) error {
	d, err := p.desk(std, dir)
	if err != nil {
		return err
	}
	r, err := give(d)
	for _, warning := range r.Warnings {
		fmt.Fprintf(std.errw(), "vx: warning: %s\n", printable(warning))
	}
	if err != nil {
		return err
	}
	if asJSON {
		return std.json(r)
	}
	_, err = fmt.Fprintf(std.out, "%s\nnext: %s\n", printable(r.Did), printable(r.Next))
	return err
}
