// Package proc names processes so that they can be trusted across time, watches and signals them, and reads the
// machine's clocks. A pid alone is never enough: it is reused. It holds no state on disk.
package proc

import (
	"errors"
	"time"
)

// ErrGone says that the process has ended, or that its pid belongs to another one now.
var ErrGone = errors.New("process is gone")

// ID is one process: its pid and the raw start time that the kernel keeps (Linux: field 22 of /proc/PID/stat, ticks
// since boot; macOS: microseconds since the epoch). The zero ID is no process.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Younger reports whether a started after b; the pid decides between two of the same tick. It is a pure function of
// the two, so that every process that compares the same pair comes to the same answer.
func (a ID) Younger(b ID) bool { return false }

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

// Status asks the kernel about the process, start time included.
func (a ID) Status() Status { return Unknown }

// Self is this process.
func Self() ID { return ID{} }

// Find is the process that has this pid now. The error is ErrGone, or why it could not be found out.
func Find(pid int) (ID, error) { return ID{}, ErrGone }

// Info is a process as an ancestor walk sees it.
type Info struct {
	ID   ID
	Name string // the executable's base name as the kernel keeps it ("dash", "claude", "node")
	Args []string
}

// Ancestors are this process's parents, nearest first, down to (not including) pid 1; at most 64.
func Ancestors() []Info { return nil }

// Args is the command line of the process, or ErrGone.
func Args(id ID) ([]string, error) { return nil, ErrGone }

// Handle holds a process so that a signal or a wait can reach no other: a pidfd on Linux, a kqueue with
// EVFILT_PROC/NOTE_EXIT on macOS.
type Handle struct{ fd int }

// Open takes hold of the process and then checks its start time: ErrGone if it is not the same any more.
func Open(id ID) (*Handle, error) { return nil, ErrGone }

// FD becomes readable when the process has ended (for poll).
func (h *Handle) FD() int { return h.fd }

// Signal sends sig to the held process and to no other; ErrGone when it has ended.
func (h *Handle) Signal(sig int) error { return ErrGone }

// Close lets go of the process.
func (h *Handle) Close() error { return nil }

// BootID tells one boot of the machine from the next.
func BootID() string { return "" }

// SinceBoot is the time since boot including sleep (CLOCK_BOOTTIME; CLOCK_MONOTONIC on macOS).
func SinceBoot() time.Duration { return 0 }

// Awake is the time since boot that counts no sleep (CLOCK_MONOTONIC on Linux; CLOCK_UPTIME_RAW on macOS).
func Awake() time.Duration { return 0 }
