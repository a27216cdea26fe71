package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vx/internal/camp"
	"vx/internal/herdr"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// Order is a task to be handed to a new soldier.
type Order struct {
	Kind   task.Kind // mission where it is ""
	Agent  string    // claude where it is ""
	Title  string    // the prompt's first line where it is ""
	Model  string
	Effort string
	Base   string // what the branch is made from; the branch that is checked out where it is ""
	Prompt string
	Args   []string // for the agent's own program
}

// Dispatch hands a task to a new soldier: a camp on a branch of its own, a pane beside the commander's, an agent in it that
// is told the task, and a sentinel that watches.
func (d *Desk) Dispatch(ctx context.Context, o Order) (r Result, err error) {
	t, head, c, err := d.plan(ctx, o)
	if err != nil {
		return r, err
	}
	commander := d.commander(ctx, &r)
	if commander.Project != "" && commander.Project != d.Project.Root {
		r.warn("your own project is %s: status, prompt, land and strike of this task are run in %s, or with --project %s",
			commander.Project, d.Project.Root, state.Quote(d.Project.Root))
	}
	var back undoing
	defer func() {
		if err != nil {
			err = back.all(ctx, err)
		}
	}()
	address(&t, commander)
	if t, err = d.enter(ctx, t, &back); err != nil {
		return r, err
	}
	a, err := d.post(ctx, c, t, &back)
	if err != nil {
		return r, err
	}
	t, err = d.tasks().Update(ctx, t.ID, task.Pending, func(t *task.Task) error {
		t.Status, t.PromptedAt, t.Head = task.Running, time.Now().UTC(), head
		t.Herdr = herdrOf(c, a)
		return nil
	})
	if err != nil {
		return r, err
	}
	unsure, err := deliver(ctx, c, a.PaneID, d.framed(t))
	if err != nil {
		return r, err
	}
	if unsure != "" {
		r.Warnings = append(r.Warnings, unsureOf(t, unsure))
	}
	d.watched(context.WithoutCancel(ctx), &r)
	r.Task = t
	r.Did = fmt.Sprintf("dispatched %s %s: %s in pane %s, on branch %s", t.Kind, Short(t.ID), t.Agent, a.PaneID, t.Camp.Branch)
	r.Next = "you are woken when its turn ends; until then: vx task show " + Short(t.ID)
	if t.CommanderProject == "" {
		r.Next = "vx status --watch shows when its turn ends; its news wakes the session that waits in this project"
	}
	return r, nil
}

// plan makes sure that the order can be carried out, and is the task that it makes.
func (d *Desk) plan(ctx context.Context, o Order) (t task.Task, head string, c *herdr.Client, err error) {
	refuse := func(why, fix string) error { return &Refusal{"dispatch", why, fix} }
	switch id := d.Getenv("VX_TASK"); {
	case id != "":
		return t, "", nil, refuse("this is the pane of a soldier, of task "+Short(id), "finish that one; whoever gave it to you dispatches")
	case d.Project.State().InCamp(d.Project.Root):
		return t, "", nil, refuse(d.Project.Root+" is a camp", "dispatch in the project itself")
	case d.Git == "":
		return t, "", nil, refuse(d.Project.Root+" is in no git repository, and a camp is made from one", "git init, and commit something")
	}
	t = task.Task{
		Kind: cmp.Or(o.Kind, wake.KindMission), Agent: cmp.Or(o.Agent, "claude"), Model: o.Model, Effort: o.Effort, Args: o.Args, Status: task.Pending,
	}
	if t.Prompt, err = spoken(o.Prompt); err != nil {
		return t, "", nil, err
	}
	t.Title = cmp.Or(titleOf(o.Title), titleOf(t.Prompt))
	t.Camp = &task.Camp{}
	if t.Camp.Base, head, err = camp.Base(ctx, d.Project.Root, o.Base); err != nil {
		return t, "", nil, err
	}
	if _, err = arguments(t, ""); err != nil {
		return t, "", nil, err
	}
	socket, err := herdr.SocketPath(d.Getenv)
	if err != nil {
		return t, "", nil, refuse(err.Error(), "set that right, or unset it")
	}
	c, err = connect(ctx, socket)
	return t, head, c, err
}

// enter writes the task down and makes its camp. The record names the camp before that is there.
func (d *Desk) enter(ctx context.Context, t task.Task, back *undoing) (task.Task, error) {
	for _, dir := range []string{"pauses", "reports"} {
		if err := d.Project.Ensure(); err != nil {
			return t, err
		}
		if err := os.MkdirAll(d.Project.Join(dir), 0o700); err != nil {
			return t, fmt.Errorf("dispatch: %w", err)
		}
	}
	made := *t.Camp
	t.Camp = nil
	t, err := d.tasks().Add(ctx, t)
	if err != nil {
		return t, err
	}
	id := t.ID
	back.add(func(ctx context.Context) error { return d.tasks().Remove(ctx, id) })
	t, err = d.tasks().Update(ctx, id, task.Pending, func(t *task.Task) error {
		made.Path, made.Branch = d.Project.Join("camps", id), branchOf(*t)
		t.Camp = &made
		if t.Kind == wake.KindScout {
			t.ReportPath = d.Project.Join("reports", id+".md")
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	c := d.campOf(t)
	if err := c.Make(ctx); err != nil {
		return t, err
	}
	back.add(func(ctx context.Context) error {
		_, err := c.Remove(ctx, true)
		return err
	})
	return t, nil
}

// herdrOf is where an agent runs, and how far its state has moved.
func herdrOf(c *herdr.Client, a herdr.Agent) *task.Herdr {
	return &task.Herdr{
		Socket: c.Socket, Workspace: a.WorkspaceID, Tab: a.TabID, Pane: a.PaneID,
		Agent: a.Name, TerminalID: a.TerminalID, StateChangeSeq: a.Seq,
	}
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

func sameFile(a, b string) bool {
	if a != "" && filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
