//go:build !windows

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"vx/internal/state"
	"vx/internal/wake"
)

// place is embedded by the commands that work on one project.
type place struct {
	Project string `name:"project" placeholder:"DIR" type:"path" help:"The project: a directory in it. Default: where you are."`
}

// noProject is a working directory that belongs to no project.
type noProject struct{ dir, why string }

func (e *noProject) Error() string { return fmt.Sprintf("project: %s %s", e.dir, e.why) }
func (e *noProject) Hint() string  { return "name the project with --project DIR" }

// root finds the project that is meant. dir is nil where there is no state directory yet. A directory that was named
// may lie outside any repository; the working directory may not, so that a wake does not end where nobody waits.
func (p place) root(dir *state.Dir) (string, error) {
	at := p.Project
	if at == "" {
		var err error
		if at, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("project: %w", err)
		}
	}
	root, git, err := dir.Resolve(at)
	switch {
	case err != nil:
		return "", err
	case p.Project != "":
		return root, nil
	case git == "" && !known(dir, root):
		return "", &noProject{root, "is in no git repository, and vx does not know it"}
	case dir != nil && dir.InCamp(root):
		return "", &noProject{root, "is a camp: nobody waits there"}
	}
	return root, nil
}

func known(dir *state.Dir, root string) bool {
	if dir == nil {
		return false
	}
	c, err := dir.Project(root).Config()
	return err == nil && c.Path != ""
}

// queue is the project's queue.
func (p place) queue(dir *state.Dir) (*wake.Queue, error) {
	root, err := p.root(dir)
	if err != nil {
		return nil, err
	}
	return wake.Open(dir.Project(root)), nil
}

// look is the project's queue for a command that only reads: nil where there is no state directory, which is not made.
func (p place) look() (*wake.Queue, error) {
	dir, err := state.Look()
	if errors.Is(err, fs.ErrNotExist) {
		_, err := p.root(nil)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return p.queue(dir)
}

// printable is text of unknown origin as one line that is safe to print, and not of megabytes.
func printable(s string) string {
	if len(s) > maxPrintable {
		s = s[:maxPrintable] + "…"
	}
	return strings.Join(strings.Fields(wake.Clean(s)), " ")
}

// maxPrintable is in bytes; the longest that is not a stranger's is an error with several paths in it.
const maxPrintable = 16 << 10
