package hook

import (
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// streams are what the client reads: file descriptors, -1 for one that is not written to.
type streams struct{ stdout, stderr int }

// heard reports whether anybody reads stdout or stderr. Where it was closed at the start, Go has put /dev/null there.
func heard(fd int) bool {
	var out, null unix.Stat_t
	if unix.Fstat(fd, &out) != nil {
		return false
	}
	if out.Mode&unix.S_IFMT != unix.S_IFCHR {
		return true
	}
	return unix.Stat(os.DevNull, &null) != nil || out.Rdev != null.Rdev
}

// shield sees to it that no crash looks like a delivery: a fatal error of the Go runtime aborts instead of ending with
// 2, dumps no core over the project, and does not write to the client's stderr, which moves to another descriptor.
func shield() (streams, error) {
	debug.SetTraceback("crash")
	var core unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &core) == nil {
		core.Cur = 0
		unix.Setrlimit(unix.RLIMIT_CORE, &core)
	}
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return streams{}, fmt.Errorf("stderr: %w", err)
	}
	null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(null)
		err = dup2(null, 2)
	}
	if err != nil {
		return streams{}, fmt.Errorf("stderr: %w", err)
	}
	return streams{stdout: 1, stderr: fd}, nil
}

// crashLog puts the log file where the runtime writes to. Until there is something to wait for /dev/null must do: other
// people's turns leave no files.
func crashLog() {
	if f, err := openLog(); err == nil {
		dup2(int(f.Fd()), 2)
		f.Close()
	}
}

// signals tells of the first signal that asks the hook to end. Until somebody looks at fd, none does anything: a delivery
// is not to be torn by one. SIGPIPE is not ignored, which children would inherit; a write to a reader who left is an error
// all the same.
type signals struct {
	fd   int // readable from then on
	told int // the other end of that pipe
}

// catchSignals begins to notice signals.
func catchSignals() (s signals, err error) {
	var ends [2]int
	if err := pipe(&ends); err != nil {
		return s, fmt.Errorf("signal pipe: %w", err)
	}
	s = signals{fd: ends[0], told: ends[1]}
	return s, s.catch()
}
