//go:build !windows

package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"vx/internal/loop"
)

type loopList struct {
	All  bool `name:"all" help:"Also those that ended long ago."`
	JSON bool `name:"json" help:"Print JSON."`
	place
}

// maxEnded is how many runs that have ended are listed: the last ones.
const maxEnded = 10

// listedRun is a run as the list has it.
type listedRun struct {
	Run       string `json:"run"`
	Iteration *int   `json:"iteration"`
	runDetails
}

func (l *loopList) Run(std stdio) error {
	all, bad, err := l.runs()
	if err != nil {
		return err
	}
	var shown []loop.Found
	over := 0
	for _, f := range all {
		if !f.Active() {
			if over++; over > maxEnded && !l.All {
				continue
			}
		}
		shown = append(shown, f)
	}
	if l.JSON {
		list := []listedRun{}
		for _, f := range shown {
			s := statusOf(&f)
			list = append(list, listedRun{s.Run, s.Iteration, s.runDetails})
		}
		return errors.Join(std.json(list), errors.Join(bad...))
	}
	if len(shown) == 0 {
		fmt.Fprintln(std.out, "no runs yet")
	}
	now := time.Now()
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, f := range shown {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", printable(f.ID), f.Kind, inWords(&f), iterationOf(&f), age(f.Started, now), short(f.Title, 60))
	}
	err = table.Flush()
	if more := over - maxEnded; err == nil && more > 0 && !l.All {
		_, err = fmt.Fprintf(std.out, "and %d that ended before: vx loop list --all\n", more)
	}
	return errors.Join(err, errors.Join(bad...))
}
