//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"vx/internal/awaiter"
	"vx/internal/state"
	"vx/internal/wake"
)

type projectList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// listedProject is a project as the list has it.
type listedProject struct {
	Path       string    `json:"path"`
	Gone       bool      `json:"gone"` // nothing stands there any more
	Dir        string    `json:"dir"`  // where its state is
	Waiting    int       `json:"waiting"`
	Awaits     int       `json:"awaits"`
	MutedUntil time.Time `json:"muted_until,omitzero"`
}

func (l *projectList) Run(std stdio) error {
	dir, err := state.Look()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := []listedProject{}
	var bad []error
	if dir != nil {
		var projects []*state.Project
		projects, bad = dir.Projects()
		for _, p := range projects {
			listed, err := look(dir, p)
			bad = append(bad, err)
			all = append(all, listed)
		}
	}
	if l.JSON {
		return errors.Join(std.json(all), errors.Join(bad...))
	}
	if len(all) == 0 {
		fmt.Fprintln(std.out, "no projects yet; to begin: vx init")
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, p := range all {
		fmt.Fprintf(table, "%d waiting\t%s\t%s\n", p.Waiting, awaitCount(p.Awaits), printable(p.Path)+p.remarks())
	}
	return errors.Join(table.Flush(), errors.Join(bad...))
}

func look(dir *state.Dir, p *state.Project) (listedProject, error) {
	l := listedProject{Path: p.Root, Gone: p.Gone(), Dir: p.Dir}
	var errs [3]error
	l.Waiting, errs[0] = wake.Open(p).Count()
	live, err := awaiter.List(dir, p)
	l.Awaits, errs[1] = len(live), err
	c, err := p.Config()
	if errs[2] = err; c.Muted(time.Now()) {
		l.MutedUntil = c.MutedUntil
	}
	return l, errors.Join(errs[:]...)
}

// remarks is what is unusual about a project.
func (l listedProject) remarks() string {
	s := ""
	if l.Gone {
		s = " (gone)"
	}
	if !l.MutedUntil.IsZero() {
		s += " (muted " + untilWhen(l.MutedUntil) + ")"
	}
	return s
}

func awaitCount(n int) string {
	switch n {
	case 0:
		return "no await"
	case 1:
		return "1 await"
	}
	return fmt.Sprintf("%d awaits", n)
}

type projectMove struct {
	Old string `arg:"" name:"old" help:"Where the project was; it need not be there any more."`
	New string `arg:"" name:"new" help:"Where it is now."`
}

func (m *projectMove) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	old, err := dir.Find(m.Old)
	if err != nil {
		return err
	}
	root, err := standing(m.New)
	if err != nil {
		return err
	}
	moved, err := wake.Move(ctx, old, root)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "the state of %s belongs to %s now\n", printable(moved.From), printable(moved.To))
	if moved.Merged {
		fmt.Fprintf(std.out, "it was merged into what was kept there; wakes that came along: %d\n", moved.Wakes)
	}
	all, _ := dir.Projects()
	for _, p := range all {
		if rest, ok := strings.CutPrefix(p.Root, moved.From+"/"); ok {
			fmt.Fprintf(std.out, "there is another one below it: vx project move %s %s\n",
				state.Quote(p.Root), state.Quote(filepath.Join(moved.To, rest)))
		}
	}
	return nil
}

// standing resolves a directory that must be there.
func standing(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("project: %w", err)
	}
	if fi, err := os.Stat(abs); err != nil || !fi.IsDir() {
		return "", fmt.Errorf("project %s: not a directory", abs)
	}
	return abs, nil
}

type projectForget struct {
	Path string `arg:"" name:"path" help:"Where the project is, or was."`
	Yes  bool   `name:"yes" help:"Do not ask, and forget also what waits."`
}

func (f *projectForget) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	p, err := dir.Find(f.Path)
	if err != nil {
		return err
	}
	q := wake.Open(p)
	h, err := q.Holdings()
	if err != nil {
		return err
	}
	for _, line := range holding(p, h) {
		fmt.Fprintln(std.out, line)
	}
	if !f.Yes && h.Empty() && !ask(ctx, std, "Remove it?") {
		return &kept{p.Root}
	}
	if err := q.Forget(ctx, f.Yes); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "removed %s\n", printable(p.Dir))
	return err
}

// kept is what was not removed because nobody said so.
type kept struct{ root string }

func (k *kept) Error() string { return fmt.Sprintf("project %s: nothing was removed", k.root) }
func (k *kept) Hint() string  { return "vx project forget --yes " + state.Quote(k.root) }

// holding names what is to be removed.
func holding(p *state.Project, h wake.Holdings) []string {
	lines := []string{fmt.Sprintf("%s (%s) is kept for %s:", printable(p.Dir), size(h.Bytes), printable(p.Root))}
	for _, part := range []struct {
		n    int
		what string
	}{
		{h.Waiting, "wakes that wait"}, {h.Unsettled, "wakes on their way"}, {h.Bad, "wakes in quarantine"},
		{h.Tasks, "tasks"}, {h.Camps, "camps"}, {h.Messages, "messages in the inbox"},
		{h.Runs, "runs of loops"},
	} {
		if part.n > 0 {
			lines = append(lines, fmt.Sprintf("  %s: %d", part.what, part.n))
		}
	}
	if h.Undo {
		lines = append(lines, "  how vx uninstall gives back the settings' very bytes; the hook itself stays where it is")
	}
	for _, name := range h.Unknown {
		lines = append(lines, "  "+printable(name)+", which this vx does not know")
	}
	return append(lines, "  its history, and this machine's choices for it")
}
