package hook

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"vx/internal/state"
)

// call is one call of the hook that got through the gate.
type call struct {
	input
	claude  bool   // by Claude Code itself: CLAUDE_* is to be trusted
	harness string // what a client that holds deliveries calls itself
	pane    string
	dir     *state.Dir
	project *state.Project
}

// gate decides whether there is anything to wait for, the cheapest question first: the hook is committed with the
// project, so it also runs in other people's turns and in those without a person. Nil means no.
func (p Program) gate(log *slog.Logger) *call {
	if !inHerdr() && !anyOptedIn(log) {
		return nil
	}
	c := &call{input: readInput(0), pane: os.Getenv("HERDR_PANE_ID")}
	c.claude = c.input.claude()
	if c.claude && headless() && os.Getenv("VX_AWAIT") != "1" {
		return nil
	}
	return p.admit(c, log)
}

// holderGate is gate for a client that holds deliveries. It says itself who it is, and stdin is for other things.
func (p Program) holderGate(h Holder, log *slog.Logger) *call {
	if !inHerdr() && !anyOptedIn(log) {
		return nil
	}
	in := input{Session: h.Session, Transcript: h.Transcript}
	in.clean()
	return p.admit(&call{input: in, harness: h.Harness, pane: os.Getenv("HERDR_PANE_ID")}, log)
}

func inHerdr() bool { return os.Getenv("HERDR_WORKSPACE_ID") != "" }

// admit finds the call's project, if it is one that waits.
func (p Program) admit(c *call, log *slog.Logger) *call {
	// Where there is nothing to wait for nothing is made; but for one who waits a directory that lost a part is made whole.
	var err error
	if c.dir, err = state.Open(); err != nil {
		log.Error("state directory", "err", err)
		return nil
	}
	if c.project = c.findProject(log); c.project == nil || c.dir.InCamp(c.project.Root) {
		return nil
	}
	if !inHerdr() && !optedIn(c.project, log) {
		return nil
	}
	if c.pane != "" && p.Soldier != nil && p.Soldier(c.project, c.pane, os.Getenv("HERDR_SOCKET_PATH")) {
		return nil
	}
	return c
}

// headless reports whether no person is at the client: there it may run the hook synchronously, and a hook that waits
// would hang it for an hour.
func headless() bool {
	if attended := os.Getenv("CLAUDE_CODE_SESSION_ATTENDED"); attended != "" {
		return attended == "0"
	}
	switch entry := os.Getenv("CLAUDE_CODE_ENTRYPOINT"); {
	case strings.HasPrefix(entry, "sdk-"), strings.HasPrefix(entry, "claude-code-github-action"):
		return true
	default:
		return entry == "mcp" || entry == "bench"
	}
}

// anyOptedIn reports whether any project that this call may turn out to be for waits outside of herdr's panes. It asks
// before stdin is read: most calls end here.
func anyOptedIn(log *slog.Logger) bool {
	dir, err := state.Look()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Error("state directory", "err", err)
		}
		return false
	}
	cwd, _ := os.Getwd()
	for _, at := range []string{os.Getenv("CLAUDE_PROJECT_DIR"), cwd} {
		if at == "" {
			continue
		}
		if root, _, err := dir.Resolve(at); err == nil && optedIn(dir.Project(root), log) {
			return true
		}
	}
	return false
}

func optedIn(p *state.Project, log *slog.Logger) bool {
	c, err := p.Config()
	if err != nil {
		log.Error("project", "err", err)
	}
	return err == nil && c.Await == "always"
}

// findProject is the project of the session. The working directory follows the model's cd, so it counts only where
// Claude does not say, and only inside a repository or a project that is known.
func (c *call) findProject(log *slog.Logger) *state.Project {
	if at := os.Getenv("CLAUDE_PROJECT_DIR"); c.claude && at != "" {
		root, _, err := c.dir.Resolve(at)
		if err != nil {
			log.Error("project", "err", err)
			return nil
		}
		return c.dir.Project(root)
	}
	cwd, err := os.Getwd()
	if err != nil {
		log.Error("project", "err", err)
		return nil
	}
	root, git, err := c.dir.Resolve(cwd)
	if err != nil {
		log.Error("project", "err", err)
		return nil
	}
	p := c.dir.Project(root)
	if git == "" {
		if config, err := p.Config(); err != nil || config.Path == "" {
			return nil
		}
	}
	return p
}
