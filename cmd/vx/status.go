//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"vx/internal/awaiter"
	"vx/internal/state"
	"vx/internal/status"
)

type statusCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
	All  bool `name:"all" help:"All projects that vx knows."`
	place
}

func (s *statusCommand) Run(ctx context.Context, std stdio) error {
	dir, err := state.Look()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.All {
		return s.all(ctx, std, dir)
	}
	root, err := s.root(dir)
	if none, ok := errors.AsType[*noProject](err); ok {
		root, err = none.dir, nil
	}
	if err != nil {
		return err
	}
	r := status.Nothing(root)
	if dir != nil {
		r = status.Of(ctx, dir.Project(root))
	}
	if s.JSON {
		return std.json(r)
	}
	return printStatus(std.out, r)
}

func (s *statusCommand) all(ctx context.Context, std stdio, dir *state.Dir) error {
	reports := []status.Report{}
	if dir != nil {
		projects, bad := dir.Projects()
		for _, err := range bad {
			fmt.Fprintf(std.errw(), "vx: %s\n", printable(err.Error()))
		}
		for _, p := range projects {
			reports = append(reports, status.Of(ctx, p))
		}
	}
	if s.JSON {
		return std.json(reports)
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintln(std.out, "no projects yet; to begin: vx init")
		return err
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(std.out)
		}
		if err := printStatus(std.out, r); err != nil {
			return err
		}
	}
	return nil
}

// printStatus prints a report for a person: what is as usual takes a line.
func printStatus(out io.Writer, r status.Report) error {
	w := &statusPrinter{out: out}
	gone := ""
	if r.Gone {
		gone = " (gone; vx project move, or vx project forget)"
	}
	w.line("%s%s", printable(r.Project), gone)
	if !r.Known {
		w.row("", "nothing here yet; to begin: vx init")
		return w.err
	}
	for _, a := range r.Awaits {
		w.row("await", "%s", awaitLine(a))
	}
	if len(r.Awaits) == 0 {
		w.row("await", "%s", r.NoAwait(time.Now()))
	}
	if !r.MutedUntil.IsZero() {
		w.row("muted", "%s; vx unmute ends it", untilWhen(r.MutedUntil))
	}
	for _, s := range r.Slowed {
		w.row("slowed", "client %d is woken every %s, next at %s: its own turns wake it", s.Client.PID, s.Interval, clock(s.Next))
	}
	w.row("waiting", "%d", r.Waiting)
	for _, next := range r.Next {
		w.row("", "%s  %s", clock(next.Detected), short(subject(next), 100))
	}
	if more := r.Waiting - len(r.Next); more > 0 {
		w.row("", "and %d more: vx wake list", more)
	}
	if r.OnTheWay > 0 {
		w.row("on the way", "%d", r.OnTheWay)
	}
	if r.Bad > 0 {
		w.row("quarantined", "%d; vx doctor says where", r.Bad)
	}
	name := "delivered"
	for _, d := range r.Last {
		w.row(name, "%s  %.1f ms  %s  %s", clock(d.Time), d.Millis, printable(d.Receipt), short(printable(d.Title), 80))
		name = ""
	}
	for _, trouble := range r.Trouble {
		w.row("trouble", "%s", printable(trouble))
	}
	return w.err
}

// statusPrinter prints lines until one cannot be printed.
type statusPrinter struct {
	out io.Writer
	err error
}

func (w *statusPrinter) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

func (w *statusPrinter) row(name, format string, args ...any) {
	w.line("  %-12s"+format, append([]any{name}, args...)...)
}

// awaitLine says whom an await serves.
func awaitLine(r awaiter.Record) string {
	s := "for a client"
	if r.Harness != "" {
		s = "for " + printable(r.Harness)
	}
	if r.Client.PID != 0 {
		s += fmt.Sprintf(" %d", r.Client.PID)
	}
	if r.Session != "" {
		s += ", session " + short(printable(r.Session), 40)
	}
	if r.Pane != "" {
		s += ", pane " + short(printable(r.Pane), 20)
	}
	return s + ", since " + clock(r.Since)
}
