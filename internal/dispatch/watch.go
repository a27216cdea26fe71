package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vx/internal/awaiter"
	"vx/internal/claude"
	"vx/internal/herdr"
	"vx/internal/proc"
	"vx/internal/task"
	"vx/internal/wake"
)

// Target is an agent that runs already, and can be watched.
type Target struct {
	Target  string `json:"target"`            // what names it to vx watch: a pane, or a process
	Agent   string `json:"agent"`             // claude, codex, …
	Name    string `json:"name,omitempty"`    // in herdr, or of the session
	Session string `json:"session,omitempty"` // Claude Code's id of it
	Status  string `json:"status"`
	Dir     string `json:"dir,omitempty"`
	Task    string `json:"task,omitempty"` // that it is watched as already

	agent   *herdr.Agent
	session *claude.Session
	own     bool // it is the one that asks
}

// Targets are the agents that can be watched: those in herdr's panes, and the sessions of Claude Code in any terminal that
// keep a record of what they do. A session in one of the panes is there twice. The one that asks is left out. With an error
// they are those without herdr's.
func (d *Desk) Targets(ctx context.Context) ([]Target, error) {
	all, err := d.running(ctx)
	return slices.DeleteFunc(all, func(x Target) bool { return x.own }), err
}

// running are all agents, the one that asks among them.
func (d *Desk) running(ctx context.Context) ([]Target, error) {
	all := []Target{}
	agents, c, err := d.agents(ctx)
	tasks := d.everybodys()
	for _, a := range agents {
		if a.Kind == "" {
			continue
		}
		t := Target{Target: a.PaneID, Agent: a.Kind, Name: a.Name, Status: string(a.Status), Dir: cmp.Or(a.ForegroundCWD, a.CWD), agent: &a}
		t.own = a.PaneID == d.Getenv("HERDR_PANE_ID") && sameFile(d.Getenv("HERDR_SOCKET_PATH"), c.Socket)
		t.Task = watchedAs(tasks, t)
		all = append(all, t)
	}
	for _, s := range claude.Sessions() {
		if s.Status == "" {
			continue // it keeps to itself what it does
		}
		t := Target{Target: strconv.Itoa(s.Process.PID), Agent: "claude", Name: s.Name, Session: s.SessionID, Status: s.Status, Dir: s.Dir, session: &s, own: own(s)}
		t.Task = watchedAs(tasks, t)
		all = append(all, t)
	}
	return all, err
}

// agents are herdr's, none where no herdr answers.
func (d *Desk) agents(ctx context.Context) ([]herdr.Agent, *herdr.Client, error) {
	socket, err := herdr.SocketPath(d.Getenv)
	if err != nil {
		return nil, nil, nil
	}
	c := &herdr.Client{Socket: socket}
	agents, err := c.Agents(ctx)
	if errors.Is(err, herdr.ErrUnreachable) {
		return nil, c, nil
	}
	return agents, c, err
}

// own reports whether a session is the one that this command runs in.
func own(s claude.Session) bool {
	for _, a := range proc.Ancestors() {
		if a.ID == s.Process {
			return true
		}
	}
	return false
}

// everybodys are the tasks of all projects: a soldier of another one's is not to be watched a second time.
func (d *Desk) everybodys() []task.Task {
	all, _ := d.tasks().List()
	projects, _ := d.Project.State().Projects()
	for _, p := range projects {
		if p.Root != d.Project.Root {
			tasks, _ := task.Open(p).List()
			all = append(all, tasks...)
		}
	}
	return all
}

// watchedAs is the task that an agent works on already, "" for none.
func watchedAs(tasks []task.Task, x Target) string {
	for _, t := range tasks {
		switch {
		case t.Status.Over() || t.Status == task.Interrupted:
		case x.agent != nil && t.Herdr != nil && t.Herdr.TerminalID == x.agent.TerminalID,
			x.agent != nil && t.Camp != nil && t.Camp.Path != "" && at(*x.agent, t), // also after a restart of herdr
			x.session != nil && t.Session != nil && t.Session.PID == x.session.Process.PID && t.Session.Start == x.session.Process.Start,
			x.session != nil && t.Camp != nil && t.Camp.Path != "" && within(x.Dir, t.Camp.Path):
			return t.ID
		}
	}
	return ""
}

// Watch makes a task of what an agent is doing already. It has no camp: a commit on the branch that it works on ends it,
// or the end of its turn, where its own record tells of that.
func (d *Desk) Watch(ctx context.Context, target, title string, kind task.Kind) (r Result, err error) {
	x, err := d.target(ctx, target)
	if err != nil {
		return r, err
	}
	t := task.Task{
		Kind: cmp.Or(kind, wake.KindMission), Title: cmp.Or(titleOf(title), titleOf(x.Name), x.Agent+" in "+filepath.Base(x.Dir)),
		Status: task.Running, PromptedAt: time.Now().UTC(), Dir: x.Dir, Agent: x.Agent, Head: headIn(ctx, x.Dir),
	}
	where := ""
	if x.agent != nil {
		_, c, _ := d.agents(ctx)
		t.Herdr = herdrOf(c, *x.agent)
		where = "in pane " + x.Target
	} else {
		t.Session = &task.Session{PID: x.session.Process.PID, Start: x.session.Process.Start}
		if dir, err := claude.ConfigDir(); err == nil {
			t.Session.Record = filepath.Join(dir, "sessions", x.Target+".json")
		}
		where = "of process " + x.Target
	}
	address(&t, d.commander(ctx, &r))
	if r.Task, err = d.tasks().Add(ctx, t); err != nil {
		return r, err
	}
	d.silence(r.Task, &r)
	d.watched(context.WithoutCancel(ctx), &r)
	r.Did = fmt.Sprintf("watching %s %s: %s %s", t.Kind, Short(r.Task.ID), t.Agent, where)
	r.Next = "you are woken when its turn ends; until then: vx task show " + Short(r.Task.ID)
	return r, nil
}

// silence ends the awaits of a session that is a soldier from now on: the news of its own end would wake it, and not its
// commander. Its hook begins no others.
func (d *Desk) silence(t task.Task, r *Result) {
	live, _, err := awaiter.Look(d.Project.State(), nil)
	var errs []error
	for _, e := range live {
		if t.Session != nil && e.Client == (proc.ID{PID: t.Session.PID, Start: t.Session.Start}) ||
			t.Herdr != nil && e.Pane == t.Herdr.Pane && (e.Socket == "" || sameFile(e.Socket, t.Herdr.Socket)) {
			if err := e.Terminate(); !errors.Is(err, proc.ErrGone) {
				errs = append(errs, err)
			}
			r.warn("it waits for no news itself as long as it is watched; vx strike %s ends that", Short(t.ID))
		}
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		r.warn("it may be woken by its own news: %v", err)
	}
}

// target is the agent that is meant: by its pane, its name, its process, its session.
func (d *Desk) target(ctx context.Context, target string) (Target, error) {
	refuse := func(why, fix string) (Target, error) { return Target{}, &Refusal{"watch", why, fix} }
	all, err := d.running(ctx)
	var found []Target
	for _, x := range all {
		if x.Target == target || x.Name == target || x.Session == target || len(target) >= 8 && strings.HasPrefix(x.Session, target) {
			found = append(found, x)
		}
	}
	// Both are the same where a session in a pane has one name: herdr's agent can be prompted too.
	if len(found) == 2 && found[0].agent != nil && found[1].session != nil {
		found = found[:1]
	}
	switch {
	case len(found) == 0 && err != nil:
		return Target{}, err
	case len(found) == 0:
		return refuse(fmt.Sprintf("no agent and no session goes by %q", target), "vx watch lists those that can be watched")
	case len(found) > 1:
		return refuse(fmt.Sprintf("%q may be %s or %s", target, found[0].Target, found[1].Target), "vx watch "+found[0].Target)
	case found[0].own:
		return refuse(target+" is the session that asks", "none is woken by its own end: run vx watch in the session that is to be woken")
	case found[0].Task != "":
		return refuse(target+" is watched already, as task "+Short(found[0].Task), "vx status --all shows it with its project")
	}
	return found[0], nil
}
