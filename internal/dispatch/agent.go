package dispatch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/herdr"
	"vx/internal/screen"
	"vx/internal/task"
	"vx/internal/wake"
)

// arguments are those of an agent's own program that carry out what the order says about it.
func arguments(t task.Task, name string) ([]string, error) {
	var args []string
	flag := func(value string, words ...string) {
		if value != "" {
			args = append(args, words...)
		}
	}
	switch t.Agent {
	case "claude":
		flag(name, "--name", name)
		flag(t.Model, "--model", t.Model)
		flag(t.Effort, "--effort", t.Effort)
	case "codex":
		flag(t.Model, "--model", t.Model)
		flag(t.Effort, "-c", "model_reasoning_effort="+t.Effort)
	case "pi":
		flag(t.Model, "--model", t.Model)
		flag(t.Effort, "--thinking", t.Effort)
	case "opencode":
		flag(t.Model, "--model", t.Model)
		if t.Effort != "" {
			return nil, &Refusal{"dispatch", "opencode is told its effort by its configuration alone", "leave --effort out"}
		}
	}
	for _, arg := range t.Args {
		if strings.ContainsAny(arg, "\x00\r\n") {
			return nil, &Refusal{"dispatch", "herdr passes no line ends on in an agent's arguments", "put them into the prompt"}
		}
	}
	return append(args, t.Args...), nil
}

// environment is what a soldier's pane has beside what herdr gives it. The server may have been started by a client of
// ours, whose variables would make the soldier take itself for a part of that one, and keep no record of its own: a pane
// can only set variables, so these are empty.
func environment(t task.Task) map[string]string {
	return map[string]string{
		"VX_TASK": t.ID,
		"VX_HOOK": "0", // a soldier waits for nobody's news

		"CLAUDECODE": "", "CLAUDE_CODE_CHILD_SESSION": "", "CLAUDE_CODE_ENTRYPOINT": "", "CLAUDE_CODE_SESSION_ID": "",
		"CLAUDE_PROJECT_DIR": "", "CLAUDE_PID": "",
	}
}

// post starts a task's agent in a new pane in its camp, and waits until it takes prompts. The record names the pane before
// the agent is in it, so that one whose dispatch is killed is found.
func (d *Desk) post(ctx context.Context, c *herdr.Client, t task.Task, back *undoing) (herdr.Agent, error) {
	name := agentOf(t)
	args, err := arguments(t, name)
	if err != nil {
		return herdr.Agent{}, err
	}
	pane, err := c.CreateTab(ctx, herdr.Tab{Workspace: d.workspace(ctx, c), Label: name, CWD: d.cwd(t), Env: environment(t)})
	if err != nil {
		return herdr.Agent{}, err
	}
	back.add(func(ctx context.Context) error {
		err := c.ClosePane(ctx, pane.PaneID)
		if herdr.Code(err) == herdr.PaneNotFound { // a person, or a strike, was quicker
			return nil
		}
		return err
	})
	if err := d.placed(ctx, t, c, pane, name, back); err != nil {
		return herdr.Agent{}, err
	}
	end := time.Now().Add(d.patience().start)
	for {
		_, err = c.Start(ctx, herdr.Start{Name: name, Kind: t.Agent, Pane: pane.PaneID, Args: args})
		if code := herdr.Code(err); code != "agent_pane_unavailable" && code != "agent_pane_busy" || time.Now().After(end) || !d.pause(ctx) {
			break // its shell had to begin first
		}
	}
	if err != nil {
		return herdr.Agent{}, err
	}
	return d.ready(ctx, c, name, pane.PaneID, t.Agent)
}

// placed writes down the pane that a task's agent is about to be started in.
func (d *Desk) placed(ctx context.Context, t task.Task, c *herdr.Client, pane herdr.Pane, name string, back *undoing) error {
	var was task.Task
	now, err := d.tasks().Update(ctx, t.ID, t.Status, func(t *task.Task) error {
		was = *t
		t.FormerPanes = nil
		t.Herdr = &task.Herdr{Socket: c.Socket, Workspace: pane.WorkspaceID, Tab: pane.TabID, Pane: pane.PaneID, TerminalID: pane.TerminalID, Agent: name}
		return nil
	})
	if err == nil && t.Status != task.Pending { // the record of a dispatch that fails is removed
		back.add(func(ctx context.Context) error {
			_, err := d.tasks().Restore(ctx, now, was)
			if _, ok := errors.AsType[*task.Conflict](err); ok { // struck meanwhile
				return nil
			}
			return err
		})
	}
	return err
}

// workspace is the commander's own, "" for the active one.
func (d *Desk) workspace(ctx context.Context, c *herdr.Client) string {
	pane := d.Getenv("HERDR_PANE_ID")
	if pane == "" || !sameFile(d.Getenv("HERDR_SOCKET_PATH"), c.Socket) {
		return ""
	}
	here, err := c.Current(ctx, pane) // which may have been moved
	if err != nil {
		return ""
	}
	return here.WorkspaceID
}

// cwd is where a soldier begins: what the project is in the repository, it is in the camp.
func (d *Desk) cwd(t task.Task) string {
	if rel, err := filepath.Rel(d.Git, d.Project.Root); err == nil && filepath.IsLocal(rel) {
		if at := filepath.Join(t.Camp.Path, rel); isDir(at) {
			return at
		}
	}
	return t.Camp.Path
}

// ready waits until the agent takes prompts. A dialog at its start is for a person, who is given a little longer.
func (d *Desk) ready(ctx context.Context, c *herdr.Client, name, pane, kind string) (herdr.Agent, error) {
	began, seen, dialog := time.Now(), time.Now(), ""
	for {
		a, err := c.Agent(ctx, name)
		now := time.Now()
		switch {
		case err == nil:
			seen = now
			shown := ""
			if a.Status == herdr.Blocked || a.Status.Rests() {
				shown = dialogOf(ctx, c, a)
			}
			if shown == "" && a.Kind != "" && !a.LaunchPending && a.InteractiveReady && a.Status.Rests() {
				return a, nil
			}
			if shown != "" && dialog == "" {
				d.say("%s waits at a dialog in pane %s: answer it there (%s)", kind, pane, shown)
			}
			dialog = shown
		case herdr.Code(err) == herdr.AgentNotFound && now.Sub(seen) >= d.patience().gone:
			return a, &Refusal{"start " + kind, "it ended at once: " + lastWords(ctx, c, pane), "see that " + kind + " runs in a shell of herdr's"}
		case ctx.Err() != nil:
			return a, ctx.Err()
		}
		switch age := now.Sub(began); {
		case dialog != "" && age >= d.patience().answer:
			return a, &Refusal{"start " + kind, "a dialog waits for a person: " + dialog, "answer it within the time next time, or start " + kind + " once in " + d.Project.Root + " and answer it there"}
		case dialog == "" && age >= d.patience().start:
			why := lastWords(ctx, c, pane)
			if err != nil {
				why += ", and nothing is heard of the agent: " + err.Error()
			}
			return a, &Refusal{"start " + kind, "it does not come to its prompt: " + why, "see that " + kind + " runs in a shell of herdr's"}
		case !d.pause(ctx):
			return a, ctx.Err()
		}
	}
}

func (d *Desk) pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d.patience().look):
		return true
	}
}

// dialogOf is the dialog that an agent waits at, "" for none: what is typed there would be its answer. Only an agent at
// rest is read, as a read of one that works scrolls it.
func dialogOf(ctx context.Context, c *herdr.Client, a herdr.Agent) string {
	if a.Status == herdr.Working {
		return ""
	}
	text, err := read(ctx, c, a.PaneID)
	if err == nil {
		if r := screen.Read(a.Kind, text, a.Title); r.State == screen.Blocked {
			return quoted(r.Evidence)
		}
	}
	if a.Status == herdr.Blocked {
		return quoted(lastLine(text))
	}
	return ""
}

// unsentIn is what stands in the prompt of an agent at rest and was not sent, "" where that is not known: what is typed now
// would be appended to it. Only Claude Code is known well enough.
func unsentIn(ctx context.Context, c *herdr.Client, a herdr.Agent) string {
	if !a.Status.Rests() {
		return ""
	}
	text, err := read(ctx, c, a.PaneID)
	if err != nil {
		return ""
	}
	typed, _ := screen.Typed(a.Kind, text)
	if typed == "" {
		return ""
	}
	// It may be no more than a suggestion. Of one who has scrolled back nothing is found, and then it is not known.
	styled, err := c.Styled(ctx, a.PaneID)
	if _, proven := screen.Typed(a.Kind, styled.Text); err != nil || !proven {
		return ""
	}
	return typed
}

// read is a pane's text, by the better source of those that leave it alone.
func read(ctx context.Context, c *herdr.Client, pane string) (string, error) {
	r, err := c.Read(ctx, pane, herdr.Detection, 0)
	if herdr.Code(err) != "" {
		r, err = c.Read(ctx, pane, herdr.Visible, 0)
	}
	return r.Text, err
}

// lastWords is the last line that a pane shows.
func lastWords(ctx context.Context, c *herdr.Client, pane string) string {
	text, err := read(ctx, c, pane)
	if err != nil {
		return "its pane cannot be read: " + err.Error()
	}
	return "the pane shows " + quoted(lastLine(text))
}

func lastLine(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		if strings.ContainsFunc(line, isWord) {
			last = line
		}
	}
	return last
}

// quoted is what a pane shows, as a part of a sentence.
func quoted(line string) string {
	line = strings.Join(strings.Fields(wake.Clean(line)), " ")
	if r := []rune(line); len(r) > 120 {
		line = string(r[:119]) + "…"
	}
	return fmt.Sprintf("%q", line)
}

// find is a task's agent as herdr has it now. A restart of herdr gives the terminal another id, a move the pane another
// one, and names may get lost; but one who is in the camp is the soldier.
func find(ctx context.Context, c *herdr.Client, t task.Task) (herdr.Agent, error) {
	all, err := c.Agents(ctx)
	if err != nil {
		return herdr.Agent{}, err
	}
	var found *herdr.Agent
	for _, a := range all {
		switch {
		case a.Kind == "" || t.Agent != "" && a.Kind != t.Agent:
		case a.TerminalID == t.Herdr.TerminalID:
			return a, nil
		case t.Herdr.Agent != "" && a.Name == t.Herdr.Agent, a.PaneID == t.Herdr.Pane && at(a, t):
			found = &a
		}
	}
	if found == nil {
		return herdr.Agent{}, errGone
	}
	return *found, nil
}

// errGone says that a task's agent is in no pane.
var errGone = errors.New("its agent is gone")

// at reports whether an agent works where the task's soldier does.
func at(a herdr.Agent, t task.Task) bool {
	where := t.Dir
	if t.Camp != nil {
		where = t.Camp.Path
	}
	return within(a.ForegroundCWD, where) || within(a.CWD, where)
}

func within(dir, where string) bool { return dir == where || strings.HasPrefix(dir, where+"/") }

// deliver types a text for an agent. An answer that leaves it open whether the text arrived is no error: it is not sent
// again, and unsure says why. From here on no interruption counts.
func deliver(ctx context.Context, c *herdr.Client, pane, text string) (unsure string, err error) {
	_, err = c.Prompt(context.WithoutCancel(ctx), pane, text)
	switch code := herdr.Code(err); {
	case err == nil:
		return "", nil
	case code == herdr.PromptStalled:
		return "herdr saw no reaction to the prompt", nil
	case code == "timeout", code == "internal_error", code == "server_unavailable",
		code == "" && !errors.Is(err, herdr.ErrUnreachable):
		return fmt.Sprintf("herdr did not say whether the prompt arrived (%v)", err), nil
	case code == herdr.AgentBlocked:
		return "", &Refusal{"prompt", "a dialog waits for a person in pane " + pane, "answer it there, then try again"}
	}
	return "", err
}

// unsureOf is the warning about a prompt that may not have arrived.
func unsureOf(t task.Task, why string) string {
	return fmt.Sprintf("%s; it was not sent again. The sentinel tells if nothing comes of it; to look: vx task show %s", why, Short(t.ID))
}
