package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
)

const (
	firstPause = 5 * time.Second // after a start that came to nothing; twice that after each further one
	maxPause   = 5 * time.Minute
)

// Ensure starts a sentinel, detached, if none runs. It waits for nothing: whether the start came to something the next
// one to call it finds out. The error is a *Failing as long as the starts before have come to nothing and it is too early
// for another.
//
// While a sentinel runs it costs one attempt at its lock.
func Ensure(dir *state.Dir) error {
	fd, err := take(dir)
	if errors.Is(err, lock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	// Closed, and not unlocked: what was started holds it too.
	defer unix.Close(fd)
	return start(dir, fd)
}

// farewell is how long one that is about to leave may take: it looks after each sweep, at five seconds each.
const farewell = 7 * time.Second

// EnsureCurrent is Ensure for a command that gives the sentinel something new to watch. If the one that runs is about to
// leave, since its path leads to another program, it waits a moment for that; who runs else is good enough.
func EnsureCurrent(ctx context.Context, dir *state.Dir) error {
	for end := time.Now().Add(farewell); ; {
		fd, err := take(dir)
		if err == nil {
			defer unix.Close(fd)
			return start(dir, fd)
		}
		if !errors.Is(err, lock.ErrHeld) {
			return err
		}
		info, running, err := Look(dir)
		// One that holds the lock and has no name starts just now, or is about to let go.
		if err != nil || running && info.PID != 0 && !info.Replaced() {
			return err
		}
		if time.Now().After(end) || !pause(ctx) {
			return fmt.Errorf("sentinel: process %d is about to leave, and does not", info.PID)
		}
	}
}

// Failing is a sentinel that does not start.
type Failing struct {
	Times int       // in a row
	Last  time.Time // when it was tried last
	Next  time.Time // not before
	Said  string    // its log's last line, or why it could not be started at all
}

func (e *Failing) Error() string {
	said := e.Said
	if said == "" {
		said = "it did not say why"
	}
	return fmt.Sprintf("sentinel: does not start (tried %s): %.300s", times(e.Times), said)
}

// Hint is where more is to be found.
func (e *Failing) Hint() string { return "vx doctor, or to see it fail: vx sentinel" }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// starts is sentinel.starts: the starts in a row that came to nothing, as far as is known. A start counts until the
// sentinel has lived through its first sweep, or has ended in good order.
type starts struct {
	Failed int       `json:"failed"`
	Last   time.Time `json:"last"`
	Why    string    `json:"why,omitempty"` // where there was not even a process
}

// readStarts is the zero value, a fresh beginning, for a file that is not there or cannot be read.
func readStarts(dir *state.Dir) starts {
	var s starts
	data, err := os.ReadFile(dir.Join(startsName))
	if err != nil || json.Unmarshal(data, &s) != nil || s.Failed < 0 {
		return starts{}
	}
	return s
}

func (s starts) write(dir *state.Dir) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = atomicfile.Write(dir.Join(startsName), append(data, '\n'), 0o600)
	}
	return err
}

func forgetStarts(dir *state.Dir) { os.Remove(dir.Join(startsName)) }

// next is when it may be tried again.
func (s starts) next() time.Time {
	pause := firstPause
	for range s.Failed - 1 {
		pause = min(2*pause, maxPause)
	}
	return s.Last.Add(pause)
}

func (s starts) failing(dir *state.Dir) *Failing {
	said := s.Why
	if said == "" {
		said = lastLine(dir)
	}
	return &Failing{s.Failed, s.Last, s.next(), said}
}

// Failed is the sentinel that does not start, nil unless it has been tried, and none runs.
func Failed(dir *state.Dir) *Failing {
	s := readStarts(dir)
	if s.Failed == 0 {
		return nil
	}
	if _, running, err := Look(dir); running || err != nil {
		return nil
	}
	return s.failing(dir)
}

// start starts a sentinel with the lock, unless that was tried in vain a moment ago. A clock that was set back counts as
// time that has passed.
func start(dir *state.Dir, fd int) error {
	s, now := readStarts(dir), time.Now()
	if s.Failed > 0 && now.Before(s.next()) && !now.Before(s.Last) {
		return s.failing(dir)
	}
	s = starts{Failed: s.Failed + 1, Last: now.UTC()}
	// Before the start: the sentinel itself takes it back.
	if err := s.write(dir); err != nil {
		return fmt.Errorf("sentinel start: %w", err)
	}
	err := launch(dir, fd)
	if err != nil {
		s.Why = err.Error()
		err = errors.Join(fmt.Errorf("sentinel start: %w", err), s.write(dir))
	}
	return err
}

// handed is the descriptor that the lock has in what is started; 0 to 2 are stdin, stdout and stderr.
const handed = 3

// stage is the environment variable that tells what is started what it is: the launcher, or the sentinel itself, which
// finds the program there that its launcher has looked at.
const (
	stage    = "VX_SENTINEL_STAGE"
	launcher = "launch"
)

// passed are the names of what a sentinel is told of its starter's environment; not what pane or session that was in,
// and none of its secrets.
func passed(name string) bool {
	switch name {
	case "HOME", "PATH", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "LANG", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// environment is all that a sentinel of a state directory is told.
func environment(dir *state.Dir, stageValue string) []string {
	env := []string{"VEXILLUM_HOME=" + dir.Path(), stage + "=" + stageValue}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); passed(name) {
			env = append(env, e)
		}
	}
	return env
}

// launch starts the launcher, which starts the sentinel and ends: so the sentinel is nobody's child, and is not ended by
// one who ends the starter with all that descends from it.
func launch(dir *state.Dir, fd int) error {
	path, err := invoked()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := spawn(path, environment(dir, launcher), null.Fd(), null.Fd(), null.Fd(), uintptr(fd))
	if err != nil {
		return err
	}
	go bury(p) // a starter that lives on for an hour is to have no zombie
	return nil
}

func bury(pid int) {
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// spawn starts the program at a path as a sentinel, in a session of its own, and returns its pid.
func spawn(path string, env []string, files ...uintptr) (int, error) {
	p, err := syscall.ForkExec(path, []string{path, command}, &syscall.ProcAttr{
		Dir: "/", Env: env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}
