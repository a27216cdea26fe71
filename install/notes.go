package install

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"vx/internal/claude"
	"vx/settings"
)

// aboutFiles says what in the settings files that apply keeps the hook from doing what it should, or doubles it.
func (p *Plan) aboutFiles(a actions) []string {
	var notes []string
	for _, f := range p.others {
		r, err := f.report()
		switch {
		case err != nil && a.stop != remove:
			notes = append(notes, err.Error())
		case len(r.Own) == 0:
		case a.stop == remove:
			notes = append(notes, fmt.Sprintf("the hook is registered in %s too: vx uninstall --scope %s", f.Shown, f.Scope))
		case r.Right():
			notes = append(notes, fmt.Sprintf("the hook is registered in %s too; Claude Code runs it once", f.Shown))
		default:
			notes = append(notes, fmt.Sprintf("%s registers an earlier or damaged form, which runs beside this one: vx upgrade --scope %s", f.Shown, f.Scope))
		}
		if a.stop != remove {
			notes = append(notes, aboutHooks(f, r)...)
		}
	}
	for _, f := range p.in {
		if r, err := f.report(); err == nil && a.stop != remove {
			notes = append(notes, aboutHooks(f, r)...)
		}
	}
	return notes
}

// aboutLinks says which other file an edit changes, or leaves as it is, that is thought to be the same.
func aboutLinks(f File) []string {
	fi, err := os.Lstat(f.Path)
	if err != nil {
		return nil
	}
	if real := resolve(f.Path); fi.Mode()&fs.ModeSymlink != 0 {
		return []string{fmt.Sprintf("%s is a symlink: the file that changes is %s", f.Shown, fromHome(real))}
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return []string{f.Shown + " has another name, a hard link, under which the old content stays"}
	}
	return nil
}

// mostProblems is how many entries are named that make the client drop hooks.
const mostProblems = 3

func aboutHooks(f File, r settings.Report) []string {
	var notes []string
	if r.DisableAllHooks != nil && *r.DisableAllHooks {
		notes = append(notes, f.Shown+" has disableAllHooks: no hook runs")
	}
	named := 0
	for _, problem := range r.Problems {
		if mended(r, problem.Path) {
			continue
		}
		if named == mostProblems {
			notes = append(notes, f.Shown+" has more of this: vx doctor")
			break
		}
		notes = append(notes, fmt.Sprintf("%s: %s: %s", f.Shown, problem, problem.Drops))
		named++
	}
	return notes
}

// mended tells whether a problem is in an entry of ours, which the plan puts right.
func mended(r settings.Report, path string) bool {
	for _, l := range r.Own {
		if l.Path == path {
			return true
		}
	}
	return false
}

// Running says whether the clients that run in a project take up a hook that was registered just now. madeDir says that
// the folder of the settings file was made for it; that is said even where no client is seen, as not each one has a record.
func Running(root string, madeDir bool) []string {
	var open, blind []string
	for _, s := range claude.Sessions() {
		if !within(root, s.Dir) {
			continue
		}
		name := fmt.Sprintf("process %d", s.Process.PID)
		if madeDir && !seesNewFolder(s.Version) {
			blind = append(blind, name)
		} else {
			open = append(open, name)
		}
	}
	var notes []string
	if len(open) > 0 {
		notes = append(notes, fmt.Sprintf("Claude Code runs in this project (%s): it takes the hook up within about a second", list(open)))
	}
	if len(blind) > 0 {
		notes = append(notes, fmt.Sprintf("Claude Code runs in this project (%s) in a version that may miss a .claude folder made after its start: start it again", list(blind)))
	}
	if madeDir && len(notes) == 0 {
		notes = append(notes, "A Claude Code that runs here already may miss the .claude folder, as it was made after its start (2.1.197 does): start it again")
	}
	return notes
}

// within tells whether a folder is a project's root or below it. The root is resolved already.
func within(root, dir string) bool {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

func list(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return strings.Join(names, ", ")
}

// seesNewFolder tells whether a client's version takes up a .claude folder that was made after its start: 2.1.332 was seen
// to, 2.1.197 not to.
func seesNewFolder(version string) bool {
	seen := [3]int{2, 1, 332}
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < seen[i] {
			return false
		}
		if n > seen[i] {
			return true
		}
	}
	return true
}
