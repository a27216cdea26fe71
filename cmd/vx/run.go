//go:build !windows

package main

import (
	"errors"
	"fmt"

	runner "vx/internal/run"
	"vx/internal/state"
)

type runCommand struct {
	Title    string   `name:"title" placeholder:"T" help:"What to call it. Default: the command."`
	Key      string   `name:"key" placeholder:"K" help:"What it is about: a wake that waits with the same key is folded in."`
	Tail     int      `name:"tail" default:"10" placeholder:"N" help:"How many of its last lines go into the wake (10)."`
	NoOutput bool     `name:"no-output" help:"Let it print by itself: no lines in the wake."`
	Command  []string `arg:"" name:"command" passthrough:"" help:"The command and its arguments, best behind --."`
	place
}

// maxTail is how many lines make sense in a wake; a model is shown fewer still.
const maxTail = 100

// Validate is called by kong after parsing.
func (r *runCommand) Validate() error {
	if len(r.Command) > 0 && r.Command[0] == "--" {
		r.Command = r.Command[1:]
	}
	switch {
	case len(r.Command) == 0 || r.Command[0] == "":
		return errors.New("no command, as in: vx run -- make test")
	case r.Tail < 0 || r.Tail > maxTail:
		return fmt.Errorf("--tail: want 0 to %d lines", maxTail)
	}
	return nil
}

func (r *runCommand) Run(std stdio, dir *state.Dir) error {
	queue, err := r.queue(dir)
	if err != nil {
		return err
	}
	status, err := runner.Command{
		Args:   r.Command,
		Title:  r.Title,
		Key:    r.Key,
		Tail:   r.Tail,
		Direct: r.NoOutput,
		Stdin:  std.in,
		Stdout: std.out,
		Stderr: std.err,
		Queue:  queue,
	}.Run()
	if err != nil {
		report(std, err)
	}
	return exitStatus(status)
}
