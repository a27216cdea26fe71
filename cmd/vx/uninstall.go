//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"vx/install"
	"vx/internal/awaiter"
	"vx/internal/daemon"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

type uninstallCommand struct {
	change
	Purge bool `name:"purge" help:"End the project's awaits, and the sentinel if it watches for no other, and remove its state too."`
	place
}

func (u *uninstallCommand) Run(ctx context.Context, std stdio) error {
	dir, err := existingState()
	if err != nil {
		return err
	}
	root, err := optional(dir, u.place, u.Scope)
	if err != nil {
		return err
	}
	p, err := install.Uninstall(dir, root, install.Scope(u.Scope))
	if err != nil {
		return err
	}
	rest, err := remains(dir, root)
	if err != nil {
		return err
	}
	purge := u.Purge && rest.any()
	u.show(std, p)
	if purge && (u.DryRun || !u.Yes) {
		rest.print(std, "would end", "would remove", "")
	}
	if p.Empty() && !purge {
		if len(p.Notes) == 0 {
			fmt.Fprintln(std.out, "nothing to do: the hook is not registered")
		}
		rest.print(std, "still runs:", "still stands:", "vx uninstall --purge")
		return nil
	}
	if err := u.agreed(ctx, std, "uninstall"); err != nil {
		return err
	}
	if err := apply(ctx, std, dir, root, p); err != nil {
		return err
	}
	if purge {
		return rest.remove(ctx, std)
	}
	if rest, err = remains(dir, root); err != nil {
		return err
	}
	rest.print(std, "still runs:", "still stands:", "vx uninstall --purge")
	return nil
}

// rest is what a project has beside its hook.
type rest struct {
	dir      *state.Dir
	queue    *wake.Queue // nil if nothing is kept of the project
	holdings wake.Holdings
	awaits   []awaiter.Entry
	sentinel *daemon.Info // nil if none runs
	others   int          // projects that it watches too
}

func remains(dir *state.Dir, root string) (rest, error) {
	var r rest
	if dir == nil || root == "" {
		return r, nil
	}
	r.dir = dir
	project := dir.Project(root)
	var err error
	if r.awaits, _, err = awaiter.Look(dir, project); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := r.lookAtSentinel(dir, root); err != nil {
		return r, err
	}
	if _, err := os.Lstat(project.Dir); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	r.queue = wake.Open(project)
	r.holdings, err = r.queue.Holdings()
	return r, err
}

// lookAtSentinel finds the sentinel, and for how many other projects it watches.
func (r *rest) lookAtSentinel(dir *state.Dir, root string) error {
	info, running, err := daemon.Look(dir)
	if err != nil || !running {
		return err
	}
	r.sentinel = &info
	known, _ := dir.Projects() // one that cannot be read has nothing to be watched
	for _, p := range known {
		if p.Root != root {
			r.others++
		}
	}
	return nil
}

func (r rest) any() bool { return r.queue != nil || len(r.awaits) > 0 || r.lastSentinel() }

// lastSentinel reports whether a sentinel runs for this project alone.
func (r rest) lastSentinel() bool { return r.sentinel != nil && r.others == 0 }

// print names it all. With a command that removes it, that is named too.
func (r rest) print(std stdio, runs, stands, remove string) {
	for _, a := range r.awaits {
		fmt.Fprintf(std.out, "%s the await of process %d; by itself it ends with its session, or 55 minutes after its start\n", runs, a.Process.PID)
	}
	switch {
	case r.lastSentinel():
		fmt.Fprintf(std.out, "%s the sentinel, process %d\n", runs, r.sentinel.PID)
	case r.sentinel != nil:
		fmt.Fprintf(std.out, "still runs: the sentinel, process %d; it watches for other projects too: %d\n", r.sentinel.PID, r.others)
	}
	if r.queue == nil {
		return
	}
	fmt.Fprintf(std.out, "%s %s (%s; wakes waiting: %d, on their way: %d)\n", stands,
		printable(install.Shown("", r.queue.Project.Dir)), size(r.holdings.Bytes), r.holdings.Waiting, r.holdings.Unsettled)
	if remove != "" {
		fmt.Fprintf(std.out, "To end and remove that too: %s\n", remove)
	}
}

// leaving is how long an await may take to end; it acts on the signal at once.
const leaving = 5 * time.Second

func (r rest) remove(ctx context.Context, std stdio) error {
	for _, a := range r.awaits {
		if err := end(ctx, a); err != nil {
			return err
		}
		fmt.Fprintf(std.out, "ended the await of process %d\n", a.Process.PID)
	}
	// After the awaits, which would start another.
	if r.lastSentinel() {
		info, err := daemon.Stop(ctx, r.dir)
		switch {
		case err == nil:
			fmt.Fprintf(std.out, "ended the sentinel, process %d\n", info.PID)
		case !errors.Is(err, daemon.ErrNone):
			return err
		}
	}
	if r.queue == nil {
		return nil
	}
	if err := r.queue.Forget(ctx, true); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "removed %s\n", printable(install.Shown("", r.queue.Project.Dir)))
	return nil
}

func end(ctx context.Context, a awaiter.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	if err := a.Terminate(); err != nil && !errors.Is(err, proc.ErrGone) {
		return err
	}
	for a.Live() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("await of process %d: does not end", a.Process.PID)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
