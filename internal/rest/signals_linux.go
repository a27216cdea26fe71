//go:build amd64 || arm64

package rest

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ending are the signals that ask a process to end.
var ending = [...]syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT}

// action is a struct sigaction as the kernel has it.
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// noteSignalPC is where noteSignal begins; see signals_linux_amd64.s.
var noteSignalPC uintptr

// told is the descriptor that noteSignal writes a byte to.
var told int64

// A catcher has taken the signals from the Go runtime.
type catcher [len(ending)]action

// catch makes each of the signals that ask a process to end write a byte to a descriptor, and do nothing else. The runtime
// can tell of signals as well, but keeps three threads for it, which take more memory than all the rest of a rest.
func (c *catcher) catch(fd int) error {
	told = int64(fd)
	for i, sig := range ending {
		if err := sigaction(sig, nil, &c[i]); err != nil {
			return err
		}
		ours := c[i]
		ours.handler = noteSignalPC
		if err := sigaction(sig, &ours, nil); err != nil {
			return err
		}
	}
	return nil
}

// giveBack gives the signals back to the runtime.
func (c *catcher) giveBack() {
	for i, sig := range ending {
		if c[i].handler != 0 {
			sigaction(sig, &c[i], nil)
		}
	}
}

func sigaction(sig syscall.Signal, set, old *action) error {
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)),
		unsafe.Sizeof(old.mask), 0, 0)
	if errno != 0 {
		return fmt.Errorf("action of %v: %w", sig, errno)
	}
	return nil
}
