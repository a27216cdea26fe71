//go:build !windows

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"vx/install"
	"vx/internal/awaiter"
	"vx/internal/state"
)

// change is embedded by the commands that change settings: what they plan is shown, asked for and applied in one way.
type change struct {
	Yes    bool   `name:"yes" short:"y" help:"Do not ask."`
	DryRun bool   `name:"dry-run" help:"Show what would change, and change nothing. Exit 1 if anything would."`
	Scope  string `name:"scope" enum:"project,local,user," default:"" placeholder:"SCOPE" help:"Which settings: project, local (settings.local.json) or user (~/.claude)."`
}

// notChanged is a plan that was not applied because nobody said yes.
type notChanged struct{ verb string }

func (e *notChanged) Error() string { return e.verb + ": nothing was changed" }
func (e *notChanged) Hint() string  { return "the same with --yes goes ahead" }

// show prints what a plan would change and what there is to know about it.
func (c *change) show(std stdio, p *install.Plan) {
	if diff := p.Diff(c.DryRun); diff != "" {
		fmt.Fprint(std.out, diff)
	}
	if c.DryRun || !c.Yes {
		for _, line := range p.Summary() {
			fmt.Fprintf(std.out, "would %s\n", printable(line))
		}
	}
	for _, note := range p.Notes {
		fmt.Fprintf(std.out, "note: %s\n", printable(note))
	}
}

// agreed tells whether the plan that was shown is to be applied; the error ends the command if not.
func (c *change) agreed(ctx context.Context, std stdio, verb string) error {
	switch {
	case c.DryRun:
		return exitStatus(exitFailed)
	case c.Yes || ask(ctx, std, "Go ahead?"):
		return nil
	}
	return &notChanged{verb}
}

// apply applies a plan and names what was touched, also when it failed half-way.
func apply(ctx context.Context, std stdio, dir *state.Dir, root string, p *install.Plan) error {
	touched, err := p.Apply(ctx, dir)
	for _, t := range touched {
		fmt.Fprintf(std.out, "%s %s\n", t.How, printable(install.Shown(root, t.Path)))
	}
	return err
}

// existingState is the state directory, nil where there is none yet: a plan is made without making one.
func existingState() (*state.Dir, error) {
	dir, err := state.Look()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// choices are what init and upgrade can be asked for beside the place.
type choices struct {
	Await        string `name:"await" enum:"herdr,always," default:"" placeholder:"WHERE" help:"Where sessions wait, on this machine: in panes of herdr (the default), or always."`
	AfterFailure string `name:"after-failure" enum:"on,off," default:"" placeholder:"on|off" help:"Wake Claude Code also after a turn that died of an API error (off by default)."`
	Nudge        string `name:"nudge" enum:"on,off," default:"" placeholder:"on|off" help:"On this machine: type a wake into the herdr pane of an idle commander that nothing else reaches for 30 s (off by default)."`
}

func (c choices) choices() install.Choices {
	return install.Choices{Await: c.Await, AfterFailure: c.AfterFailure, Nudge: c.Nudge}
}

type initCommand struct {
	change
	choices
	Harness []string `name:"harness" sep:"," enum:"claude,pi,opencode" placeholder:"NAME" help:"Whose sessions are to be woken: claude (the default), pi, opencode, or several: claude,pi."`
	Project string   `name:"project" placeholder:"DIR" type:"path" help:"The project's directory. Default: the git root of where you are."`
}

func (i *initCommand) Run(ctx context.Context, std stdio) error {
	dir, err := existingState()
	if err != nil {
		return err
	}
	root, err := i.root(dir)
	if err != nil {
		return err
	}
	scope := cmp.Or(install.Scope(i.Scope), install.Project)
	c := i.choices.choices()
	for _, name := range i.Harness {
		c.Harnesses = append(c.Harnesses, install.Harness(name))
	}
	if c.AfterFailure != "" && len(c.Harnesses) > 0 && !slices.Contains(c.Harnesses, install.Claude) {
		return &usageError{"--after-failure is for Claude Code, which --harness leaves out", "vx init --harness claude,…"}
	}
	if err := i.offer(ctx, std, root, scope, &c); err != nil {
		return err
	}
	p, err := install.Init(dir, root, scope, c)
	if err != nil {
		return err
	}
	return i.carryOut(ctx, std, "init", root, p)
}

// offer asks at a terminal what was not said: whether the harnesses that are found here are meant too, and whether a turn
// that failed counts. Elsewhere it names the harnesses that it would have asked for.
func (i *initCommand) offer(ctx context.Context, std stdio, root string, scope install.Scope, c *install.Choices) error {
	asks := isTerminal(std.in) && !i.Yes && !i.DryRun
	if len(c.Harnesses) == 0 {
		c.Harnesses = []install.Harness{install.Claude}
		for _, found := range install.Found(root, scope) {
			switch {
			case !asks:
				fmt.Fprintf(std.out, "note: %s is in use here; to wake its sessions too: vx init --harness claude,%s\n", found.Name(), found)
			case ask(ctx, std, "Wake commanders in "+found.Name()+" too?"):
				c.Harnesses = append(c.Harnesses, found)
			}
		}
	}
	if asks && c.AfterFailure == "" && slices.Contains(c.Harnesses, install.Claude) && !install.AfterFailure(root, scope) &&
		ask(ctx, std, "Wake Claude Code also after a turn that died of an API error?") {
		c.AfterFailure = "on"
	}
	return ctx.Err()
}

// root is the project that is meant. A directory that is named is one by itself, also inside a repository; without one,
// the user's settings need no project.
func (i *initCommand) root(dir *state.Dir) (string, error) {
	if i.Project != "" {
		return standing(i.Project)
	}
	return optional(dir, place{}, i.Scope)
}

// optional is the project, or "" where there is none and the user's settings are meant. A directory that is named and has
// a hook of its own is one by itself, as for init, also where the state directory does not know it any more.
func optional(dir *state.Dir, p place, scope string) (string, error) {
	if p.Project != "" {
		if at, err := standing(p.Project); err == nil && install.Registered(at) {
			return at, nil
		}
	}
	root, err := p.root(dir)
	if _, none := errors.AsType[*noProject](err); none && scope == string(install.User) {
		return "", nil
	}
	return root, err
}

// carryOut shows, asks, applies, and says what comes of it.
func (c *change) carryOut(ctx context.Context, std stdio, verb, root string, p *install.Plan) error {
	c.show(std, p)
	if p.Empty() {
		for _, shown := range p.Registered() {
			fmt.Fprintf(std.out, "nothing to do: the hook is registered in %s\n", printable(shown))
		}
		for _, shown := range p.Standing() {
			fmt.Fprintf(std.out, "nothing to do: %s is current\n", printable(shown))
		}
		return nil
	}
	if err := c.agreed(ctx, std, verb); err != nil {
		return err
	}
	madeDir := p.MakesDir()
	dir, err := state.Open()
	if err != nil {
		return err
	}
	if err := apply(ctx, std, dir, root, p); err != nil {
		return err
	}
	if len(p.Edits) > 0 {
		for _, line := range install.Running(root, madeDir) {
			fmt.Fprintln(std.out, printable(line))
		}
	}
	for _, x := range p.Extensions {
		for _, line := range x.Loads() {
			fmt.Fprintln(std.out, printable(line))
		}
	}
	return whatComes(std, dir, root)
}

// whatComes says when a wake will arrive from now on.
func whatComes(std stdio, dir *state.Dir, root string) error {
	fmt.Fprintln(std.out, "A session waits from the end of its next turn on. What comes before its first turn is delivered at that turn's end.")
	if root == "" {
		return nil
	}
	project := dir.Project(root)
	c, err := project.Config()
	if err != nil {
		return err
	}
	if c.Await != "always" && os.Getenv("HERDR_WORKSPACE_ID") == "" {
		fmt.Fprintln(std.out, "Outside of a herdr pane nothing waits in this project until: vx init --await always")
	}
	live, _, err := awaiter.Look(dir, project)
	if err != nil {
		return err
	}
	for _, a := range live {
		fmt.Fprintf(std.out, "The await of process %d goes on until its session's next turn ends.\n", a.Process.PID)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		fmt.Fprintf(std.out, "%s is a project of its own: sessions in other directories have other wakes.\n", printable(install.Shown("", root)))
	}
	fmt.Fprintln(std.out, "To see that the hook works: vx doctor")
	return nil
}

type upgradeCommand struct {
	change
	choices
	place
}

func (u *upgradeCommand) Run(ctx context.Context, std stdio) error {
	dir, err := existingState()
	if err != nil {
		return err
	}
	root, err := optional(dir, u.place, u.Scope)
	if err != nil {
		return err
	}
	p, err := install.Upgrade(dir, root, install.Scope(u.Scope), u.choices.choices())
	if err != nil {
		return err
	}
	return u.carryOut(ctx, std, "upgrade", root, p)
}
