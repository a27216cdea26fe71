package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vx/install"
	"vx/internal/claude"
)

// file is a settings file and what it says.
type file struct {
	install.File
	there   bool
	err     error     // not readable, or not understood
	own     []ownHook // our entries
	drops   []drop    // what makes the client leave out hooks
	disable *bool     // disableAllHooks, if the file says anything of it
}

// ownHook is an entry of ours.
type ownHook struct {
	path    string
	command string
	wrong   []string
}

// drop is something that the client will not take.
type drop struct{ path, what, costs string }

func inspect(f install.File) file {
	r, there, err := f.Inspect()
	seen := file{File: f, there: there, err: err, disable: r.DisableAllHooks}
	for _, l := range r.Own {
		seen.own = append(seen.own, ownHook{l.Path, l.Command, l.Wrong})
	}
	for _, p := range r.Problems {
		seen.drops = append(seen.drops, drop{p.Path, p.String(), p.Drops})
	}
	return seen
}

// upgrade is the command that mends our entry in the file.
func (f file) upgrade() string {
	if f.Scope == install.User {
		return "vx upgrade --scope user"
	}
	return "vx upgrade"
}

// registered looks for our entry in every file that applies.
func registered(_ context.Context, p *Patient) []Result {
	if p.fileErr != nil {
		return failure("set HOME", "%v", p.fileErr)
	}
	var all []Result
	var names []string
	fix := "vx init"
	for _, f := range p.files {
		names = append(names, f.Shown)
		if f.err != nil {
			fix = "mend " + f.Shown + ", then run vx init"
		}
		switch {
		case len(f.own) > 1:
			all = append(all, warning(f.upgrade(), "registered %d times in %s", len(f.own), f.Shown)...)
		case len(f.own) == 1 && len(f.own[0].wrong) > 0:
			all = append(all, warning(f.upgrade(), "registered in %s, but %s", f.Shown, strings.Join(f.own[0].wrong, ", "))...)
		case len(f.own) == 1:
			all = append(all, ok("registered in %s", f.Shown)...)
		}
	}
	if p.Root == "" && len(all) == 0 {
		return info("not registered in %s, and this is no project", names[0])
	}
	if len(all) == 0 && p.hasExtension() {
		return info("not registered in %s: another harness is woken here", list(names, "or"))
	}
	if len(all) == 0 {
		return warning(fix, "not registered in %s", list(names, "or"))
	}
	return append(all, p.duplicates()...)
}

// duplicates says what the client makes of entries in several files: it runs the very same command once, and two forms of
// it beside each other.
func (p *Patient) duplicates() []Result {
	var names, commands []string
	fix := ""
	for _, f := range p.files {
		if len(f.own) == 0 {
			continue
		}
		names = append(names, f.Shown)
		for _, o := range f.own {
			commands = append(commands, o.command)
			if len(o.wrong) > 0 {
				fix = f.upgrade()
			}
		}
	}
	slices.Sort(commands)
	switch commands = slices.Compact(commands); {
	case len(names) < 2:
		return nil
	case len(commands) > 1:
		return warning(fix, "%s register it in %d forms, which run beside each other", list(names, "and"), len(commands))
	}
	return info("%s hold the same command, which Claude Code runs once", list(names, "and"))
}

// mostDrops is how many entries of a file are named that the client will not take.
const mostDrops = 5

// readable looks for what makes the client leave out a file, or hooks, whoever wrote them.
func readable(_ context.Context, p *Patient) []Result {
	var all []Result
	there := 0
	for _, f := range p.files {
		if f.there {
			there++
		}
		if f.err != nil {
			// The error names the file, and says what the client makes of it.
			all = append(all, warning("mend "+f.Shown+" by hand", "%v", f.err)...)
		}
		for i, d := range f.drops {
			if i == mostDrops {
				all = append(all, warning("mend "+f.Shown+" by hand", "%s: %d more of this kind", f.Shown, len(f.drops)-i)...)
				break
			}
			fix := "mend " + f.Shown + " by hand"
			if slices.ContainsFunc(f.own, func(o ownHook) bool { return o.path == d.path }) {
				fix = f.upgrade()
			}
			all = append(all, warning(fix, "%s: %s; %s", f.Shown, d.what, d.costs)...)
		}
	}
	switch {
	case len(all) > 0:
		return all
	case there == 0:
		return info("there are none")
	}
	return ok("nothing in %s that Claude Code leaves out", several(there, "file"))
}

// enabled looks for disableAllHooks. The file that is closest to the project decides; a file that is not JSON says
// nothing.
func enabled(_ context.Context, p *Patient) []Result {
	precedence := []install.Scope{install.Local, install.Project, install.User}
	var decides *file
	var overruled []string
	for _, scope := range precedence {
		for i, f := range p.files {
			switch {
			case f.Scope != scope || f.disable == nil:
			case decides == nil:
				decides = &p.files[i]
			case *f.disable && !*decides.disable:
				overruled = append(overruled, f.Shown)
			}
		}
	}
	switch {
	case decides == nil:
		return ok("not disabled")
	case *decides.disable && decides.Scope == install.User:
		return warning(`take it out, or set "disableAllHooks": false in .claude/settings.json`, "%s has disableAllHooks, so no hook runs", decides.Shown)
	case *decides.disable:
		return warning("take it out", "%s has disableAllHooks, so no hook runs", decides.Shown)
	case len(overruled) > 0:
		return ok("not disabled: disableAllHooks in %s is overruled by false in %s", list(overruled, "and"), decides.Shown)
	}
	return ok("not disabled")
}

// trusted asks the client's own record whether it runs hooks in this folder without asking first.
func trusted(_ context.Context, p *Patient) []Result {
	if p.Root == "" {
		return nil
	}
	switch yes, known := claude.Trusted(p.Root); {
	case !known:
		return info("Claude Code's record says nothing of it: it asks at the first start")
	case !yes:
		return warning("run claude there once and accept", "not trusted yet, and Claude Code runs no hooks before it is")
	}
	return ok("trusted by Claude Code")
}

// list puts names into a sentence: "a, b or c".
func list(names []string, word string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return fmt.Sprintf("%s %s %s", strings.Join(names[:last], ", "), word, names[last])
}
