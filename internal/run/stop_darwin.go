package run

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stop gives the signal, which any thread may take, the time to take effect. A sleep ends after the process was
// continued.
func stop() {
	unix.Kill(os.Getpid(), unix.SIGTSTP)
	time.Sleep(500 * time.Millisecond)
}
