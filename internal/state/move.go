package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vx/internal/atomicfile"
)

// Find is the known project at a path, which need not exist any more: a project that was moved or removed is found under
// its old name. The error is an *Unknown where there is none.
func (d *Dir) Find(path string) (*Project, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("project: %w", err)
	}
	all, _ := d.Projects()
	for _, root := range []string{resolveGone(abs), abs} {
		for _, p := range all {
			if p.Root == root {
				return p, nil
			}
		}
	}
	return nil, &Unknown{abs}
}

// Unknown is a path of which no state is kept.
type Unknown struct{ Path string }

func (u *Unknown) Error() string { return fmt.Sprintf("project %s: not one that vx knows", u.Path) }

// Hint is the command that shows the others.
func (u *Unknown) Hint() string { return "vx project list" }

// resolveGone resolves as much of a path as exists: its parents may be links although it is gone itself.
func resolveGone(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolveGone(parent), filepath.Base(path))
}

// Gone reports whether nothing stands at the project's path any more. What cannot be looked at is not gone.
func (p *Project) Gone() bool {
	_, err := os.Lstat(p.Root)
	return errors.Is(err, fs.ErrNotExist)
}

// Rename gives the project's state to the project at root, which must have none: fs.ErrExist where it has. The directory
// takes its new name first, then project.json the new path. A crash between the two leaves a directory that Ensure
// refuses, with the command that was interrupted; Rename again completes it.
func (p *Project) Rename(root string) (*Project, error) {
	to := p.dir.Project(root)
	if p.Dir != to.Dir {
		// A directory is never renamed over one that holds anything.
		if err := os.Rename(p.Dir, to.Dir); err != nil {
			return nil, fmt.Errorf("project %s: %w", p.Root, err)
		}
		if err := atomicfile.SyncDir(filepath.Dir(to.Dir)); err != nil {
			return nil, fmt.Errorf("project %s: %w", p.Root, err)
		}
	}
	if err := to.Update(func(*Config) {}); err != nil {
		return nil, err
	}
	return to, nil
}

// Adopt takes over the choices that another project's project.json holds and this one's does not, also those that this
// build does not know.
func (p *Project) Adopt(other *Project) error {
	data, err := os.ReadFile(other.Join("project.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	theirs := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(data, &theirs)
	}
	if err != nil {
		return unusable(other.Join("project.json"), err)
	}
	return p.edit(func(mine map[string]json.RawMessage) error {
		for name, value := range theirs {
			if _, ok := mine[name]; !ok {
				mine[name] = value
			}
		}
		return nil
	})
}
