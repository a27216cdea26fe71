// Package commander knows who is to be woken: which project the session in a pane of herdr gets its wakes from, and which
// commanders a project has, those that were registered and those that wait. It wakes nobody.
//
// A registration is one file, named after the process, written as a whole under a lock: a crash leaves what was there before
// or what was to be, and at most a half-written file that nobody reads and the next writer removes. It ends with its
// process, by pid and start time, and never by its age.
package commander

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"vx/internal/awaiter"
	"vx/internal/herdr"
	"vx/internal/state"
)

// Commander is a session that gives orders. The zero value is nobody whom a wake could be addressed to.
type Commander struct {
	Project string // the root whose queue its hook reads
	Pane    string
}

// Here is the pane that a process is in, by its environment.
type Here struct {
	Pane   string // "" outside of herdr
	Socket string // "" where it is not known
}

// Find is the commander in a pane. Its project is that of the pane's live await, which is the very queue that its hook
// reads; before its first turn has ended there is none, and then it is the project that the agent in the pane works in.
// Nobody is no error: outside of herdr's panes, in one without an agent, and for an agent that works in no project.
func Find(ctx context.Context, dir *state.Dir, here Here) (Commander, error) {
	if here.Pane == "" {
		return Commander{}, nil
	}
	project, err := waiting(dir, here)
	if project == "" && here.Socket != "" {
		var asked error
		project, asked = working(ctx, dir, here)
		err = errors.Join(err, asked)
	}
	if project == "" || err == nil && dir.InCamp(project) {
		return Commander{}, err
	}
	return Commander{Project: project, Pane: here.Pane}, nil
}

// waiting is the project of the pane's await, "" if none lives: of several, that of the youngest.
func waiting(dir *state.Dir, here Here) (project string, err error) {
	live, _, err := awaiter.Look(dir, nil)
	if err != nil {
		err = fmt.Errorf("commander: %w", err)
	}
	for _, e := range live { // the oldest first
		if e.Pane == here.Pane && sameSocket(e.Socket, here.Socket) {
			project = e.Project
		}
	}
	return project, err
}

// working is the project that the pane's agent works in, "" if there is no agent or none in a project.
func working(ctx context.Context, dir *state.Dir, here Here) (string, error) {
	agent, err := inPane(ctx, here)
	if err != nil {
		return "", fmt.Errorf("commander: %w", err)
	}
	// The client itself stays where it was started; the shell that it was started from may not.
	for _, at := range []string{agent.ForegroundCWD, agent.CWD} {
		if at == "" {
			continue
		}
		root, git, err := dir.Resolve(at)
		if err != nil {
			continue // gone since
		}
		if c, err := dir.Project(root).Config(); git != "" || err == nil && c.Path != "" {
			return root, nil
		}
	}
	return "", nil
}

// inPane is the agent in a pane, the zero one where there is none.
func inPane(ctx context.Context, here Here) (herdr.Agent, error) {
	client := herdr.Client{Socket: here.Socket}
	agent, err := client.Agent(ctx, here.Pane)
	if herdr.Code(err) == herdr.AgentNotFound {
		// A pane that was moved keeps its old id in the environment of what runs in it, and as the name of an agent that
		// id is nobody's.
		var pane herdr.Pane
		if pane, err = client.Current(ctx, here.Pane); err == nil {
			agent, err = client.Agent(ctx, pane.PaneID)
		}
	}
	if code := herdr.Code(err); code == herdr.AgentNotFound || code == herdr.PaneNotFound {
		return herdr.Agent{}, nil
	}
	return agent, err
}

// sameSocket reports whether two paths lead to the same socket. One that is not known may be any.
func sameSocket(a, b string) bool {
	if a == "" || b == "" || filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
