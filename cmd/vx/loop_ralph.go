//go:build !windows

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"vx/internal/loop"
	"vx/internal/loop/ralph"
)

type loopRalph struct {
	Select        string        `name:"select" required:"" placeholder:"CMD" help:"Prints the next piece of work, by sh -c; nothing, or none, ends the run."`
	Work          string        `name:"work" required:"" placeholder:"CMD" help:"Works on it, by sh -c; what was selected is on stdin and in VX_TASK."`
	Max           int           `name:"max" default:"25" placeholder:"N" help:"How many iterations there may be (25)."`
	Attempts      int           `name:"attempts" default:"5" placeholder:"N" help:"How often a task is tried before it is skipped (5)."`
	WorkerTimeout time.Duration `name:"worker-timeout" default:"1h" placeholder:"D" help:"How long a worker may work (1h)."`
	Between       time.Duration `name:"between" default:"2s" placeholder:"D" help:"How long it waits between two iterations (2s)."`
}

func (loopRalph) Help() string {
	return "Select and work take turns until there is no work. Exit status: 0 no work is left or stopped, 1 out of " +
		"iterations or failed, 3 your call. See docs/loops.md."
}

// Validate is called by kong after parsing.
func (c *loopRalph) Validate() error {
	switch {
	case strings.TrimSpace(c.Select) == "" || strings.TrimSpace(c.Work) == "":
		return errors.New("--select and --work: want a command each")
	case c.Max < 1 || c.Max > maxPasses:
		return fmt.Errorf("--max: want 1 to %d iterations", maxPasses)
	case c.Attempts < 1:
		return errors.New("--attempts: want 1 or more")
	case c.WorkerTimeout < 0 || c.Between < 0:
		return errors.New("a time is negative")
	}
	return nil
}

func (c *loopRalph) Run(std stdio) error {
	p, at, tree, err := loopHere()
	if err != nil {
		return err
	}
	o := ralph.Options{
		Select: c.Select, Work: c.Work, Max: c.Max, Attempts: c.Attempts, WorkerTimeout: c.WorkerTimeout, Between: c.Between,
		Dir: at, Tree: tree,
	}
	ctx, stop := withSignals()
	defer stop()
	began := time.Now()
	say := func(line string) { fmt.Fprintln(std.errw(), printable(line)) }
	res, err := ralph.Run(ctx, p, o, os.Args, say)
	if err != nil {
		return err
	}
	if res.Reason == loop.Escalated {
		fmt.Fprintf(std.out, "%s\n\n", strings.TrimRight(res.Question, "\n"))
	}
	fmt.Fprintln(std.out, printable(res.Words))
	fmt.Fprintf(std.errw(), "%s: %s, %s\n", printable(res.Run), res.Reason, age(began, time.Now()))
	return exitStatus(res.Status)
}
