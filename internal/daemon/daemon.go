// Package daemon keeps one sentinel a machine: who may run, how it is started so that nothing of its starter clings to
// it, which program it is, when it is to make room for another, how it is found and stopped. What the sentinel does is
// not its concern.
//
// The only proof that one runs is the lock on sentinel.lock, held for the process's life; the kernel frees it on any
// death. Whoever starts one takes that lock first and hands it on, so that of any number of starters one succeeds and
// there is no moment at which two run or at which nobody holds what somebody was given. sentinel.json and sentinel.pid
// say who holds it; they are written after the lock was taken, and a crash leaves them behind for the next one to
// overwrite. sentinel.starts counts starts that came to nothing.
package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
)

// The files in the state directory.
const (
	lockName   = "sentinel.lock"
	pidName    = "sentinel.pid"
	recordName = "sentinel.json"
	startsName = "sentinel.starts"
	// LogName is the log that the sentinel writes; see OpenLog.
	LogName = "sentinel.log"
)

// command is the argument that makes the program a sentinel.
const command = "sentinel"

// Info is what a sentinel tells others about itself. It never changes.
type Info struct {
	proc.ID
	Since time.Time `json:"since"`
	Build Build     `json:"build"`
}

// Running is the answer to one who wants to be the sentinel while another is.
type Running struct{ PID int } // 0: it starts just now, and has not said yet who it is

func (e *Running) Error() string {
	if e.PID == 0 {
		return "sentinel: another one is starting"
	}
	return fmt.Sprintf("sentinel: process %d is it already", e.PID)
}

// Hint is the command that shows more.
func (e *Running) Hint() string { return "vx sentinel status, or to end it: vx sentinel stop" }

// Held is the right to be the sentinel.
type Held struct {
	dir     *state.Dir
	fd      int
	info    Info
	lived   bool          // it has done its work once
	missing time.Duration // since when its path has led nowhere, by proc.Awake; 0: it leads somewhere
}

const (
	introduction = 2 * time.Second       // for one that starts just now to say who it is
	askAgain     = 20 * time.Millisecond // between two looks for something that comes within a moment
)

// Claim makes this process the sentinel: with the lock that it was handed at its start, or with one that it takes. The
// error is *Running when another process has it. version is what the program calls itself.
func Claim(dir *state.Dir, version string) (*Held, error) {
	fd, build, err := inherited(dir)
	if err == nil && fd < 0 {
		fd, err = claimLock(dir)
		build = thisBuild()
	}
	if err != nil {
		return nil, err
	}
	build.Version = version
	h := &Held{dir: dir, fd: fd, info: Info{proc.Self(), time.Now().UTC(), build}}
	if err := h.introduce(); err != nil {
		return nil, errors.Join(err, h.Release())
	}
	return h, nil
}

// claimLock takes the lock. One who only asks whether it is held may hold it for an instant; and one who holds it for
// good has a name, if not at once.
func claimLock(dir *state.Dir) (int, error) {
	for end := time.Now().Add(introduction); ; time.Sleep(askAgain) {
		fd, err := take(dir)
		if !errors.Is(err, lock.ErrHeld) {
			return fd, err
		}
		info, running, err := Look(dir)
		if err == nil && running && info.PID != 0 {
			return -1, &Running{info.PID}
		}
		if time.Now().After(end) {
			return -1, errors.Join(&Running{}, err)
		}
	}
}

// introduce says who holds the lock.
func (h *Held) introduce() error {
	data, err := json.Marshal(h.info)
	if err == nil {
		err = atomicfile.Write(h.dir.Join(recordName), append(data, '\n'), 0o600)
	}
	if err == nil {
		err = atomicfile.Write(h.dir.Join(pidName), append(strconv.AppendInt(nil, int64(h.info.PID), 10), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("sentinel record: %w", err)
	}
	return nil
}

// Info is what this sentinel has told others.
func (h *Held) Info() Info { return h.info }

// unreachable is how long, the machine awake, the path may lead nowhere. An upgrade removes a program before its
// successor is there, and a build from source may take minutes in between; a program that is gone for longer was
// uninstalled or has moved.
const unreachable = 10 * time.Minute

// Over says why the sentinel is to end now, "" if it is not. It is asked after each sweep; that there was one is what
// makes the start a success.
func (h *Held) Over() string {
	if h.usurped() {
		return "its lock file is gone, or another one is in its place"
	}
	if !h.lived {
		h.lived = true
		forgetStarts(h.dir)
	}
	now, err := identify(h.info.Build.Path)
	switch {
	case err == nil && !now.same(h.info.Build.File):
		return h.info.Build.Path + " is another program now"
	case !errors.Is(err, fs.ErrNotExist):
		h.missing = 0 // what cannot be asked now, or is no program yet, is not gone
	case h.missing == 0:
		h.missing = proc.Awake()
	case proc.Awake()-h.missing >= unreachable:
		return h.info.Build.Path + " is gone"
	}
	return ""
}

// usurped reports whether the lock that is held is not the one that others see: the state directory, or the file in it,
// was removed, and may be there anew.
func (h *Held) usurped() bool { return !leadsTo(h.dir.Join(lockName), h.fd) }

// Release takes back what was said and gives the lock back. What may be another sentinel's is left alone.
func (h *Held) Release() error {
	var errs []error
	if !h.usurped() {
		forgetStarts(h.dir)
		for _, name := range []string{recordName, pidName} {
			if err := os.Remove(h.dir.Join(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	errs = append(errs, unix.Close(h.fd))
	h.fd = -1
	return errors.Join(errs...)
}

// take takes the lock; the error is lock.ErrHeld when somebody has it. The descriptor is a plain one: an await, which
// asks at each of its ticks, is to have no poller for it.
func take(dir *state.Dir) (int, error) {
	path := dir.Join(lockName)
	fail := func(err error) (int, error) { return -1, fmt.Errorf("sentinel lock: %w", err) }
	for range 10 {
		fd, err := open(path, unix.O_RDWR|unix.O_CREAT)
		if err != nil {
			return fail(err)
		}
		if err := tryLock(fd, unix.LOCK_EX); err != nil {
			unix.Close(fd)
			return fail(err)
		}
		if leadsTo(path, fd) {
			return fd, nil
		}
		unix.Close(fd) // removed or replaced between the two steps
	}
	return fail(fs.ErrNotExist)
}

func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

func tryLock(fd, how int) error {
	for {
		switch err := unix.Flock(fd, how|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return lock.ErrHeld
		default:
			return err
		}
	}
}

// leadsTo reports whether a path is the file that is open.
func leadsTo(path string, fd int) bool {
	var there, held unix.Stat_t
	return unix.Lstat(path, &there) == nil && unix.Fstat(fd, &held) == nil && there.Dev == held.Dev && there.Ino == held.Ino
}
