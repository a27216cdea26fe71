package daemon

import (
	"os"
	"strconv"
	"time"

	"vx/internal/proc"
	"vx/internal/state"
)

// Others are the sentinels of this state directory that are not the one that its record names: ones that go on although
// their lock file was removed. A launcher, gone within an instant, is none.
func Others(dir *state.Dir) []proc.ID {
	found := others(dir)
	if len(found) == 0 {
		return nil
	}
	time.Sleep(100 * time.Millisecond)
	var still []proc.ID
	for _, id := range found {
		if holds(id, dir.Join(lockName)) {
			still = append(still, id)
		}
	}
	return still
}

func others(dir *state.Dir) []proc.ID {
	known, _, _ := Look(dir)
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []proc.ID
	for _, e := range names {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == known.PID || pid == os.Getpid() {
			continue
		}
		if id, err := proc.Find(pid); err == nil && holds(id, dir.Join(lockName)) {
			found = append(found, id)
		}
	}
	return found
}

// holds reports whether a process is a sentinel that has a lock file open, be it removed since. Others' processes do not
// tell.
func holds(id proc.ID, path string) bool {
	args, err := proc.Args(id)
	if err != nil || !isSentinel(args) {
		return false
	}
	fds := "/proc/" + strconv.Itoa(id.PID) + "/fd"
	names, err := os.ReadDir(fds)
	if err != nil {
		return false
	}
	for _, e := range names {
		if at, err := os.Readlink(fds + "/" + e.Name()); err == nil && (at == path || at == path+" (deleted)") {
			return true
		}
	}
	return false
}
