package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Build says which program a sentinel runs. The path is the one it was invoked by, absolute, and with its symlinks: an
// upgrade moves what they lead to.
type Build struct {
	Version string `json:"version"`
	Path    string `json:"path"`
	File
}

// File tells a file from every other that may come into its place. A rebuild can have the size of what it replaces, and
// even its number; a copy its time of modification; but not all of them and the time of the change.
type File struct {
	Device  uint64    `json:"device"`
	Inode   uint64    `json:"inode"`
	Size    int64     `json:"size"`
	Mtime   time.Time `json:"mtime"`
	Changed time.Time `json:"ctime"`
}

func (f File) same(other File) bool {
	return f.Device == other.Device && f.Inode == other.Inode && f.Size == other.Size &&
		f.Mtime.Equal(other.Mtime) && f.Changed.Equal(other.Changed)
}

// errNoProgram says that a file cannot be run; it may be on its way to become one that can.
var errNoProgram = errors.New("not an executable file")

// identify says which program a path leads to. The error is fs.ErrNotExist where it leads nowhere.
func identify(path string) (File, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0 {
		return File{}, fmt.Errorf("%s: %w", path, errNoProgram)
	}
	return File{uint64(st.Dev), st.Ino, st.Size, fi.ModTime().UTC(), changed(st).UTC()}, nil
}

// thisBuild is the program that runs, as its path has it at this moment. One that cannot be found is no file: whatever
// comes into its place is another.
func thisBuild() Build {
	path, err := invoked()
	if err != nil {
		return Build{}
	}
	f, _ := identify(path)
	return Build{Path: path, File: f}
}

// invoked is the path that this program was called by.
func invoked() (string, error) {
	path := os.Args[0]
	if !strings.Contains(path, "/") {
		found, err := exec.LookPath(path)
		if err != nil {
			return os.Executable()
		}
		path = found
	}
	if strings.HasPrefix(path, "/") {
		return path, nil // not cleaned either: what .. is depends on the symlinks before it
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("path of this program: %w", err)
	}
	return cwd + "/" + strings.TrimPrefix(path, "./"), nil
}

// Replaced reports whether the path of the sentinel leads to another program than the one that it runs. It then ends by
// itself after its sweep.
func (i Info) Replaced() bool {
	now, err := identify(i.Build.Path)
	return err == nil && !now.same(i.Build.File)
}

// Missing reports whether the path of the sentinel leads nowhere.
func (i Info) Missing() bool {
	_, err := identify(i.Build.Path)
	return errors.Is(err, fs.ErrNotExist)
}
