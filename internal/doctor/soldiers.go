package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"vx/internal/camp"
	"vx/internal/herdr"
	"vx/internal/state"
	"vx/internal/task"
)

// work is a project with its tasks.
type work struct {
	*state.Project
	tasks []task.Task
	bad   []error // one for each record that cannot be read
}

// work is that of all projects, the one that is looked at first. Projects that cannot be read have a check of their own.
func (p *Patient) work() []work {
	if p.State == nil {
		return nil
	}
	known, _ := p.State.Projects()
	var all []work
	for _, k := range known {
		w := work{Project: k}
		w.tasks, w.bad = task.Open(k).List()
		all = append(all, w)
	}
	slices.SortStableFunc(all, func(a, b work) int {
		switch p.Root {
		case a.Root:
			return -1
		case b.Root:
			return 1
		}
		return 0
	})
	return all
}

// of names the project, unless it is the one that is looked at.
func (w work) of(p *Patient) string {
	if w.Root == p.Root {
		return ""
	}
	return " of " + w.Root
}

// in is of, before what is said.
func (w work) in(p *Patient) string {
	if w.Root == p.Root {
		return ""
	}
	return w.Root + ": "
}

// strike is the command that ends one of the project's tasks.
func (w work) strike(p *Patient, t task.Task) string { return "vx strike " + t.ID + w.from(p) }

// from makes a command's project the one that is meant.
func (w work) from(p *Patient) string {
	if w.Root == p.Root {
		return ""
	}
	return " --project " + state.Quote(w.Root)
}

// tasks looks for records that cannot be read, and dispatches that were killed: nobody watches what they tell of.
func tasks(_ context.Context, p *Patient) []Result {
	var all []Result
	n := 0
	for _, w := range p.work() {
		n += len(w.tasks)
		for _, err := range w.bad {
			all = append(all, warning("mend it in "+home(w.Join("tasks"))+", or move it away", "%s%.300v", w.in(p), err)...)
		}
	}
	for _, w := range p.work() {
		for _, t := range w.tasks {
			if t.CutShort() {
				all = append(all, warning(w.strike(p, t), "task %s%s is pending since %s: its dispatch was cut short", t.ID, w.of(p), p.clock(t.UpdatedAt))...)
			}
		}
	}
	if len(all) == 0 && n > 0 {
		return ok("%d known", n)
	}
	return all
}

// camps looks for worktrees that no task needs, and tasks whose worktree is gone.
func camps(_ context.Context, p *Patient) []Result {
	var all []Result
	n := 0
	for _, w := range p.work() {
		for _, t := range w.tasks {
			if t.Camp == nil || t.Camp.Path == "" || t.Status.Over() {
				continue
			}
			n++
			if !t.Camp.MadeIn(w.Project, t.ID) {
				all = append(all, warning("mend "+home(w.Join("tasks", t.ID+".json"))+", or move it away",
					"task %s%s: its record says that its camp is %s on branch %q, and vx made none there", t.ID, w.of(p), home(t.Camp.Path), t.Camp.Branch)...)
				continue
			}
			if (camp.Camp{Path: t.Camp.Path}).Stands() {
				continue
			}
			fix := w.strike(p, t)
			if t.Status == task.Running {
				fix = "vx task show " + t.ID + w.from(p)
			}
			all = append(all, warning(fix, "task %s%s is %s, and its camp %s is gone", t.ID, w.of(p), t.Status, home(t.Camp.Path))...)
		}
		all = append(all, w.deserted(p)...)
	}
	if len(all) == 0 && n > 0 {
		return ok("%d, each with its task", n)
	}
	return all
}

// deserted names the camps of a project that no task needs. Git removes none in which work would be lost, and keeps the branch.
func (w work) deserted(p *Patient) (all []Result) {
	entries, err := os.ReadDir(w.Join("camps"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure("", "%v", err)
	}
	for _, e := range entries {
		path, record := w.Join("camps", e.Name()), w.Join("tasks", e.Name()+".json")
		why := "belongs to no task"
		i := slices.IndexFunc(w.tasks, func(t task.Task) bool { return t.ID == e.Name() || t.Camp != nil && t.Camp.Path == path })
		switch {
		case i >= 0 && w.tasks[i].Status == task.Struck:
			why = "is of task " + w.tasks[i].ID + ", which is struck"
		case i >= 0:
			continue
		default:
			if _, err := os.Lstat(record); err == nil { // one that cannot be read, which is said elsewhere
				continue
			}
		}
		fix := fmt.Sprintf("git -C %s worktree remove %s", state.Quote(w.Root), state.Quote(path))
		all = append(all, warning(fix, "%s%s %s", home(path), w.of(p), why)...)
	}
	return all
}

// herdrs asks every herdr that matters who it is: those in which tasks live, and that of this shell's own pane.
func herdrs(ctx context.Context, p *Patient) []Result {
	lives := map[string]int{}
	var sockets []string
	for _, w := range p.work() {
		for _, t := range w.tasks {
			if t.Herdr == nil || t.Herdr.Socket == "" || t.Status.Over() || t.Status == task.Interrupted {
				continue
			}
			path := filepath.Clean(t.Herdr.Socket)
			if lives[path]++; lives[path] == 1 {
				sockets = append(sockets, path)
			}
		}
	}
	if inHerdr() {
		own, err := herdr.SocketPath(os.Getenv)
		if err != nil {
			return warning("set it right, or unset it", "%v", err)
		}
		if own = filepath.Clean(own); lives[own] == 0 {
			sockets = append(sockets, own)
		}
	}
	var all []Result
	for _, path := range sockets {
		all = append(all, askHerdr(ctx, path, lives[path])...)
	}
	return all
}

// inHerdr reports whether this shell says that it is in a pane of herdr, or which herdr it means.
func inHerdr() bool {
	return slices.ContainsFunc(os.Environ(), func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "HERDR_") && value != ""
	})
}

func askHerdr(ctx context.Context, path string, n int) []Result {
	at := home(path)
	if n > 0 {
		at += ", where " + several(n, "task") + " live"
		if n == 1 {
			at += "s"
		}
	}
	client := herdr.Client{Socket: path}
	pong, err := client.Ping(ctx)
	switch {
	case errors.Is(err, herdr.ErrUnreachable):
		if _, none := exec.LookPath("herdr"); none != nil {
			return warning("install herdr, and start it", "none at %s, and none on PATH", at)
		}
		return warning("start herdr", "none at %s", at)
	case err != nil:
		return warning("restart that herdr", "none that answers at %s: %v", at, err)
	case pong.Old():
		return warning("update herdr", "%.40s at %s speaks protocol %d; vx needs %d", pong.Version, at, pong.Protocol, herdr.FloorProtocol)
	}
	return ok("%.40s, protocol %d, at %s", pong.Version, pong.Protocol, at)
}
