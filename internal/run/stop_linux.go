package run

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stop is over when the process was continued: a signal to the own thread takes effect before the call returns.
func stop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGTSTP)
}
