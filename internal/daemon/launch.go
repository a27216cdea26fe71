package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"vx/internal/atomicfile"
	"vx/internal/state"
)

// Launching reports whether this process is to be nothing but a launcher, which Launch is: a program asks before it does
// anything else.
func Launching() bool {
	return len(os.Args) == 2 && os.Args[1] == command && os.Getenv(stage) == launcher
}

// Launch starts the sentinel, with the lock that it was given and nothing else, and returns the launcher's exit status.
// Descriptors that the starter had from its own parent end here.
func Launch() int {
	dir, err := state.Look()
	if err != nil {
		return 1 // nobody is there to be told but whoever counts the starts
	}
	unix.Umask(0o077)
	log, err := atomicfile.OpenLog(dir.Join(LogName))
	if err != nil {
		return 1
	}
	defer log.Close()
	if err := launchSentinel(dir, log); err != nil {
		slog.New(slog.NewTextHandler(log, nil)).Error("start", "err", err)
		return 1
	}
	return 0
}

func launchSentinel(dir *state.Dir, log *os.File) error {
	if !leadsTo(dir.Join(lockName), handed) {
		return errors.New("descriptor 3 is not the sentinel's lock")
	}
	if err := closeOnExec(); err != nil {
		return fmt.Errorf("descriptors: %w", err)
	}
	path, err := invoked()
	if err != nil {
		return err
	}
	// Before the program is started: if it is replaced while it starts, the sentinel finds that out.
	file, err := identify(path)
	if err != nil {
		return err
	}
	build, err := json.Marshal(Build{Path: path, File: file})
	if err != nil {
		return err
	}
	// Each descriptor is 0 to 3 already, so that none must be copied out of another's way; stderr is the log, for what a
	// crash has to say.
	if _, err = spawn(path, environment(dir, string(build)), 0, 1, log.Fd(), handed); err != nil {
		return err
	}
	return unix.Close(handed) // however long this process takes to end, it is no second one that holds the lock
}

// closeOnExec keeps all descriptors but the first three from whatever is started without naming them.
func closeOnExec() error {
	all, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, e := range all {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// inherited is the lock that this process was handed, and the program that its launcher found; -1 if it was not
// launched.
func inherited(dir *state.Dir) (int, Build, error) {
	var build Build
	value := os.Getenv(stage)
	if value == "" {
		return -1, build, nil
	}
	os.Unsetenv(stage)
	if err := json.Unmarshal([]byte(value), &build); err != nil {
		return -1, build, fmt.Errorf("%s: %w", stage, err)
	}
	unix.CloseOnExec(handed)
	if !leadsTo(dir.Join(lockName), handed) {
		return -1, build, errors.New("sentinel lock: what was handed over is not the lock of this state directory")
	}
	// Held already, but by whom a variable in the environment is no proof.
	if err := tryLock(handed, unix.LOCK_EX); err != nil {
		return -1, build, fmt.Errorf("sentinel lock: %w", err)
	}
	noCore()
	return handed, build, nil
}

// noCore keeps a crash from leaving the memory of the process in some directory; its stack is in the log.
func noCore() {
	var core unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &core) == nil {
		core.Cur = 0
		unix.Setrlimit(unix.RLIMIT_CORE, &core)
	}
}
