package loop

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
)

// mercy is how long a worker has after SIGTERM, and what is left of it after SIGKILL.
const mercy = 5 * time.Second

// end ends the worker's process group. It is false, without a signal, where the worker has ended by itself. The group is
// known by its leader, pid and start time, and signalled only while that proves whose it is: as long as the leader, or any
// process of the group, is there, the kernel gives its number to no other.
func (w *Worker) end() (bool, error) {
	fail := func(err error) (bool, error) { return false, fmt.Errorf("worker %d: %w", w.PID, err) }
	switch w.Status() {
	case proc.Gone:
		return false, nil
	case proc.Unknown:
		return fail(errors.New("whether it is still the same process is not known"))
	}
	if group, err := unix.Getpgid(w.PID); err != nil || group != w.PID {
		return fail(errors.Join(errors.New("it leads no process group"), err))
	}
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if other, err := proc.Find(w.PID); err == nil && other != w.ID {
			return true, nil // the group has ended, and its number is another one's
		}
		if err := unix.Kill(-w.PID, sig); errors.Is(err, unix.ESRCH) {
			return true, nil
		} else if err != nil {
			return fail(err)
		}
		for began := time.Now(); time.Since(began) < mercy; time.Sleep(10 * time.Millisecond) {
			if w.over(sig) {
				return true, nil
			}
		}
	}
	return fail(errors.New("it does not end"))
}

// over reports whether nothing of the group is left. Its parent may not have looked at the leader yet, which then is still
// counted; what got SIGKILL ends in any case.
func (w *Worker) over(last unix.Signal) bool {
	return errors.Is(unix.Kill(-w.PID, 0), unix.ESRCH) || last == unix.SIGKILL && w.Status() == proc.Gone
}
