package awaiter

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"vx/internal/state"
)

// Kept is what an awaiter needs to be the same one after its process has become another program: the path of its files
// without their ends, and the descriptors of its lock and its doorbell, which the exec must not close. Nobody sees it gone
// for a moment, and what rings meanwhile is not lost.
type Kept struct {
	Base       string
	Lock, Bell int
}

// Kept is for Resume.
func (a *Awaiter) Kept() Kept { return Kept{a.base, a.lock, a.bell} }

// Record is the file that says who the awaiter is. If it is gone, somebody has removed the registry.
func (k Kept) Record() string { return k.Base + ".json" }

// Resume is the awaiter that was kept. The error says that the descriptors are not its own.
func Resume(p *state.Project, k Kept) (*Awaiter, error) {
	for fd, path := range map[int]string{k.Lock: k.Base + ".lock", k.Bell: k.Base + ".fifo"} {
		if err := leadsTo(path, fd); err != nil {
			return nil, fmt.Errorf("resume await: %s: %w", path, err)
		}
	}
	if err := flock(k.Lock, unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("resume await: %s.lock: %w", k.Base, err)
	}
	return &Awaiter{project: p, base: k.Base, lock: k.Lock, bell: k.Bell}, nil
}

// leadsTo reports an error unless the path is the file that is open.
func leadsTo(path string, fd int) error {
	var open, there unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &open), unix.Lstat(path, &there)); err != nil {
		return err
	}
	if open.Dev != there.Dev || open.Ino != there.Ino {
		return errors.New("another file")
	}
	return nil
}
