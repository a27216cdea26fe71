//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"vx/internal/commander"
	"vx/internal/daemon"
	"vx/internal/opencode"
	"vx/internal/state"
	"vx/internal/task"
)

type commanderList struct {
	JSON bool `name:"json" help:"Print JSON."`
	place
}

func (l *commanderList) Run(std stdio) error {
	live := []commander.Entry{}
	dir, err := state.Look()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	root, err := l.root(dir)
	if err != nil {
		return err
	}
	var bad error
	if dir != nil {
		var known []commander.Entry
		known, bad = commander.Live(dir, dir.Project(root))
		live = append(live, known...)
	}
	if l.JSON {
		return errors.Join(std.json(live), bad)
	}
	if len(live) == 0 {
		fmt.Fprintln(std.out, "no live commander is known here: one is from its first await or vx dispatch on")
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, e := range live {
		pane := ""
		if e.Pane != "" {
			pane = "pane " + short(printable(e.Pane), 20)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\tsince %s\t%s\n", named(e), pane, waits(e), clock(e.Since), short(printable(e.Session), 40))
	}
	return errors.Join(table.Flush(), bad)
}

// named is what a commander is called: by its harness and its process.
func named(e commander.Entry) string {
	name := "a client"
	if e.Harness != "" {
		name = short(printable(e.Harness), 20)
	}
	if e.Process.PID != 0 {
		name += fmt.Sprintf(" %d", e.Process.PID)
	}
	return name
}

func waits(e commander.Entry) string {
	if e.Waits {
		return "waits"
	}
	return "does not wait"
}

type commanderRegister struct {
	Harness   string `name:"harness" required:"" enum:"claude,pi,opencode" placeholder:"H" help:"What it runs in: claude, pi or opencode."`
	Session   string `name:"session" placeholder:"ID" help:"The session's id."`
	URL       string `name:"url" placeholder:"URL" help:"Where it answers, if it listens."`
	Version   string `name:"server-version" placeholder:"V" help:"The version of what answers there."`
	Directory string `name:"directory" placeholder:"D" help:"The directory that the session is in."`
	JSON      bool   `name:"json" help:"Print JSON."`
	place
}

func (commanderRegister) Help() string {
	return "Run by a harness's extension for its own session, which is registered until its process has ended. Where " +
		"nobody waits, as in a camp, nothing is registered."
}

// registration is what became of one.
type registration struct {
	Registered bool             `json:"registered"`
	Why        string           `json:"why,omitempty"` // it was not
	Project    string           `json:"project,omitempty"`
	Commander  *commander.Entry `json:"commander,omitempty"`
}

func (r *commanderRegister) Run(ctx context.Context, std stdio) error {
	project, why, err := r.commanded()
	if err != nil {
		return err
	}
	if why != "" {
		return r.say(std, registration{Why: why}, "not registered: %s", printable(why))
	}
	e := commander.Entry{
		Harness: r.Harness, Session: r.Session, Process: commander.Client(),
		Pane: os.Getenv("HERDR_PANE_ID"), Socket: os.Getenv("HERDR_SOCKET_PATH"),
	}
	if e.Process.IsZero() {
		return errors.New("commander: the process that runs this cannot be found")
	}
	e.Terminal = commander.Terminal(ctx, commander.Here{Pane: e.Pane, Socket: e.Socket})
	if err := r.reachable(); err != nil {
		return fmt.Errorf("register commander: %w", err)
	}
	if r.Harness == "opencode" || r.URL != "" {
		e.Server = &commander.Server{URL: r.URL, Version: r.Version, Directory: r.Directory}
	}
	if err := commander.Register(project, e); err != nil {
		return err
	}
	// Nobody else may be there who starts one, and without it nothing comes where no await asks.
	if c, err := project.Config(); e.Listens() || err == nil && c.Nudge {
		if err := daemon.Ensure(project.State()); err != nil {
			fmt.Fprintf(std.errw(), "vx: %s\n", printable(err.Error()))
		}
	}
	return r.say(std, registration{Registered: true, Project: project.Root, Commander: &e},
		"registered %s as a commander of %s", named(e), printable(project.Root))
}

// reachable refuses a server that could never be told anything.
func (r *commanderRegister) reachable() error {
	if r.URL == "" && r.Version == "" {
		return nil
	}
	r.Version = strings.TrimPrefix(r.Version, "v")
	if err := (opencode.Server{URL: r.URL, Version: r.Version}).Valid(); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	if !opencode.IsSession(r.Session) {
		return fmt.Errorf("%.40q is no session's id", r.Session)
	}
	return nil
}

func (r *commanderRegister) say(std stdio, what registration, format string, args ...any) error {
	if r.JSON {
		return std.json(what)
	}
	_, err := fmt.Fprintf(std.out, format+"\n", args...)
	return err
}

// commanded is the project that whoever runs this may be a commander of. Why says that it is none, by what the hook goes by
// too: nothing is made then.
func (p place) commanded() (project *state.Project, why string, err error) {
	if os.Getenv("VX_HOOK") == "0" {
		return nil, "VX_HOOK is 0", nil
	}
	if os.Getenv("VX_TASK") != "" {
		return nil, "it is a soldier", nil
	}
	dir, err := state.Look()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	root, err := p.root(dir)
	if none, ok := errors.AsType[*noProject](err); ok {
		return nil, none.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	inHerdr := os.Getenv("HERDR_WORKSPACE_ID") != ""
	if dir == nil && inHerdr {
		dir, err = state.Open()
	}
	if dir == nil || err != nil {
		return nil, "it is in no pane of herdr", err
	}
	if dir.InCamp(root) {
		return nil, "it is in a camp", nil
	}
	project = dir.Project(root)
	c, err := project.Config()
	switch pane := os.Getenv("HERDR_PANE_ID"); {
	case err != nil:
		return nil, "", err
	case !inHerdr && c.Await != "always":
		return nil, "it is in no pane of herdr; vx init --await always makes others wait too", nil
	case pane != "" && task.Soldier(project, pane, os.Getenv("HERDR_SOCKET_PATH")):
		return nil, "it is a soldier", nil
	}
	return project, "", nil
}

type commanderLeave struct{ place }

func (commanderLeave) Help() string {
	return "Run by a harness's extension when its session ends. One that did not is forgotten when its process has ended."
}

func (l *commanderLeave) Run() error {
	dir, err := state.Look()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := l.root(dir)
	if _, none := errors.AsType[*noProject](err); none {
		return nil
	}
	if err != nil {
		return err
	}
	return commander.Leave(dir.Project(root), commander.Client())
}
