// Package atomicfile writes files so that a reader, or a crash at any moment, finds either the old content or the new,
// never a mixture and never an empty file. The new content is written beside the old, synced, and renamed over it. A
// crash leaves at most a temporary file (a dot, the name, a random number) beside the target.
//
// And it opens files of ours in directories where others may have put something else in their place.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// ErrChanged says that the file is not what the caller read any more; nothing was written.
var ErrChanged = errors.New("changed by another program meanwhile")

// Before is called before each step that changes the disk, with the step's name ("create", "write", "sync", "rename",
// "exchange") and the target's path; a returned error takes the place of the step's own. It is nil but in tests that
// inject one failing step.
var Before func(step, path string) error

func before(step, path string) error {
	if Before == nil {
		return nil
	}
	return Before(step, path)
}

// Write replaces the file at path, or makes it with the given mode. A symlink is followed; mode and owner of a file
// that exists are kept. After an error the old content stands, but for one: if only the directory could not be synced,
// the new content does, and a crash may take it back.
func Write(path string, data []byte, mode fs.FileMode) error {
	target, err := follow(path)
	if err != nil {
		return err
	}
	t, err := prepare(target, data, mode, likeExisting)
	if err != nil {
		return err
	}
	defer t.Cleanup()
	if err := before("rename", target); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := t.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(target))
}

// Create makes the file at path, fs.ErrExist if there is one: of several that try at once one succeeds.
func Create(path string, data []byte, mode fs.FileMode) error {
	asItIs := func(*os.File, string) error { return nil }
	t, err := prepare(path, data, mode, asItIs)
	if err != nil {
		return err
	}
	defer t.Cleanup()
	if err := RenameNew(t.Name(), path); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Replace is Write that refuses with ErrChanged when the file's content is not old any more. Where the system can
// exchange two files in one step, a change that came between the comparison and the write is found and put back; on Linux
// so is one that another program, with the file open for writing, is about to make. Elsewhere these windows remain:
// microseconds between comparison and rename, and a program that opened the file before and writes to it afterwards.
func Replace(path string, old, data []byte, mode fs.FileMode) error {
	target, err := follow(path)
	if err != nil {
		return err
	}
	t, err := prepare(target, data, mode, likeExisting)
	if err != nil {
		return err
	}
	if err = replace(t, target, old, data); err != nil {
		err = fmt.Errorf("write %s: %w", path, err)
	}
	if _, kept := errors.AsType[*keptError](err); kept {
		return err
	}
	t.Cleanup()
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(target))
}

func replace(t *renameio.PendingFile, target string, old, data []byte) error {
	now, err := os.ReadFile(target)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrChanged, err)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(now, old) {
		return ErrChanged
	}
	// Synced already; and to be seen as open for writing by others alone.
	if err := t.File.Close(); err != nil {
		return err
	}
	err = exchangeAndCompare(t.Name(), target, old, data)
	if errors.Is(err, errors.ErrUnsupported) {
		if err = before("rename", target); err == nil {
			err = os.Rename(t.Name(), target)
		}
	}
	return err
}

// exchangeAndCompare swaps the prepared file in and looks at what came out: a foreign change goes back in its place. So
// does what that brings out if it is not what we had put there: somebody wrote again, and the latest write is to stay.
func exchangeAndCompare(temp, target string, old, data []byte) error {
	if err := Exchange(temp, target); err != nil {
		return err
	}
	out, quiet, err := readQuiet(temp)
	if err == nil && quiet && bytes.Equal(out, old) {
		return nil // the old content is removed with the temporary name
	}
	readable := err == nil
	put := data
	for range 1000 { // each further time somebody has written within a millisecond
		if back := Exchange(temp, target); back != nil {
			return &keptError{temp, errors.Join(err, back)}
		}
		back, quiet, readErr := readQuiet(temp)
		switch {
		case readErr == nil && quiet && bytes.Equal(back, put):
			return errors.Join(ErrChanged, err)
		case readErr != nil || !readable:
			return &keptError{temp, errors.Join(err, readErr)}
		}
		put, out = out, back
		time.Sleep(time.Millisecond)
	}
	return &keptError{temp, ErrChanged}
}

// A keptError is a foreign change that could not be put back. It stays under the temporary name.
type keptError struct {
	path string
	err  error
}

func (e *keptError) Error() string {
	return fmt.Sprintf("changed by another program meanwhile; that change is kept in %s: %v", e.path, e.err)
}

func (e *keptError) Unwrap() error { return e.err }

// prepare writes data to a synced temporary file beside target; finish gives it what else it is to have of target.
func prepare(target string, data []byte, mode fs.FileMode, finish func(f *os.File, target string) error) (*renameio.PendingFile, error) {
	fail := func(err error) error { return fmt.Errorf("write %s: %w", target, err) }
	if err := before("create", target); err != nil {
		return nil, fail(err)
	}
	t, err := renameio.NewPendingFile(target, renameio.WithTempDir(filepath.Dir(target)), renameio.WithStaticPermissions(mode))
	if err != nil {
		return nil, fail(err)
	}
	err = before("write", target)
	if err == nil {
		_, err = t.Write(data)
	}
	if err == nil {
		err = finish(t.File, target)
	}
	if err == nil {
		err = before("sync", target)
	}
	if err == nil {
		err = t.Sync()
	}
	if err != nil {
		t.Cleanup()
		return nil, fail(err)
	}
	return t, nil
}

// likeExisting gives f the mode and the owner of the file at target. An owner that may not be given is an error: the
// file of somebody else is not to become ours.
func likeExisting(f *os.File, target string) error {
	old, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !old.Mode().IsRegular() {
		return fmt.Errorf("not a regular file (%s)", old.Mode().Type())
	}
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	was, is := old.Sys().(*syscall.Stat_t), fi.Sys().(*syscall.Stat_t)
	if was.Uid != is.Uid || was.Gid != is.Gid {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return fmt.Errorf("it is of user %d, group %d, which its successor cannot be given: %w", was.Uid, was.Gid, unnamed(err))
		}
	}
	return f.Chmod(old.Mode().Perm())
}

// unnamed is a system's error without the path of the temporary file.
func unnamed(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// maxLinks is how many links are followed to a file that does not exist yet; the kernel's own limit.
const maxLinks = 40

// follow is the file that path leads to, through any symlinks; path itself where nothing is there. A link may lead to a
// file that is still to be made.
func follow(path string) (string, error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("write %s: %w", path, err) }
	at := path
	for range maxLinks {
		target, err := filepath.EvalSymlinks(at)
		if err == nil {
			return target, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
		// Not cleaned before its links are followed: what .. is depends on them.
		dir, name := filepath.Split(at)
		if dir == "" {
			dir = "."
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return fail(err)
		}
		at = filepath.Join(dir, name)
		link, err := os.Readlink(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return at, nil
		case err != nil:
			return fail(err)
		case filepath.IsAbs(link):
			at = link
		default:
			at = dir + string(filepath.Separator) + link
		}
	}
	return fail(syscall.ELOOP)
}

// Exchange swaps two files in one step; errors.ErrUnsupported where the system or the file system cannot.
func Exchange(a, b string) error {
	if err := before("exchange", b); err != nil {
		return err
	}
	return exchange(a, b)
}

// RenameNew renames a file to a name that must be free: fs.ErrExist if it is not, in one step.
func RenameNew(from, to string) error {
	if err := before("rename", to); err != nil {
		return err
	}
	err := renameNew(from, to)
	if errors.Is(err, errors.ErrUnsupported) {
		return linkNew(from, to)
	}
	return err
}

// linkNew is RenameNew in two steps. Once the new name stands the file may be taken and read, so that a failure to remove
// the old one is not the caller's: it would do again what is done.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	_ = os.Remove(from)
	return nil
}

// SyncDir makes renames in a directory durable.
func SyncDir(dir string) error {
	if err := before("sync", dir); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer f.Close()
	// Some file systems cannot sync a directory (EINVAL): nothing to gain there.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
