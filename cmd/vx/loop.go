//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"vx/internal/loop"
	"vx/internal/state"
)

// oneRun is embedded by the commands that are about one run.
type oneRun struct {
	ID   string `name:"run" placeholder:"ID" help:"Which run; its id may be shortened. Default: the only active one."`
	JSON bool   `name:"json" help:"Print JSON."`
	place
}

// runs are those of the project that is meant.
func (p place) runs() ([]loop.Found, []error, error) {
	dir, err := state.Look()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	root, err := p.root(dir)
	if err != nil {
		return nil, nil, err
	}
	var kept *state.Project
	if dir != nil {
		kept = dir.Project(root)
	}
	all, bad := loop.List(root, kept)
	return all, bad, nil
}

// found are the runs that can be read; the others are named on stderr.
func (o *oneRun) found(std stdio) ([]loop.Found, error) {
	all, bad, err := o.runs()
	for _, b := range bad {
		fmt.Fprintf(std.errw(), "vx: %s\n", printable(b.Error()))
	}
	return all, err
}

// answer prints what a command has come to as ralphctl would: with --json an error is JSON on stdout, too.
func (o *oneRun) answer(std stdio, value any, text string, err error) error {
	switch {
	case err != nil && o.JSON:
		what := err.Error()
		if u, ok := errors.AsType[*loop.Unfound](err); ok {
			what = u.What
		}
		failed := struct {
			Success bool   `json:"success"`
			Error   string `json:"error"`
		}{false, printable(what)}
		return errors.Join(exitStatus(exitFailed), std.json(failed))
	case err != nil:
		return err
	case o.JSON:
		return std.json(value)
	}
	_, err = fmt.Fprintln(std.out, text)
	return err
}

// asked is what pause, resume and stop print.
type asked struct {
	Success bool   `json:"success"`
	Run     string `json:"run"`
	Action  string `json:"action"`
	Worker  string `json:"worker,omitempty"` // what became of it
}

// order finds the run and has something done with it.
func (o *oneRun) order(std stdio, action, say string, do func(*loop.Found) error) error {
	all, err := o.found(std)
	var f *loop.Found
	if err == nil {
		f, err = loop.Pick(all, o.ID)
	}
	if err == nil {
		err = do(f)
	}
	if err != nil {
		return o.answer(std, nil, "", err)
	}
	id := printable(f.ID)
	return o.answer(std, asked{true, id, action, ""}, fmt.Sprintf(say, id), nil)
}

type loopPause struct{ oneRun }

func (c *loopPause) Run(std stdio) error {
	return c.order(std, "paused", "paused %s: it waits before its next piece of work", (*loop.Found).AskPause)
}

type loopResume struct{ oneRun }

func (c *loopResume) Run(std stdio) error {
	return c.order(std, "resumed", "resumed %s", (*loop.Found).Resume)
}

type loopStop struct {
	Now bool `name:"now" help:"End its worker too: SIGTERM, then SIGKILL after 5 s."`
	oneRun
}

func (loopStop) Help() string {
	return "A worker that runs is not interrupted: the run ends when it has returned. --now ends it, if vx started it."
}

func (c *loopStop) Run(std stdio) error {
	if !c.Now {
		return c.order(std, "stop_requested", "stop requested for %s: it ends before its next piece of work", (*loop.Found).AskStop)
	}
	all, err := c.found(std)
	if err != nil {
		return c.answer(std, nil, "", err)
	}
	f, err := loop.Pick(all, c.ID)
	if err != nil {
		// The loop may be dead, and its worker not.
		if dead, _ := loop.Any(all, c.ID); dead != nil {
			if _, works := dead.Worker(); works {
				f, err = dead, nil
			}
		}
	}
	if err == nil {
		err = f.Endable()
	}
	if err == nil && f.Active() {
		err = f.AskStop()
	}
	ended := false
	if err == nil {
		ended, err = f.EndWorker()
	}
	if err != nil {
		return c.answer(std, nil, "", err)
	}
	id, worker, text := printable(f.ID), "none", "no worker is at it"
	if ended {
		worker, text = "ended", "its worker was ended"
	}
	return c.answer(std, asked{true, id, "stop_requested", worker}, fmt.Sprintf("stop requested for %s; %s", id, text), nil)
}

type loopStatus struct{ oneRun }

// runStatus is what ralphctl says of a run, and more.
type runStatus struct {
	Success   bool    `json:"success"`
	Run       string  `json:"run"`
	Iteration *int    `json:"iteration"`
	Spec      *string `json:"current_spec"`
	Task      *string `json:"current_task"`
	Paused    bool    `json:"paused"`
	Stopped   bool    `json:"stopped"`

	runDetails
}

// runDetails are what vx says of a run besides.
type runDetails struct {
	Kind     string    `json:"kind"`
	State    string    `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	Title    string    `json:"title,omitempty"`
	Limit    int       `json:"max_iterations,omitempty"`
	Dir      string    `json:"dir"`
	Started  time.Time `json:"started_at,omitzero"`
	Changed  time.Time `json:"changed_at,omitzero"`
	PID      int       `json:"pid,omitempty"`
	Beat     time.Time `json:"heartbeat_at,omitzero"`
	Worker   int       `json:"worker_pid,omitempty"`
	AskedAt  time.Time `json:"pause_asked_at,omitzero"`
	PausedAt time.Time `json:"paused_at,omitzero"`
	Effect   *bool     `json:"pause_in_effect,omitempty"` // left out where nobody can say, or nobody asked
}

func detailsOf(f *loop.Found) runDetails {
	d := runDetails{
		Kind: f.Kind, State: string(f.State), Reason: string(f.Reason), Title: f.Title, Limit: f.Limit, Dir: f.Dir,
		Started: f.Started, Changed: f.Changed, AskedAt: f.AskedAt, PausedAt: f.PausedAt, Beat: f.Heartbeat(),
	}
	if owner, ok := f.Owner(); ok {
		d.PID = owner.PID
	}
	if worker, ok := f.Worker(); ok {
		d.Worker = worker.PID
	}
	if f.Pause && f.Tells {
		yes := !f.PausedAt.IsZero()
		d.Effect = &yes
	}
	return d
}

func (c *loopStatus) Run(std stdio) error {
	all, err := c.found(std)
	var f *loop.Found
	if err == nil {
		f, err = loop.Any(all, c.ID)
	}
	if err != nil {
		return c.answer(std, nil, "", err)
	}
	return c.answer(std, statusOf(f), describe(f), nil)
}

func statusOf(f *loop.Found) runStatus {
	s := runStatus{Success: true, Run: printable(f.ID), Paused: f.Pause, Stopped: f.Stop, runDetails: detailsOf(f)}
	if f.Iteration > 0 {
		s.Iteration = &f.Iteration
	}
	for _, named := range []struct {
		to   **string
		name *string
	}{{&s.Spec, &f.Spec}, {&s.Task, &f.Task}} {
		if *named.name != "" {
			*named.to = named.name
		}
	}
	return s
}

// describe is a run in a few lines.
func describe(f *loop.Found) string {
	now := time.Now()
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "\n  %-10s%s", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s  %s  %s", printable(f.ID), f.Kind, inWords(f))
	if f.Title != "" {
		row("title", "%s", f.Title)
	}
	if f.Iteration > 0 {
		row("iteration", "%s", iterationOf(f))
	}
	if work := strings.TrimSpace(f.Spec + " " + f.Task); work != "" {
		row("work", "%s", work)
	}
	if !f.Started.IsZero() {
		row("started", "%s, %s ago", clock(f.Started), age(f.Started, now))
	}
	d := detailsOf(f)
	if d.PID > 0 {
		row("process", "%d", d.PID)
		if now.Sub(d.Beat) > 2*time.Minute {
			row("", "not heard of for %s: stopped, or the machine slept", age(d.Beat, now))
		}
	}
	if d.Worker > 0 {
		row("worker", "%d", d.Worker)
		if !f.Active() {
			row("", "outlives its run; vx loop stop --now --run %s ends it", state.Quote(printable(f.ID)))
		}
	}
	if f.Pause {
		row("pause", "%s", pauseOf(f, now))
	}
	if f.Stop && f.Active() {
		row("stop", "asked for; it ends before its next piece of work")
	}
	if f.State == loop.Silent {
		row("", "nothing has changed for %s; if it has ended: vx loop mark --run-dir %s --reason CRASHED", age(f.Changed, now), state.Quote(printable(f.Dir)))
	}
	row("directory", "%s", printable(f.Dir))
	return b.String()
}

// pauseOf says since when a run is to wait, and whether it does.
func pauseOf(f *loop.Found, now time.Time) string {
	s := fmt.Sprintf("asked for %s, %s ago", clock(f.AskedAt), age(f.AskedAt, now))
	switch {
	case !f.Active():
		return s
	case !f.PausedAt.IsZero():
		return s + fmt.Sprintf("; in effect since %s", clock(f.PausedAt))
	case f.Tells:
		return s + "; not in effect yet: its worker has not returned"
	}
	return s + "; whether it is in effect ralph.sh does not say"
}

// inWords is a run's state for a person.
func inWords(f *loop.Found) string {
	switch f.State {
	case loop.Ended:
		return "ended: " + string(f.Reason)
	case loop.Silent:
		return "active, or ended without a word"
	}
	return string(f.State)
}

func iterationOf(f *loop.Found) string {
	switch {
	case f.Iteration == 0:
		return "-"
	case f.Limit > 0:
		return fmt.Sprintf("%d of %d", f.Iteration, f.Limit)
	}
	return fmt.Sprint(f.Iteration)
}

type loopCheck struct {
	Dir string `name:"run-dir" required:"" placeholder:"D" type:"path" help:"The run's directory."`
}

// exitStop is what vx loop check ends with when the loop is to end.
const exitStop = 10

func (loopCheck) Help() string {
	return "For a shell loop, before each piece of work and behind it. With PAUSE in the directory it waits until that is " +
		"gone. With STOP it marks the run as STOPPED and ends with 10; else with 0."
}

func (c *loopCheck) Run(ctx context.Context, std stdio) error {
	r, err := loop.Join(c.Dir)
	if err != nil {
		return err
	}
	// The run is to be seen in the list; the loop goes on without.
	if err := listed(r); err != nil {
		fmt.Fprintf(std.errw(), "vx: the run will not be listed: %s\n", printable(err.Error()))
	}
	r.Say = func(line string) { fmt.Fprintln(std.errw(), printable(line)) }
	err = r.Check(ctx)
	if errors.Is(err, loop.ErrStopped) {
		return exitStatus(exitStop)
	}
	return err
}

// listed makes a run known to the project that the loop runs in, if there is one.
func listed(r *loop.Run) error {
	dir, err := state.Open()
	if err != nil {
		return err
	}
	root, err := place{}.root(dir)
	if _, none := errors.AsType[*noProject](err); none {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Register(dir.Project(root))
}

type loopMark struct {
	Dir    string `name:"run-dir" required:"" placeholder:"D" type:"path" help:"The run's directory."`
	Reason string `name:"reason" required:"" placeholder:"R" help:"Why it ends, in one of the words above."`
}

func (loopMark) Help() string {
	var all []string
	for _, r := range loop.Reasons {
		all = append(all, string(r))
	}
	return "Writes the end into progress.txt, once: a run that has one keeps it. Reasons: " + strings.Join(all, ", ") +
		"; \"NEEDS_HUMAN: text\" says what for."
}

// Validate is called by kong after parsing.
func (c *loopMark) Validate() error {
	if _, err := loop.ParseReason(c.Reason); err != nil {
		return &usageError{"--reason: " + err.Error(), "vx loop mark --help"}
	}
	return nil
}

func (c *loopMark) Run(std stdio) error {
	reason, err := loop.ParseReason(c.Reason)
	if err != nil {
		return err
	}
	r, err := loop.Join(c.Dir)
	if err != nil {
		return err
	}
	if r.Ended() {
		fmt.Fprintln(std.errw(), "vx: the run has its end already; nothing was written")
		return nil
	}
	return r.Finish(reason, "")
}
