package commander

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"vx/internal/awaiter"
	"vx/internal/claude"
	"vx/internal/proc"
	"vx/internal/state"
)

// Self is the commander that runs this command, for Register, and the project whose queue its hook reads. The project is
// "" where Find finds nobody; the entry has no process where none of a harness is among this one's ancestors, as when a
// person types the command.
func Self(ctx context.Context, dir *state.Dir, here Here) (e Entry, project string, err error) {
	c, err := Find(ctx, dir, here)
	if c.Project == "" {
		return Entry{}, "", err
	}
	live, _, _ := awaiter.Look(dir, nil) // what could not be read Find has told
	e = who(proc.Ancestors(), live, os.Getenv)
	if e.Process.IsZero() {
		return Entry{}, c.Project, err
	}
	e.Pane, e.Socket = here.Pane, here.Socket
	e.Terminal = Terminal(ctx, here)
	return e, c.Project, err
}

// Terminal is herdr's id of what an agent's pane shows, which stays when the pane is moved; "" where it is not known.
func Terminal(ctx context.Context, here Here) string {
	if here.Pane == "" || here.Socket == "" {
		return ""
	}
	agent, err := inPane(ctx, here)
	if err != nil {
		return "" // which does no harm: the pane's own id is known
	}
	return agent.TerminalID
}

// who is the nearest process that a commander runs in.
func who(ancestors []proc.Info, live []awaiter.Entry, getenv func(string) string) Entry {
	var first proc.ID // that may be one, by what it passed on to its children
	for _, a := range ancestors {
		if s, ok := claude.SessionOf(a.ID); ok {
			return Entry{Harness: "claude", Session: s.SessionID, Process: a.ID}
		}
		for _, await := range live {
			if await.Client == a.ID && await.Harness != "" {
				return Entry{Harness: await.Harness, Session: await.Session, Process: a.ID}
			}
		}
		if between(a.Name) {
			continue
		}
		if harness := named(a); harness != "" {
			return Entry{Harness: harness, Process: a.ID}
		}
		if first.IsZero() {
			first = a.ID
		}
	}
	switch {
	case first.IsZero():
	case getenv("AI_AGENT") == "pi", getenv("PI_CODING_AGENT") == "true":
		return Entry{Harness: "pi", Process: first}
	case getenv("OPENCODE") == "1":
		return Entry{Harness: "opencode", Process: first}
	}
	return Entry{}
}

// named is the harness that a process is by its name, "" for none. Node's own threads have names, and a program of node's is
// named after its script.
func named(a proc.Info) string {
	for _, name := range append([]string{a.Name}, a.Args[:min(2, len(a.Args))]...) {
		switch strings.TrimSuffix(filepath.Base(name), ".exe") {
		case "claude":
			return "claude"
		case "pi", "pi-rpc":
			return "pi"
		case "opencode":
			return "opencode"
		}
		if strings.Contains(name, "/pi-coding-agent/") {
			return "pi"
		}
	}
	return ""
}

// Client is the process that a harness's own extension is run by: the nearest that is no shell, zero where there is none.
func Client() proc.ID {
	for _, a := range proc.Ancestors() {
		if !between(a.Name) {
			return a.ID
		}
	}
	return proc.ID{}
}

// between reports whether a process of that name only stands between a harness and what it runs.
func between(name string) bool {
	switch strings.TrimPrefix(name, "-") {
	case "sh", "dash", "bash", "rbash", "zsh", "ksh", "ksh93", "mksh", "ash", "busybox", "fish", "csh", "tcsh",
		"env", "make", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "xargs":
		return true
	}
	return false
}
