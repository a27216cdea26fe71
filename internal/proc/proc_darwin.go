package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// States of a process in the kernel's table (sys/proc.h).
const (
	stopped = 4
	zombie  = 5
)

// look reads the process that has the pid now, its name too if it is asked for. The error is ErrGone if there is none.
func look(pid int, name *string) (entry, error) {
	if pid <= 0 {
		return entry{}, ErrGone
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return entry{}, missing(pid, err)
	}
	// An empty answer is what the kernel gives for a free pid; x/sys makes EIO of it, this is for a pid of another.
	if int(k.Proc.P_pid) != pid {
		return entry{}, ErrGone
	}
	start := k.Proc.P_starttime
	e := entry{
		start:  uint64(start.Sec)*1e6 + uint64(start.Usec),
		parent: int(k.Eproc.Ppid),
		status: Running,
	}
	switch k.Proc.P_stat {
	case stopped:
		e.status = Stopped
	case zombie:
		e.status = Gone
	}
	if name != nil {
		comm := k.Proc.P_comm[:]
		if end := bytes.IndexByte(comm, 0); end >= 0 {
			comm = comm[:end]
		}
		*name = string(comm)
	}
	return e, nil
}

// missing tells a process that is gone from one that could not be read. Signal 0 only asks.
func missing(pid int, err error) error {
	if errors.Is(err, unix.ESRCH) || unix.Kill(pid, 0) == unix.ESRCH {
		return ErrGone
	}
	return err
}

// args reads the command line that the pid has now: the count, the executable's path, NULs up to a word boundary, then
// the arguments, then the environment, which is not looked at.
func args(pid int) ([]string, error) {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil, missing(pid, err)
	}
	if len(raw) < 4 {
		return nil, fmt.Errorf("unknown form of procargs2, %d bytes", len(raw))
	}
	count := int(binary.NativeEndian.Uint32(raw))
	rest := raw[4:]
	if end := bytes.IndexByte(rest, 0); end >= 0 {
		rest = bytes.TrimLeft(rest[end:], "\x00")
	}
	end := 0
	for range count {
		width := bytes.IndexByte(rest[end:], 0)
		if width < 0 {
			end = len(rest)
			break
		}
		end += width + 1
	}
	return splitArgs(string(rest[:end])), nil
}

// hold makes a kqueue that becomes readable when the process ends, and stays so: the event is never taken out.
func hold(pid int) (int, error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(kq)
	watch := unix.Kevent_t{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD, Fflags: unix.NOTE_EXIT}
	if _, err := unix.Kevent(kq, []unix.Kevent_t{watch}, nil, nil); err != nil {
		unix.Close(kq)
		return -1, err
	}
	return kq, nil
}

func (h *Handle) send(sig syscall.Signal) error { return unix.Kill(h.id.PID, sig) }

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

const (
	clockBoot  = unix.CLOCK_MONOTONIC // counts sleep here, unlike on Linux
	clockAwake = unix.CLOCK_UPTIME_RAW
)
