// Package install puts the Stop hook into Claude Code's settings files, mends it and takes it out: as a [Plan], which is
// data, so that it can be shown before it is applied, and applied by the very code that planned it. What the bytes of a file
// become is settings' business; this package finds the files, writes them, and remembers how to undo it.
//
// It asks nobody and prints nothing. A crash leaves each settings file as it was or as planned, never in between. The undo
// is written before the file that it belongs to: an undo without its change is never used, as it fits no bytes, and what is
// removed is only a file, or a folder, that holds nothing else.
package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/claude"
)

// Scope is which of Claude Code's settings files is meant.
type Scope string

// The scopes. All apply to a session in the project.
const (
	Project Scope = "project" // .claude/settings.json, committed and shared
	Local   Scope = "local"   // .claude/settings.local.json, this checkout's
	User    Scope = "user"    // the user's, for every project
)

// A File is one settings file.
type File struct {
	Scope Scope
	Path  string // absolute
	Shown string // as a person knows it: from the project's root, or from ~
}

// Files are the settings files that apply in a project, in the order of the scopes; of no project (root is "") the user's
// alone. A file that is two scopes' at once (HOME is a project, or a symlink leads there) is there once, as the wider one's.
func Files(root string) ([]File, error) {
	all, err := scopes(root)
	if err != nil {
		return nil, err
	}
	var files []File
	for i, f := range all {
		if wider(all, i) < 0 {
			files = append(files, f)
		}
	}
	return files, nil
}

// scopes are all scopes' files.
func scopes(root string) ([]File, error) {
	var files []File
	if root != "" {
		for _, f := range []File{
			{Project, "", ".claude/settings.json"},
			{Local, "", ".claude/settings.local.json"},
		} {
			f.Path = filepath.Join(root, f.Shown)
			files = append(files, f)
		}
	}
	dir, err := claude.ConfigDir()
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("user's settings: %w", err)
	}
	path := filepath.Join(dir, "settings.json")
	return append(files, File{User, path, fromHome(path)}), nil
}

// wider is the index of the file that the i-th is too, for more projects or more people; -1 if there is none.
func wider(files []File, i int) int {
	for _, scope := range []Scope{User, Project, Local} {
		for j, f := range files {
			if f.Scope == scope && resolve(f.Path) == resolve(files[i].Path) {
				if i == j {
					return -1
				}
				return j
			}
		}
	}
	return -1
}

// resolve follows what symlinks there are on a path; the rest of it need not exist.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolve(dir), filepath.Base(path))
	}
	return path
}

// Shown writes a path as a person knows it: from the project's root, or from ~.
func Shown(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && root != "" && filepath.IsLocal(rel) {
		return rel
	}
	return fromHome(path)
}

// fromHome writes a path with ~ where that is shorter.
func fromHome(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && err == nil && home != "" {
		return "~/" + rest
	}
	return path
}

// read reads a settings file; exists is false if there is none. Whatever else keeps it from being read is an error: a file
// that cannot be read is not to be overwritten.
func (f File) read() (data []byte, exists bool, err error) {
	fi, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		switch {
		case broken(f.Path):
			err = errors.New("a symlink to a file that is not there")
		case broken(filepath.Dir(f.Path)):
			err = errors.New("its folder is a symlink to one that is not there")
		default:
			return nil, false, nil
		}
		return nil, false, f.error(err)
	case err != nil:
		return nil, false, f.error(err)
	case !fi.Mode().IsRegular():
		// Reading a FIFO would wait for ever, and a device is no place for settings.
		return nil, false, f.error(errors.New("not a regular file"))
	}
	data, err = os.ReadFile(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, f.error(err)
	}
	return data, true, nil
}

// broken tells whether a path is a symlink that leads nowhere.
func broken(path string) bool {
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// stamp is when the file was written last; the zero time if that is not known.
func (f File) stamp() time.Time {
	fi, err := os.Stat(f.Path)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

// error names the file as a person knows it, instead of the path that the system names.
func (f File) error(err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == f.Path {
		err = pe.Err
	}
	return fmt.Errorf("settings %s: %w", f.Shown, err)
}
