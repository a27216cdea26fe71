// Package proc names processes so that they can be trusted across time, watches and signals them, and reads the
// machine's clocks. A pid alone is never enough: it is reused. It is not for starting processes, and it asks nobody but
// the kernel: no ps is run. It holds no state on disk, so a crash leaves nothing.
package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process has ended, or that its pid belongs to another one now.
var ErrGone = errors.New("process is gone")

// errUnknown says that the kernel could not be asked who has the pid: nothing is proven, nothing is signalled.
var errUnknown = errors.New("start time is not known")

// ID is one process: its pid and the raw start time that the kernel keeps (Linux: field 22 of /proc/PID/stat, ticks
// since boot; macOS: microseconds since the epoch). The zero ID is no process; a start time of 0 is one that could not
// be read, and proves nothing.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Younger reports whether a started after b; the pid decides between two of the same tick. It is a pure function of
// the two, so that every process that compares the same pair comes to the same answer.
func (a ID) Younger(b ID) bool {
	if a.Start != b.Start {
		return a.Start > b.Start
	}
	return a.PID > b.PID
}

// IsZero reports whether a names no process.
func (a ID) IsZero() bool { return a == ID{} }

// Status is what the kernel says of a process at one moment.
type Status int

// Gone covers zombies: they run nothing. Unknown means that the kernel could not be asked: prove nothing from it.
const (
	Unknown Status = iota
	Gone
	Running
	Stopped // by a signal (T) or a tracer (t)
)

func (s Status) String() string {
	switch s {
	case Gone:
		return "gone"
	case Running:
		return "running"
	case Stopped:
		return "stopped"
	}
	return "unknown"
}

// entry is what the kernel keeps of the process that has a pid now.
type entry struct {
	start  uint64
	parent int
	status Status
}

// Status asks the kernel about the process, start time included. It is cheap enough to be asked every few seconds by
// hundreds of processes.
func (a ID) Status() Status {
	if a.PID <= 0 || a.Start == 0 {
		return Unknown
	}
	e, err := look(a.PID, nil)
	switch {
	case errors.Is(err, ErrGone):
		return Gone
	case err != nil:
		return Unknown
	case e.start != a.Start:
		return Gone
	}
	return e.status
}

// Self is this process. Its start time is 0 where it could not be read.
func Self() ID { return self() }

var self = sync.OnceValue(func() ID {
	pid := os.Getpid()
	e, err := look(pid, nil)
	if err != nil {
		return ID{PID: pid}
	}
	return ID{pid, e.start}
})

// Find is the process that has this pid now. The error is ErrGone, or why it could not be found out.
func Find(pid int) (ID, error) {
	e, err := look(pid, nil)
	if err == nil && e.status == Gone {
		err = ErrGone
	}
	if err != nil {
		return ID{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return ID{pid, e.start}, nil
}

// Info is a process as an ancestor walk sees it.
type Info struct {
	ID   ID
	Name string // the executable's base name as the kernel keeps it ("dash", "claude", "node"), cut at 15 bytes
	Args []string
}

// maxAncestors bounds the walk; real ones are about ten deep.
const maxAncestors = 64

// Ancestors are this process's parents, nearest first, down to (not including) pid 1; at most 64. The walk ends early
// at a parent that cannot be read or that ends meanwhile.
func Ancestors() []Info {
	var all []Info
	child, pid := os.Getpid(), os.Getppid()
	for pid > 1 && len(all) < maxAncestors {
		var name string
		e, err := look(pid, &name)
		if err != nil {
			break
		}
		args, _ := args(pid) // none is readable of a zombie, or of another user's process on macOS
		// As long as the child still has this parent, the pid has not passed to another process.
		if c, err := look(child, nil); err != nil || c.parent != pid {
			break
		}
		all = append(all, Info{ID{pid, e.start}, name, args})
		child, pid = pid, e.parent
	}
	return all
}

// Args is the command line of the process, or ErrGone.
func Args(id ID) ([]string, error) {
	list, err := args(id.PID)
	// Asked afterwards: what was read belongs to the process only if it still has the pid.
	switch status := id.Status(); {
	case status == Gone:
		err = ErrGone
	case status == Unknown && err == nil:
		err = errUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("arguments of process %d: %w", id.PID, err)
	}
	return list, nil
}

// splitArgs takes NUL-terminated strings apart. A program that overwrote its own title may have left one string
// without any NUL.
func splitArgs(raw string) []string {
	if raw == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(raw, "\x00"), "\x00")
}

// Handle holds a process so that a signal or a wait can reach no other: a pidfd on Linux, a kqueue with
// EVFILT_PROC/NOTE_EXIT on macOS.
type Handle struct {
	id ID
	fd int
}

// Open takes hold of the process and then checks its start time: ErrGone if it is not the same any more.
func Open(id ID) (*Handle, error) {
	fail := func(err error) (*Handle, error) { return nil, fmt.Errorf("open process %d: %w", id.PID, err) }
	if id.PID <= 0 || id.Start == 0 {
		return fail(errUnknown)
	}
	fd, err := hold(id.PID)
	if errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	if err != nil {
		return fail(err)
	}
	h := &Handle{id, fd}
	if err := h.alive(); err != nil {
		return fail(errors.Join(err, h.Close()))
	}
	return h, nil
}

// FD becomes readable when the process has ended (for poll). It is -1, which poll passes over, on a Linux kernel
// without pidfds (before 5.3): there the end shows only in Status.
func (h *Handle) FD() int { return h.fd }

// Signal sends sig to the held process and to no other; ErrGone when it has ended. Where no pidfd carries the signal
// (macOS, an old Linux kernel) the start time is compared immediately before.
func (h *Handle) Signal(sig int) error {
	err := h.alive()
	if err == nil {
		err = h.send(syscall.Signal(sig))
	}
	if errors.Is(err, unix.ESRCH) {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("signal process %d: %w", h.id.PID, err)
	}
	return nil
}

func (h *Handle) alive() error {
	switch h.id.Status() {
	case Gone:
		return ErrGone
	case Unknown:
		return errUnknown
	}
	return nil
}

// Close lets go of the process.
func (h *Handle) Close() error {
	if h.fd < 0 {
		return nil
	}
	fd := h.fd
	h.fd = -1
	return unix.Close(fd)
}
