package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/daemon"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// sentinel looks at the one process that watches for all projects. Whatever is wrong with it, it is enough to end it: who
// has something to watch starts another.
func sentinel(_ context.Context, p *Patient) []Result {
	if p.State == nil {
		return nil
	}
	info, running, err := daemon.Look(p.State)
	if err != nil {
		return warning("remove "+state.Quote(p.State.Join("sentinel.json")), "%v", err)
	}
	var all []Result
	for _, id := range daemon.Others(p.State) {
		all = append(all, warning(replaceable(id.PID), "process %d is one too many: its lock file was removed", id.PID)...)
	}
	switch {
	case !running:
		return append(all, sentinelGone(p)...)
	case info.Replaced():
		all = append(all, warning(replaceable(info.PID), "process %d runs a program that %s is no more", info.PID, home(info.Build.Path))...)
	case info.Missing():
		all = append(all, warning(replaceable(info.PID), "process %d runs %s, which is gone", info.PID, home(info.Build.Path))...)
	case p.Version != "" && info.PID != 0 && info.Build.Version != p.Version:
		all = append(all, warning(replaceable(info.PID), "process %d is vx %s of %s, and this is vx %s",
			info.PID, info.Build.Version, home(info.Build.Path), p.Version)...)
	}
	if len(all) > 0 {
		return all
	}
	live, _, err := awaiter.Look(p.State, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure("look into "+p.State.Awaiters(), "%v", err)
	}
	return ok("running, %d sentinel await(s) waiting", len(live))
}

func replaceable(pid int) string {
	return fmt.Sprintf("kill %d, and the next dispatch starts a current one", pid)
}

// sentinelGone says whether a sentinel that does not run is missed.
func sentinelGone(p *Patient) []Result {
	if f := daemon.Failed(p.State); f != nil {
		return warning("see "+home(p.State.Join(daemon.LogName)), "%s; next try not before %s",
			strings.TrimPrefix(f.Error(), "sentinel: "), p.clock(f.Next))
	}
	if n := p.running(); n > 0 {
		return warning("vx sentinel, or the next dispatch starts one", "not running, so nobody watches %s", several(n, "running task"))
	}
	if p.unsent() {
		return warning("vx sentinel, or the next await starts one", "not running, so nobody sends what no await asks for")
	}
	return ok("not running, nothing to watch")
}

// unsent reports whether something waits here that only a sentinel brings to its commander.
func (p *Patient) unsent() bool {
	if p.Project == nil {
		return false
	}
	n, err := wake.Open(p.Project).Count()
	awaits, _, _ := awaiter.Look(p.State, p.Project)
	if n == 0 || err != nil || len(awaits) > 0 {
		return false
	}
	c, _ := p.Project.Config() // what cannot be read has a check of its own, and so have commanders
	commanders, _ := commander.Look(p.State, p.Project)
	return slices.ContainsFunc(commanders, func(e commander.Entry) bool { return e.Listens() || c.Nudge && e.Typable() })
}

// running is how many tasks of all projects run.
func (p *Patient) running() (n int) {
	for _, w := range p.work() {
		for _, t := range w.tasks {
			if t.Status == task.Running {
				n++
			}
		}
	}
	return n
}
