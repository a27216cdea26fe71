//go:build amd64 || arm64

package rest

import (
	"fmt"
	"sync/atomic"
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

// Catch makes each of the signals that ask a process to end write a byte to a descriptor from now on, and do nothing else.
// The runtime can tell of signals as well, but keeps three threads for it, which take more memory than all the rest of a
// rest; and what it was told is lost in an exec, where what is in a pipe is not.
func Catch(fd int) error {
	atomic.StoreInt64(&told, int64(fd)) // read by noteSignal at any moment
	// On the stack that the runtime has for signals, and back the way that it goes. Only of SIGTERM it always has a handler: a
	// signal that the process was started to ignore, as by nohup, it may leave alone.
	var a action
	if err := sigaction(unix.SIGTERM, nil, &a); err != nil {
		return err
	}
	a.handler = noteSignalPC
	for _, sig := range ending {
		if err := sigaction(sig, &a, nil); err != nil {
			return err
		}
	}
	return nil
}

func sigaction(sig syscall.Signal, set, old *action) error {
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)),
		unsafe.Sizeof(old.mask), 0, 0)
	if errno != 0 {
		return fmt.Errorf("action of %v: %w", sig, errno)
	}
	return nil
}
