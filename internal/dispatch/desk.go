// Package dispatch carries out a commander's orders: it starts a soldier in a camp and a pane of its own, gives it more to
// do, answers it, ends it, and brings its work home. It is not for finding out what a soldier does or whether it has
// finished, which is the sentinel's part, and prints nothing.
//
// An order whose step fails takes back the steps before. What a crash in the middle leaves is named by the task's record,
// which is written first: a task that stays pending, with or without its camp, which a strike removes with any tab of the
// task's name; a task that runs and was never prompted, which the sentinel tells of. A task is saved only over the status
// that the order has seen, so a land or a strike in between wins.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"vx/internal/camp"
	"vx/internal/commander"
	"vx/internal/herdr"
	"vx/internal/state"
	"vx/internal/task"
)

// Desk is where the orders of one project are given.
type Desk struct {
	Project *state.Project
	Git     string // the top of the project's repository, "" where there is none
	Getenv  func(string) string
	// Sentinel sees that one runs.
	Sentinel func(context.Context, *state.Dir) error
	// Progress is told what is waited for; nil is nobody.
	Progress func(string)

	times times // zero: as below
}

// times are how long a starting agent is waited for.
type times struct {
	look   time.Duration // between two looks
	start  time.Duration // for an agent to take prompts
	answer time.Duration // instead, where a dialog waits for a person
	gone   time.Duration // how long it may be in no list
}

func (d *Desk) patience() times {
	if d.times != (times{}) {
		return d.times
	}
	// Together below the two minutes that a model's own shell gives a command as a rule.
	return times{look: 200 * time.Millisecond, start: 45 * time.Second, answer: 90 * time.Second, gone: 5 * time.Second}
}

// Result is what an order came to.
type Result struct {
	Did      string    `json:"did"`
	Next     string    `json:"next"` // which command comes next
	Warnings []string  `json:"warnings,omitempty"`
	Task     task.Task `json:"task"`
}

func (r *Result) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// A Refusal says why an order was not carried out, and which one would be.
type Refusal struct{ What, Why, Fix string }

func (e *Refusal) Error() string { return e.What + ": " + e.Why }

// Hint is the command, or the sentence, that goes on from here.
func (e *Refusal) Hint() string { return e.Fix }

// Short is as much of an id as people need.
func Short(id string) string { return id[:min(8, len(id))] }

func about(t task.Task) string { return "task " + Short(t.ID) }

// wrong is the refusal of an order that does not go with the task's status.
func wrong(t task.Task, why string) *Refusal {
	id := Short(t.ID)
	fix := "vx task show " + id
	switch t.Status {
	case task.Pending:
		fix = "its dispatch is under way; if that was cut short: vx strike " + id
	case task.Running:
		fix = "you are woken when its turn ends; until then: vx task show " + id
	case task.Blocked:
		fix = "vx decide " + id + " ANSWER, or vx decide " + id + " --dismiss"
	case task.Interrupted:
		fix = "vx redispatch " + id
	case task.Done, task.Unconfirmed, task.Shipped:
		fix = "vx prompt " + id + " TEXT gives it more to do; vx land " + id + " merges it"
	case task.Landed:
		fix = "vx dispatch begins another task; vx strike " + id + " removes this one's camp"
	case task.Struck:
		fix = "vx dispatch begins another task"
	}
	return &Refusal{about(t), fmt.Sprintf("it is %s, and %s", t.Status, why), fix}
}

func (d *Desk) tasks() *task.Store { return task.Open(d.Project) }

func (d *Desk) say(format string, args ...any) {
	if d.Progress != nil {
		d.Progress(fmt.Sprintf(format, args...))
	}
}

// connect is a client of the herdr behind a socket, if one answers there that is new enough.
func connect(ctx context.Context, socket string) (*herdr.Client, error) {
	client := &herdr.Client{Socket: socket}
	pong, err := client.Ping(ctx)
	switch {
	case errors.Is(err, herdr.ErrUnreachable):
		return nil, &Refusal{"herdr", "none answers at " + socket, "start herdr; a Claude Code session elsewhere can be watched: vx watch"}
	case err != nil:
		return nil, &Refusal{"herdr", fmt.Sprintf("the one at %s does not answer as it should: %v", socket, err), "look at it, or restart its server; vx doctor tells whether it answers again"}
	case pong.Old():
		return nil, &Refusal{"herdr", fmt.Sprintf("version %s speaks protocol %d, and vx needs %d (herdr 0.7.5)", pong.Version, pong.Protocol, herdr.FloorProtocol), "upgrade herdr and restart its server"}
	}
	return client, nil
}

// campOf is a task's camp as the package camp knows it.
func (d *Desk) campOf(t task.Task) camp.Camp {
	return camp.Camp{Repo: d.Project.Root, Path: t.Camp.Path, Branch: t.Camp.Branch, Base: t.Camp.Base}
}

// commander is who gives the order, and is known from now on to the project that its wakes go to. Where that cannot be found
// out, the news of the task stays in its own project.
func (d *Desk) commander(ctx context.Context, r *Result) commander.Commander {
	here := commander.Here{Pane: d.Getenv("HERDR_PANE_ID"), Socket: d.Getenv("HERDR_SOCKET_PATH")}
	self, project, err := commander.Self(ctx, d.Project.State(), here)
	if project == "" {
		if err != nil {
			r.warn("who gives this order could not be found out, so its news stays in this project: %v", err)
		}
		return commander.Commander{}
	}
	if !self.Process.IsZero() {
		if err := commander.Register(d.Project.State().Project(project), self); err != nil {
			r.warn("%v; its news is told all the same", err)
		}
	}
	return commander.Commander{Project: project, Pane: here.Pane}
}

// address makes whoever gave the last order the one who is woken. An order from outside of herdr changes nothing.
func address(t *task.Task, c commander.Commander) {
	if c.Project != "" {
		t.CommanderProject, t.CommanderPane = c.Project, c.Pane
	}
}

// watched sees that a sentinel runs. Without one the order stands, and its end is told late.
func (d *Desk) watched(ctx context.Context, r *Result) {
	if err := d.Sentinel(ctx, d.Project.State()); err != nil {
		r.warn("nobody watches this task until a sentinel runs (vx sentinel): %v", err)
	}
}

// unpause takes a soldier's pause file away: whoever gives it an order has woken it.
func (d *Desk) unpause(id string) { os.Remove(d.Project.Join("pauses", id)) }

// undoing are the steps of an order, and how each is taken back.
type undoing []func(context.Context) error

func (u *undoing) add(step func(context.Context) error) { *u = append(*u, step) }

// undoWithin is how long taking back may last: git may have a large tree to remove.
const undoWithin = 2 * time.Minute

// all takes back what was done, the last first, also after an interruption, and adds to the error what it could not.
func (u undoing) all(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	var failed []error
	for i := len(u) - 1; i >= 0; i-- {
		failed = append(failed, u[i](ctx))
	}
	if left := errors.Join(failed...); left != nil {
		return fmt.Errorf("%w; and taking back what was done: %w", err, left)
	}
	return err
}
