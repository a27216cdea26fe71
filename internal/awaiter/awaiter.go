// Package awaiter is the registry of live awaits and their doorbells: for each a record, a FIFO and a lock in the
// state directory's sentinel-awaiters/, and one file more while it holds a delivery in hand. The lock is the only proof of life: the kernel frees it on any death. What a
// dead awaiter left is removed by whoever lists next, so a crash at any moment leaves files that disappear by
// themselves. The package does not know what an await waits for.
package awaiter

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
	"vx/internal/state"
)

// Record is what an awaiter tells others about itself. It never changes.
type Record struct {
	Process proc.ID   `json:"process"`
	Project string    `json:"project"` // resolved absolute path
	Client  proc.ID   `json:"client,omitzero"`
	Harness string    `json:"harness"` // "claude", "pi", "opencode"
	Session string    `json:"session,omitempty"`
	Pane    string    `json:"pane,omitempty"`
	Socket  string    `json:"socket,omitempty"` // of the herdr that the pane is in
	Since   time.Time `json:"since"`
	Version string    `json:"version"`
}

// SameClient reports whether two awaiters of one project wait for the same client, so that one of them is too many. The
// session says it only where a process is not known: /clear changes the session and keeps the process, and one session
// resumed in two terminals is two clients.
func (r Record) SameClient(other Record) bool {
	if r.Project != other.Project {
		return false
	}
	if !r.Client.IsZero() && !other.Client.IsZero() {
		return r.Client == other.Client
	}
	return r.Session != "" && r.Session == other.Session
}

// Awaiter is this process's own registration.
type Awaiter struct {
	project *state.Project
	base    string // path of its files without their extension
	lock    int    // its descriptor, -1 for none; so with the bell
	bell    int
	seen    seen
}

// Register makes the lock, the FIFO (under a temporary name, opened read-write and non-blocking, then renamed in) and
// the record, in that order, before it returns: whoever puts a wake from now on finds the bell.
func Register(dir *state.Dir, p *state.Project, r Record) (*Awaiter, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("await record: %w", err)
	}
	a := &Awaiter{project: p, bell: -1}
	a.base, a.lock, err = claimName(dir, p, r)
	if err != nil {
		return nil, fmt.Errorf("register await: %w", err)
	}
	err = a.hang()
	if err == nil {
		err = publish(a.base+".json", data)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register await: %w", err), a.Close())
	}
	return a, nil
}

// claimName finds a free name and locks its lock file. Whoever lists at this very moment may hold the new file for an
// instant, to see whether anybody does: then another name is taken.
func claimName(dir *state.Dir, p *state.Project, r Record) (base string, lock int, err error) {
	for range 10 {
		var random [(idWidth - clientWidth) / 2]byte
		rand.Read(random[:])
		base = dir.Awaiters() + "/" + p.ID() + "-" + strconv.Itoa(r.Process.PID) + "-" + clientTag(r.Client) + hex.EncodeToString(random[:])
		if lock, err = openRetry(base+".lock", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW); err != nil {
			return "", -1, err
		}
		err = flock(lock, unix.LOCK_EX)
		// The file may have been taken for a dead one's and removed before it was locked, or really be a dead one's.
		if err == nil && held(base+".lock") && !exists(base+".json") {
			return base, lock, nil
		}
		unix.Close(lock)
		if err != nil && err != unix.EWOULDBLOCK {
			return "", -1, &fs.PathError{Op: "lock", Path: base + ".lock", Err: err}
		}
	}
	return "", -1, errors.New("no name is free")
}

// hang makes the doorbell. It is opened for writing too, so that it never reads as hung up, and under a temporary name,
// so that nobody finds it before it rings.
func (a *Awaiter) hang() error {
	tmp := temp(a.base + ".fifo")
	if err := unix.Mkfifo(tmp, 0o600); err != nil {
		return &fs.PathError{Op: "mkfifo", Path: tmp, Err: err}
	}
	fd, err := openRetry(tmp, unix.O_RDWR|unix.O_NONBLOCK)
	if err == nil {
		a.bell = fd
		err = os.Rename(tmp, a.base+".fifo")
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return nil
}

// publish makes a file appear whole. It is not synced to the disk: no registration outlives the machine's next boot.
func publish(path string, data []byte) error {
	tmp := temp(path)
	err := os.WriteFile(tmp, data, 0o600)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}

// FD is the doorbell, for poll.
func (a *Awaiter) FD() int { return a.bell }

// Answer empties the doorbell: from now on a producer sees it as not rung.
func (a *Awaiter) Answer() {
	var buf [64]byte
	for {
		n, err := unix.Read(a.bell, buf[:])
		if err != unix.EINTR && n < len(buf) {
			return
		}
	}
}

// Close takes the registration back, the record first: what a crash leaves of it, nobody takes for an awaiter.
func (a *Awaiter) Close() error {
	noteEnd(a.project)
	errs := []error{remove(a.base + ".json"), remove(a.base + ".fifo"), remove(a.base + holdFile)}
	if a.bell >= 0 {
		errs = append(errs, unix.Close(a.bell))
		a.bell = -1
	}
	errs = append(errs, remove(a.base+".lock"))
	if a.lock >= 0 {
		errs = append(errs, unix.Close(a.lock))
		a.lock = -1
	}
	return errors.Join(errs...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
