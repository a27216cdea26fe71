package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
)

// directory looks at the state directory: whose it is, who may read it, and on what it lies.
func directory(_ context.Context, p *Patient) []Result {
	if p.StateErr != nil {
		fix := ""
		if e, ok := errors.AsType[*state.Error](p.StateErr); ok {
			fix = e.Fix
		}
		if fix == "vx doctor" { // that is here
			fix = "look into it, or set VEXILLUM_HOME to another directory"
		}
		return failure(fix, "%v", p.StateErr)
	}
	if p.State == nil {
		return info("none yet; vx init, or the first wake, makes it")
	}
	var all []Result
	dirs := []string{p.State.Path(), p.State.Awaiters(), p.State.Join("projects")}
	if p.Project != nil {
		dirs = append(dirs, p.Project.Dir, p.Project.Join("wakes"))
	}
	for _, dir := range dirs {
		all = append(all, private(dir)...)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(p.State.Path(), &st); err != nil {
		return append(all, failure("", "%v", err)...)
	}
	kind := kindOf(&st)
	if kind.remote {
		all = append(all, warning("set VEXILLUM_HOME to a directory on a local disk", "%s is on %s, where locks and renames may not hold between machines", home(p.State.Path()), kind.name)...)
	}
	switch {
	case kind.readOnly:
		all = append(all, failure("mount it writable, or set VEXILLUM_HOME to another directory", "%s is on a file system that is mounted read-only", home(p.State.Path()))...)
	case unix.Access(p.State.Path(), unix.W_OK) != nil:
		all = append(all, failure("chmod 700 "+state.Quote(p.State.Path()), "%s cannot be written to", home(p.State.Path()))...)
	case st.Bavail == 0:
		all = append(all, warning("make room on it", "the disk of %s is full", home(p.State.Path()))...)
	}
	if len(all) > 0 {
		return all
	}
	return ok("%s, yours alone, on %s", home(p.State.Path()), kind.name)
}

// private looks at a directory that only its user is to get into.
func private(dir string) []Result {
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // made when it is needed
	}
	if err != nil {
		return failure("", "%v", err)
	}
	st, known := fi.Sys().(*syscall.Stat_t)
	switch mode := fi.Mode().Perm(); {
	case !fi.IsDir():
		return failure("move it away", "%s is not a directory", home(dir))
	case known && int(st.Uid) != os.Geteuid():
		return failure(fmt.Sprintf("sudo chown -R %d %s", os.Geteuid(), state.Quote(dir)), "%s is owned by uid %d, not by you", home(dir), st.Uid)
	case mode&0o022 != 0:
		return failure("chmod 700 "+state.Quote(dir), "others may write to %s (mode %#o)", home(dir), mode)
	case mode&0o077 != 0:
		return warning("chmod 700 "+state.Quote(dir), "others may read %s (mode %#o)", home(dir), mode)
	}
	return nil
}

// home writes a path with ~ where that is shorter.
func home(path string) string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	if rest, ok := strings.CutPrefix(path, dir+"/"); ok && dir != "" {
		return "~/" + rest
	}
	return path
}

// fsKind is a kind of file system.
type fsKind struct {
	name     string
	remote   bool // other machines may have it too
	readOnly bool
}

// primitives tries what the queue is built on in the temporary directory, if that is on the state directory's own file
// system; else only a lock, on the directory itself, which writes nothing.
func primitives(_ context.Context, p *Patient) []Result {
	if p.State == nil {
		return nil
	}
	if sameDevice(os.TempDir(), p.State.Path()) {
		dir, err := os.MkdirTemp("", "vx-doctor-")
		if err == nil {
			defer os.RemoveAll(dir)
			return tried(tryPrimitives(dir), "work")
		}
	}
	if err := tryDirLock(p.State.Path()); err != nil {
		return tried([]error{err}, "")
	}
	return info("locks work; vx doctor --probe tries FIFOs and renames too, which needs a directory there")
}

// probeDirectory tries the same in the state directory itself, in a directory that is removed again.
func probeDirectory(_ context.Context, p *Patient) []Result {
	if p.State == nil {
		return nil
	}
	dir, err := os.MkdirTemp(p.State.Path(), ".probe-")
	if err != nil {
		return failure("vx doctor", "%v", err)
	}
	defer os.RemoveAll(dir)
	return tried(tryPrimitives(dir), "locks, FIFOs and renames work there")
}

func tried(errs []error, fine string) []Result {
	var all []Result
	for _, err := range errs {
		if errors.Is(err, errors.ErrUnsupported) {
			all = append(all, info("%v; vx does without", err)...)
			continue
		}
		all = append(all, failure("set VEXILLUM_HOME to a directory on another file system", "%v", err)...)
	}
	if len(all) == 0 {
		return ok("%s", fine)
	}
	return all
}

func sameDevice(a, b string) bool {
	var sa, sb unix.Stat_t
	return unix.Stat(a, &sa) == nil && unix.Stat(b, &sb) == nil && sa.Dev == sb.Dev
}

// tryPrimitives does in dir what the queue relies on. Each error names what does not work; one that is ErrUnsupported is
// something that vx can do without.
func tryPrimitives(dir string) []error {
	var errs []error
	for _, try := range []struct {
		what string
		do   func(dir string) error
	}{
		{"locks", tryLock}, {"FIFOs", tryFIFO}, {"renames", tryRename}, {"exchanging two files", tryExchange},
	} {
		if err := try.do(dir); err != nil {
			errs = append(errs, fmt.Errorf("%s do not work: %w", try.what, err))
		}
	}
	return errs
}

// tryDirLock locks a directory itself, shared, so that nobody who looks at the same time is disturbed.
func tryDirLock(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil && err != unix.EWOULDBLOCK {
		return fmt.Errorf("locks do not work: %w", err)
	}
	return nil
}

func tryLock(dir string) error {
	path := filepath.Join(dir, "lock")
	l, err := lock.Try(path)
	if err != nil {
		return err
	}
	if second, err := lock.Try(path); !errors.Is(err, lock.ErrHeld) {
		if err == nil {
			err = errors.Join(errors.New("two hold the same one"), second.Unlock())
		}
		return errors.Join(err, l.Unlock())
	}
	if err := l.Unlock(); err != nil {
		return err
	}
	if l, err = lock.Try(path); err != nil {
		return fmt.Errorf("after it was given back: %w", err)
	}
	return l.Unlock()
}

func tryFIFO(dir string) error {
	path := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write([]byte{1}); err != nil {
		return err
	}
	_, err = f.Read(make([]byte, 1))
	return err
}

func tryRename(dir string) error {
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	if err := errors.Join(os.WriteFile(a, []byte("a"), 0o600), os.WriteFile(c, []byte("c"), 0o600)); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return err
	}
	if err := atomicfile.RenameNew(b, c); !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("one over a file that is there: %v, want an error", err)
	}
	if err := atomicfile.RenameNew(b, a); err != nil {
		return err
	}
	if data, err := os.ReadFile(a); err != nil || string(data) != "a" {
		return fmt.Errorf("the file holds %q, %v afterwards", data, err)
	}
	return nil
}

func tryExchange(dir string) error {
	x, y := filepath.Join(dir, "x"), filepath.Join(dir, "y")
	if err := errors.Join(os.WriteFile(x, []byte("x"), 0o600), os.WriteFile(y, []byte("y"), 0o600)); err != nil {
		return err
	}
	if err := atomicfile.Exchange(x, y); err != nil {
		return err
	}
	if data, err := os.ReadFile(x); err != nil || string(data) != "y" {
		return fmt.Errorf("the file holds %q, %v afterwards", data, err)
	}
	return nil
}
