//go:build !windows

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"vx/internal/wake"
)

type wakeList struct {
	JSON bool `name:"json" help:"Print JSON."`
	place
}

func (l *wakeList) Run(std stdio) error {
	q, err := l.look()
	if err != nil {
		return err
	}
	listing := wake.Listing{Waiting: []wake.Wake{}, Claimed: []wake.InFlight{}, Emitted: []wake.InFlight{}, Bad: []wake.Bad{}}
	if q != nil {
		if listing, err = q.List(0); err != nil {
			return err
		}
	}
	if l.JSON {
		return std.json(listing)
	}
	return printListing(std.out, listing)
}

// printListing prints a line for each wake, or says that there is none.
func printListing(out io.Writer, l wake.Listing) error {
	if len(l.Waiting)+len(l.Claimed)+len(l.Emitted)+len(l.Bad) == 0 {
		_, err := fmt.Fprintln(out, "nothing waits")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(stage string, w wake.Wake) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", stage, short(printable(w.ID), 80), short(printable(string(w.Kind)), 20), clock(w.Detected), short(subject(w), 100))
	}
	for _, w := range l.Waiting {
		row("waiting", w)
	}
	for _, f := range l.Claimed {
		row("claimed", f.Wake)
	}
	for _, f := range l.Emitted {
		row("emitted", f.Wake)
	}
	for _, b := range l.Bad {
		fmt.Fprintf(table, "bad\t%s\t%d bytes\t%s\t\n", short(printable(b.Name), 120), b.Size, clock(b.Time))
	}
	return table.Flush()
}

// subject is what a wake is about, in one line.
func subject(w wake.Wake) string {
	s := printable(w.Title)
	if w.OldStatus != "" || w.NewStatus != "" {
		change := printable(w.OldStatus) + " -> " + printable(w.NewStatus)
		if w.Outcome != "" {
			change += " (" + printable(w.Outcome) + ")"
		}
		s = change + " " + s
	}
	return s
}

// short cuts a line that would not fit.
func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// clock is a moment in local time, with the day unless it is today.
func clock(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	t = t.Local()
	if t.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}
