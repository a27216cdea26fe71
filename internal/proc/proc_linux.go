package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// look reads the process that has the pid now, its name too if it is asked for. The error is ErrGone if there is none.
func look(pid int, name *string) (entry, error) {
	if pid <= 0 {
		return entry{}, ErrGone
	}
	var path [32]byte
	fd, err := openRetry(string(append(strconv.AppendInt(append(path[:0], "/proc/"...), int64(pid), 10), "/stat"...)))
	if err != nil {
		return entry{}, missing(pid, err)
	}
	defer unix.Close(fd)
	var buf [1024]byte // the 22 fields that are of use take 500 at most
	n, err := readRetry(fd, buf[:])
	if err != nil {
		return entry{}, missing(pid, err)
	}
	return parseStat(buf[:n], name)
}

// missing tells a process that is gone from one that /proc does not show: /proc may not be mounted, or hide others'.
// Signal 0 only asks.
func missing(pid int, err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) && unix.Kill(pid, 0) == unix.ESRCH {
		return ErrGone
	}
	return err
}

func openRetry(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func readRetry(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// Fields of /proc/PID/stat, counted from the state, which comes right after the name.
const (
	fieldState   = 0
	fieldParent  = 1
	fieldThreads = 17
	fieldStart   = 19
)

// parseStat reads a line of /proc/PID/stat: pid (name) state parent … The name may hold anything, spaces, parentheses
// and newlines too, so it ends at the last parenthesis: only numbers follow.
func parseStat(line []byte, name *string) (entry, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return entry{}, unknownStat(line)
	}
	var e entry
	var state byte
	var threads uint64
	rest := line[end+1:]
	for field := 0; field <= fieldStart; field++ {
		rest = bytes.TrimLeft(rest, " ")
		width := bytes.IndexAny(rest, " \n")
		if width <= 0 {
			return entry{}, unknownStat(line)
		}
		switch field {
		case fieldState:
			state = rest[0]
		case fieldParent:
			e.parent = int(number(rest[:width]))
		case fieldThreads:
			threads = number(rest[:width])
		case fieldStart:
			e.start = number(rest[:width])
		}
		rest = rest[width:]
	}
	e.status = statusOf(state, threads)
	if name != nil {
		*name = string(line[open+1 : end])
	}
	return e, nil
}

// unknownStat copies the line, so that a caller's buffer can stay on its stack.
func unknownStat(line []byte) error { return fmt.Errorf("unknown form of stat %q", string(line)) }

// number is 0, a start time that is not known, for anything that is not a plain number.
func number(digits []byte) (n uint64) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

func statusOf(state byte, threads uint64) Status {
	switch state {
	case 'Z', 'X', 'x':
		// The first thread may have ended before the others; the process runs on.
		if threads > 1 {
			return Running
		}
		return Gone
	case 'T', 't':
		return Stopped
	}
	return Running
}

// args reads the command line that the pid has now.
func args(pid int) ([]string, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil, missing(pid, err)
	}
	return splitArgs(string(raw)), nil
}

func hold(pid int) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		return -1, nil
	}
	return fd, err
}

func (h *Handle) send(sig syscall.Signal) error {
	if h.fd < 0 {
		return unix.Kill(h.id.PID, sig)
	}
	return unix.PidfdSendSignal(h.fd, sig, nil, 0)
}

func bootID() (string, error) {
	fd, err := openRetry("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var buf [64]byte // a UUID and a newline
	n, err := readRetry(fd, buf[:])
	return strings.TrimSpace(string(buf[:max(n, 0)])), err
}

const (
	clockBoot  = unix.CLOCK_BOOTTIME
	clockAwake = unix.CLOCK_MONOTONIC
)
