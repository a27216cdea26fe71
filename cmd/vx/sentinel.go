//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"vx/hook"
	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/daemon"
	"vx/internal/forum"
	"vx/internal/proc"
	"vx/internal/sentinel"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// theHook is what runs inside a harness's hook, with what it asks of tasks and the sentinel that it sees to.
func theHook() hook.Program {
	return hook.Program{
		Clock: proc.SinceBoot, Awake: proc.Awake, News: news, Soldier: task.Soldier, Watched: task.Watched,
		Sentinel: daemon.Ensure, SentinelLock: daemon.LockPath, Outlived: outlived,
	}
}

// outlived keeps a commander known whose await has come to its end, so that its wakes are seen to wait, and may be typed
// into its pane where its user wants that.
func outlived(_ *state.Dir, p *state.Project, a awaiter.Record) error {
	if a.Harness == "" || a.Client.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return commander.Register(p, commander.Entry{
		Harness: a.Harness, Session: a.Session, Process: a.Client, Pane: a.Pane, Socket: a.Socket,
		Terminal: commander.Terminal(ctx, commander.Here{Pane: a.Pane, Socket: a.Socket}),
	})
}

// news asks of a project's wakes whoever knows what they are about.
func news(dir *state.Dir, p *state.Project) func(*wake.Wake) (string, error) {
	tasks, messages := task.News(dir, p), forum.News(dir, p)
	return func(w *wake.Wake) (string, error) {
		if w.Kind == wake.KindForum {
			return messages(w)
		}
		return tasks(w)
	}
}

// sentinelAwait and sentinelDrain are in the grammar for help and completion: the hook's own spelling never gets here.
type (
	sentinelAwait struct {
		Hold       bool   `name:"hold" help:"Print each delivery as a line of JSON, and hold it until stdin says ack TOKEN or nack TOKEN."`
		Harness    string `name:"harness" enum:"pi,opencode," default:"" placeholder:"H" help:"What the client is: pi or opencode."`
		Session    string `name:"session" placeholder:"ID" help:"The client's session."`
		Transcript string `name:"transcript" placeholder:"FILE" help:"The file that the client keeps the session in."`
	}
	sentinelDrain struct{}
)

func (sentinelAwait) Help() string {
	return "Without --hold it is what Claude Code's Stop hook runs. With it, it is what the extensions for Pi and OpenCode run: " +
		"a delivery is one line, {\"token\",\"text\"}, and ends with ack (the model has the text) or nack (it cannot have it now); " +
		"the end of stdin means that the client is gone, and then the wakes go back."
}

func (s sentinelAwait) Run() error {
	if s.Hold {
		return exitStatus(theHook().Hold(hook.Holder{Harness: s.Harness, Session: s.Session, Transcript: s.Transcript}))
	}
	if s.Harness+s.Session+s.Transcript != "" {
		return &usageError{"sentinel await: --harness, --session and --transcript are for --hold", "vx sentinel await --help"}
	}
	return exitStatus(theHook().Main("await"))
}

func (sentinelDrain) Run() error { return exitStatus(theHook().Main("drain")) }

// fromHook reports whether a command line may be that of a hook, whose stderr is for deliveries alone: all of `vx sentinel`
// but what people ask for.
func fromHook(args []string) bool {
	return len(args) > 1 && args[0] == "sentinel" && args[1] != "run" && args[1] != "stop" && args[1] != "status"
}

// sentinelRun is the sentinel itself.
type sentinelRun struct{}

func (sentinelRun) Run(ctx context.Context, std stdio, dir *state.Dir) (err error) {
	version := thisBuild().Version
	held, err := daemon.Claim(dir, version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	file, err := daemon.OpenLog(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	var out io.Writer = file
	if isTerminal(std.err) {
		out = io.MultiWriter(file, std.err)
	}
	log := slog.New(slog.NewTextHandler(out, nil)).With("pid", held.Info().PID)
	log.Info("sentinel starts", "version", version, "path", held.Info().Build.Path)
	return sentinel.Run(ctx, sentinel.Config{Dir: dir, Log: log, News: news, Over: held.Over})
}

type sentinelStop struct{}

func (sentinelStop) Run(ctx context.Context, std stdio) error {
	dir, err := state.Look()
	if err == nil {
		var info daemon.Info
		if info, err = daemon.Stop(ctx, dir); err == nil {
			_, err = fmt.Fprintf(std.out, "stopped the sentinel of process %d; the next await or dispatch starts one again\n", info.PID)
			return err
		}
	}
	if errors.Is(err, daemon.ErrNone) || errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintln(std.out, "no sentinel runs")
	}
	return err
}

type sentinelStatus struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// sentinelReport is what `vx sentinel status` tells.
type sentinelReport struct {
	Running  bool `json:"running"`
	Starting bool `json:"starting"` // it has not said yet who it is
	*daemon.Info
	Replaced bool     `json:"replaced"` // its path leads to another program: it is about to end
	Missing  bool     `json:"missing"`  // its path leads nowhere
	Failing  *failing `json:"failing,omitempty"`
}

// failing is a sentinel that does not start.
type failing struct {
	Times int    `json:"times"`
	Next  string `json:"next"` // not before
	Said  string `json:"said"`
}

func (s *sentinelStatus) Run(std stdio) error {
	r, err := lookAtSentinel()
	if err != nil {
		return err
	}
	if s.JSON {
		return std.json(r)
	}
	switch {
	case r.Starting:
		_, err = fmt.Fprintln(std.out, "running, and has not said yet who it is")
	case r.Running:
		_, err = fmt.Fprintf(std.out, "running: process %d, since %s, vx %s, %s%s\n",
			r.PID, clock(r.Since), printable(r.Build.Version), printable(r.Build.Path), r.fate())
	case r.Failing != nil:
		_, err = fmt.Fprintf(std.out, "not running, and does not start; tried in a row: %d, next not before %s: %s\n",
			r.Failing.Times, r.Failing.Next, printable(r.Failing.Said))
	default:
		_, err = fmt.Fprintln(std.out, "not running")
	}
	return err
}

func lookAtSentinel() (sentinelReport, error) {
	var r sentinelReport
	dir, err := state.Look()
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	info, running, err := daemon.Look(dir)
	if err != nil {
		return r, err
	}
	r.Running = running
	switch f := daemon.Failed(dir); {
	case running && info.PID == 0:
		r.Starting = true
	case running:
		r.Info, r.Replaced, r.Missing = &info, info.Replaced(), info.Missing()
	case f != nil:
		r.Failing = &failing{f.Times, clock(f.Next), f.Said}
	}
	return r, nil
}

// fate is what is about to become of a sentinel.
func (r sentinelReport) fate() string {
	switch {
	case r.Replaced:
		return ", which is another program now: it ends after its sweep"
	case r.Missing:
		return ", which is gone"
	}
	return ""
}
