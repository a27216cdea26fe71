// Package lock is advisory locks on files (flock): the kernel frees them on any death of the holder, and reused pids,
// zombies and pid namespaces do not fool them. Lock files are never renamed or deleted by this package.
package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gofrs/flock"
)

// ErrHeld says that somebody else holds the lock.
var ErrHeld = errors.New("lock is held")

// retry is how often Wait asks again; a queue's lock is held for a few milliseconds.
const retry = 2 * time.Millisecond

// Lock is a held lock.
type Lock struct{ f *flock.Flock }

// Try takes the lock at path, making the file (0600) where it is missing. The error is ErrHeld when another holds it.
func Try(path string) (*Lock, error) {
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, fmt.Errorf("lock %s: %w", path, ErrHeld)
	}
	return &Lock{f}, nil
}

// Wait takes the lock at path as soon as it is free. When ctx ends first the error is ErrHeld.
func Wait(ctx context.Context, path string) (*Lock, error) {
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLockContext(ctx, retry)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, fmt.Errorf("lock %s: %w", path, ErrHeld)
	}
	return &Lock{f}, nil
}

// Unlock gives the lock back.
func (l *Lock) Unlock() error { return l.f.Close() }
