package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
)

// Look says who is the sentinel, if one runs. A running one without a pid starts just now, or runs where its pid means
// nothing here. It writes nothing.
func Look(dir *state.Dir) (info Info, running bool, err error) {
	data, err := os.ReadFile(dir.Join(recordName))
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		// It is written whole, so somebody else has been at it: the lock tells whether one runs.
		info, err = Info{}, fmt.Errorf("sentinel record: %w", err)
	}
	if s := info.Status(); s == proc.Running || s == proc.Stopped {
		return info, true, nil
	}
	held, lerr := isHeld(dir)
	return Info{}, held, errors.Join(err, lerr)
}

// isHeld asks for the lock with a shared one, so that two who ask at once do not take each other for the sentinel, and
// does not make the file.
func isHeld(dir *state.Dir) (bool, error) {
	fd, err := open(dir.Join(lockName), unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sentinel lock: %w", err)
	}
	defer unix.Close(fd)
	err = tryLock(fd, unix.LOCK_SH)
	if errors.Is(err, lock.ErrHeld) {
		return true, nil
	}
	return false, err
}

// ErrNone says that no sentinel runs.
var ErrNone = errors.New("sentinel: none runs")

// leave is how long a sentinel may take to end: it finishes the sweep that it is in.
const leave = 20 * time.Second

// Stop ends the sentinel with SIGTERM, after its record, its start time and its command line agree, and returns who it
// was when it has ended. The error is ErrNone if none ran.
func Stop(ctx context.Context, dir *state.Dir) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, leave)
	defer cancel()
	info, err := named(ctx, dir)
	if err != nil {
		return info, err
	}
	if err := info.terminate(); err != nil && !errors.Is(err, proc.ErrGone) {
		return info, fmt.Errorf("stop sentinel %d: %w", info.PID, err)
	}
	for info.Status() != proc.Gone {
		if !pause(ctx) {
			return info, fmt.Errorf("stop sentinel %d: it does not end (%s)", info.PID, info.Status())
		}
	}
	return info, nil
}

// named waits for a sentinel that starts just now to say who it is.
func named(ctx context.Context, dir *state.Dir) (Info, error) {
	for end := time.Now().Add(introduction); ; {
		info, running, err := Look(dir)
		switch {
		case err != nil:
			return info, err
		case !running:
			return info, ErrNone
		case info.PID != 0:
			return info, nil
		case time.Now().After(end), !pause(ctx):
			return info, errors.New("sentinel: one runs, and does not say who it is")
		}
	}
}

func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(askAgain):
		return true
	}
}

func (i Info) terminate() error {
	h, err := proc.Open(i.ID)
	if err != nil {
		return err
	}
	defer h.Close()
	args, err := proc.Args(i.ID)
	if err != nil {
		return err
	}
	if !isSentinel(args) {
		return fmt.Errorf("its command line is %q, not a sentinel's", args)
	}
	return h.Signal(int(syscall.SIGTERM))
}

// isSentinel goes by a command line: the program's name, and that it is to be the sentinel. "run" says so too.
func isSentinel(args []string) bool {
	return len(args) >= 2 && args[1] == command && (len(args) == 2 || len(args) == 3 && args[2] == "run")
}
