// Package state is the directory that vx keeps everything in, ~/.vexillum or $VEXILLUM_HOME, and the projects in it.
// Directories are 0700 and files 0600; a directory that another user owns or can write, that has a layout of an unknown
// version, or that is some other program's, is named in an error and left alone. A crash in the middle of making it
// leaves directories that the next Open completes.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"vx/internal/atomicfile"
)

// Layout is the version of the directory's layout, kept in state.json.
const Layout = 1

// Error is a state directory that vx will not use.
type Error struct {
	Path string // what is wrong
	Why  string
	Fix  string // what the user can do
}

func (e *Error) Error() string { return fmt.Sprintf("state: %s: %s", e.Path, e.Why) }

// Hint is the command, or the sentence, that mends it.
func (e *Error) Hint() string { return e.Fix }

// Dir is a state directory that was found in order.
type Dir struct{ path string }

// Path is the directory's own path, resolved.
func (d *Dir) Path() string { return d.path }

// Join is a path in the directory.
func (d *Dir) Join(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Awaiters is where live awaits are registered.
func (d *Dir) Awaiters() string { return d.Join("sentinel-awaiters") }

// Path is where the state directory is or would be: $VEXILLUM_HOME, else ~/.vexillum.
func Path() (string, error) {
	if home := os.Getenv("VEXILLUM_HOME"); home != "" {
		if !filepath.IsAbs(home) {
			return "", &Error{home, "VEXILLUM_HOME is not an absolute path", "export VEXILLUM_HOME=$HOME/.vexillum"}
		}
		return filepath.Clean(home), nil
	}
	home, err := os.UserHomeDir()
	if err == nil && !filepath.IsAbs(home) {
		return "", &Error{home, "HOME is not an absolute path", "set HOME, or VEXILLUM_HOME to an absolute path"}
	}
	if err != nil {
		return "", &Error{"~/.vexillum", "HOME is not set", "set HOME, or VEXILLUM_HOME to an absolute path"}
	}
	return filepath.Join(home, ".vexillum"), nil
}

// Open checks the state directory and makes what is missing of it. The error is an *Error where the directory is not
// to be used.
func Open() (*Dir, error) {
	path, err := Path()
	if err != nil {
		return nil, err
	}
	return OpenAt(path)
}

// OpenAt is Open for a state directory other than the user's own: a scratch one.
func OpenAt(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, unusable(path, err)
	}
	d, err := LookAt(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(d.Join("state.json")); errors.Is(err, fs.ErrNotExist) {
		data := fmt.Appendf(nil, "{\"layout\": %d}\n", Layout)
		// Of two that make it at once the first wins, with the same content.
		if err := atomicfile.Create(d.Join("state.json"), data, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, unusable(d.path, err)
		}
	}
	for _, dir := range []string{d.Awaiters(), d.Join("projects")} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, unusable(dir, err)
		}
		if err := checkDir(dir); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Look is Open without writing: fs.ErrNotExist where there is no state directory yet.
func Look() (*Dir, error) {
	path, err := Path()
	if err != nil {
		return nil, err
	}
	return LookAt(path)
}

// LookAt is Look at another directory than the user's own.
func LookAt(path string) (*Dir, error) {
	link, err := os.Lstat(path)
	if err != nil {
		return nil, unusable(path, err)
	}
	// A link is followed only if the same user made it.
	if err := checkOwner(path, link); err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{path, "a link that leads nowhere", "make what it leads to, or remove it"}
	}
	if err != nil {
		return nil, unusable(path, err)
	}
	if err := checkDir(resolved); err != nil {
		return nil, err
	}
	d := &Dir{resolved}
	return d, d.checkLayout()
}

func unusable(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		path, err = pe.Path, pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("state: %s: %w", path, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return &Error{path, "not a directory", "move it away, or set VEXILLUM_HOME to another directory"}
	}
	return &Error{path, err.Error(), "vx doctor"}
}

func checkDir(path string) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return unusable(path, err)
	}
	if !fi.IsDir() {
		return &Error{path, "not a directory", "move it away, or set VEXILLUM_HOME to another directory"}
	}
	if err := checkOwner(path, fi); err != nil {
		return err
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return &Error{path, fmt.Sprintf("others may write to it (mode %#o)", fi.Mode().Perm()), "chmod 700 " + Quote(path)}
	}
	return nil
}

func checkOwner(path string, fi fs.FileInfo) error {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return &Error{path, fmt.Sprintf("owned by uid %d, not by you (uid %d)", st.Uid, os.Geteuid()),
			"set VEXILLUM_HOME to a directory of your own"}
	}
	return nil
}

// ours are the names at the top of a state directory; with none but these, and no state.json, it is a directory that
// vx (or a script that drops wakes) was making when it was interrupted. state.json itself is there if another vx has made
// it since it was looked for.
func ours(name string) bool {
	return name == "projects" || name == "state.json" || strings.HasPrefix(name, "sentinel") || strings.HasPrefix(name, "hook.log") ||
		strings.HasPrefix(name, "install-user") || strings.HasPrefix(name, ".")
}

func (d *Dir) checkLayout() error {
	file := d.Join("state.json")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d.checkForeign()
	}
	if err != nil {
		return unusable(file, err)
	}
	var s struct{ Layout *int }
	if err := json.Unmarshal(data, &s); err != nil || s.Layout == nil {
		return &Error{file, "not a state file of vx", "set VEXILLUM_HOME to another directory"}
	}
	if *s.Layout != Layout {
		return &Error{file, fmt.Sprintf("layout %d, and this vx knows layout %d", *s.Layout, Layout), "install the newest vx, or set VEXILLUM_HOME to another directory"}
	}
	return nil
}

func (d *Dir) checkForeign() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return unusable(d.path, err)
	}
	for _, e := range entries {
		if !ours(e.Name()) {
			return &Error{d.path, fmt.Sprintf("holds another program's files (%q)", e.Name()), "set VEXILLUM_HOME to another directory"}
		}
	}
	return nil
}

// Quote writes a path so that a command with it can be pasted into a shell.
func Quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./~") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
