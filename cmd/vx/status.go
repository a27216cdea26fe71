//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"vx/internal/commander"
	"vx/internal/dispatch"
	"vx/internal/state"
	"vx/internal/status"
	"vx/internal/task"
)

type statusCommand struct {
	JSON  bool `name:"json" help:"Print JSON."`
	All   bool `name:"all" help:"All projects that vx knows, and all their tasks and runs."`
	Watch bool `name:"watch" help:"Show it anew whenever it has changed, until it is interrupted."`
	place
}

func (s *statusCommand) Run(ctx context.Context, std stdio) error {
	if s.Watch {
		return s.live(ctx, std)
	}
	return s.once(ctx, std.out, std.errw())
}

// once prints how things stand at this moment.
func (s *statusCommand) once(ctx context.Context, out, errw io.Writer) error {
	dir, err := state.Look()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.All {
		return s.all(ctx, out, errw, dir)
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
		r = status.Of(ctx, dir.Project(root), false)
	}
	if s.JSON {
		return encode(out, r)
	}
	return printStatus(out, r)
}

func (s *statusCommand) all(ctx context.Context, out, errw io.Writer, dir *state.Dir) error {
	reports := []status.Report{}
	if dir != nil {
		projects, bad := dir.Projects()
		for _, err := range bad {
			fmt.Fprintf(errw, "vx: %s\n", printable(err.Error()))
		}
		for _, p := range projects {
			reports = append(reports, status.Of(ctx, p, true))
		}
	}
	if s.JSON {
		return encode(out, reports)
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintln(out, "no projects yet; to begin: vx init")
		return err
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printStatus(out, r); err != nil {
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
	w.tasks(r)
	w.runs(r)
	for _, e := range r.Commanders {
		w.row("commander", "%s", commanderLine(e))
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
	for _, f := range r.Failing {
		w.row("failed", "the last %s of client %d; wakes wait for it until %s", turns(f.Turns), f.Client.PID, clock(f.Next))
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

func turns(n int) string {
	if n == 1 {
		return "turn"
	}
	return fmt.Sprintf("%d turns", n)
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

// commanderLine says who is to be woken, and whether it waits for that.
func commanderLine(e commander.Entry) string {
	s := named(e)
	if e.Session != "" {
		s += ", session " + short(printable(e.Session), 40)
	}
	if e.Pane != "" {
		s += ", pane " + short(printable(e.Pane), 20)
	}
	return s + ", since " + clock(e.Since) + ", " + waits(e)
}

// tasks prints a line a task: what it is called, how far it has come and since when, what it waits for.
func (w *statusPrinter) tasks(r status.Report) {
	name := "tasks"
	for _, t := range r.Tasks {
		w.row(name, "%-8s  %-11s  %4s  %s", dispatch.Short(t.ID), printable(string(t.Status)), age(t.Since, time.Now()), short(printable(t.Title), 60))
		name = ""
		if t.Waits != "" && t.Status != task.Running || strings.HasPrefix(t.Waits, "you") {
			w.row("", "          waits for %s", short(printable(t.Waits), 100))
		}
	}
	if r.Over > 0 {
		w.row(name, "landed or struck: %d; vx status --all", r.Over)
	}
}

// runs prints a line a run: which it is, what it is at and since when, and in which iteration.
func (w *statusPrinter) runs(r status.Report) {
	name := "runs"
	for _, run := range r.Runs {
		w.row(name, "%s  %s  %s  %s  %s  %s", short(printable(run.ID), 40), run.Kind, inWords(&run.Found), age(run.Since, time.Now()),
			iterationOf(&run.Found), short(run.Title, 60))
		name = ""
	}
	if r.RunsOver > 0 {
		w.row(name, "ended more than a day ago: %d; vx loop list", r.RunsOver)
	}
}

// age is the time since then in its largest unit, "?" where it is not known since when.
func age(since, now time.Time) string {
	d := now.Sub(since)
	switch {
	case since.IsZero():
		return "?"
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
