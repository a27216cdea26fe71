//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"vx/internal/dispatch"
	"vx/internal/state"
	"vx/internal/task"
)

type watchCommand struct {
	Target string `arg:"" name:"target" optional:"" help:"A pane or an agent of herdr's; or a session of Claude Code: its pid, name or id."`
	Title  string `name:"title" placeholder:"T" help:"What to call it. Default: the session's name."`
	Kind   string `name:"kind" enum:"mission,scout" default:"mission" placeholder:"KIND" help:"Either mission (the default) or scout."`
	JSON   bool   `name:"json" help:"Print JSON."`
	place
}

func (watchCommand) Help() string {
	return "An agent that runs already becomes a task, and its end wakes you: a commit on the branch that it works on, or " +
		"the end of its turn where its own record tells of that. Without a target: what can be watched."
}

func (c *watchCommand) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	if c.Target == "" {
		return c.list(ctx, std, dir)
	}
	return c.order(std, dir, c.JSON, func(d *dispatch.Desk) (dispatch.Result, error) {
		return d.Watch(ctx, c.Target, c.Title, task.Kind(c.Kind))
	})
}

func (c *watchCommand) list(ctx context.Context, std stdio, dir *state.Dir) error {
	d, err := c.desk(std, dir)
	if err != nil {
		return err
	}
	all, err := d.Targets(ctx)
	if c.JSON {
		return errors.Join(std.json(all), err)
	}
	if len(all) == 0 && err == nil {
		fmt.Fprintln(std.out, "no agent in a pane of herdr's, and no session of Claude Code")
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, x := range all {
		as := ""
		if x.Task != "" {
			as = "task " + dispatch.Short(x.Task)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", printable(x.Target), printable(x.Agent), printable(x.Status),
			short(printable(x.Name), 40), printable(x.Dir), as)
	}
	return errors.Join(table.Flush(), err)
}
