package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"vx/hook"
	"vx/internal/commander"
	"vx/internal/pace"
	"vx/internal/state"
	"vx/internal/wake"
)

// longAgo is how long a delivery may be under way; it takes milliseconds.
const longAgo = time.Minute

// deliveries looks for those that are under way for longer than one can take.
func deliveries(_ context.Context, p *Patient) []Result {
	if p.Project == nil {
		return nil
	}
	l, err := wake.Open(p.Project).List(1)
	if err != nil {
		return failure("", "%v", err)
	}
	var all []Result
	for _, f := range append(l.Claimed, l.Emitted...) {
		if !f.Live || p.Now.Sub(f.Since) < longAgo {
			continue
		}
		to, fix := "nobody yet", "end the await that holds it; the wake then goes back to the queue"
		if r := f.Recipient; r != nil && r.Client.PID != 0 {
			to = fmt.Sprintf("process %d", r.Client.PID)
		}
		all = append(all, warning(fix, "wake %s is on its way to %s since %s", f.Wake.ID, to, p.clock(f.Since))...)
	}
	if len(all) == 0 {
		return ok("none hangs")
	}
	return all
}

// quarantined looks for what could not be read or shown, or never reached a model.
func quarantined(_ context.Context, p *Patient) []Result {
	if p.Project == nil {
		return nil
	}
	l, err := wake.Open(p.Project).List(1)
	if err != nil {
		return failure("", "%v", err)
	}
	if len(l.Bad) == 0 {
		return ok("none")
	}
	newest := l.Bad[len(l.Bad)-1]
	return warning("read them there, then remove them; vx wake log says why each is there", "%d in %s, the newest is %q",
		len(l.Bad), home(filepath.Dir(newest.Path)), newest.Name)
}

// brakes names clients that are woken slowly because their turns wake each other.
func brakes(_ context.Context, p *Patient) []Result {
	if p.Project == nil {
		return nil
	}
	braked, err := pace.Brakes(p.Project)
	var all []Result
	if err != nil {
		all = warning("vx wake log", "%v", err)
	}
	for _, b := range braked {
		all = append(all, warning("give it a prompt", "process %d is woken every %s at most, next at %s: its own turns wake it",
			b.Client.PID, b.Interval, p.clock(b.Next))...)
	}
	live, _ := commander.Look(p.State, p.Project) // what cannot be read has a check of its own
	for _, e := range live {
		if turns, wait := pace.Failing(e.Process); wait > 0 {
			all = append(all, warning("see there what fails; a turn that works ends it", "turns of process %d ended in an API error, %d in a row: no wake for it until %s",
				e.Process.PID, turns, p.clock(p.Now.Add(wait)))...)
		}
	}
	if len(all) == 0 {
		return ok("off")
	}
	return all
}

// forever is when a mute counts as one without an end.
const forever = 50 * 365 * 24 * time.Hour

// muted says so if wakes are to stay in the queue.
func muted(_ context.Context, p *Patient) []Result {
	if p.Project == nil {
		return nil
	}
	c, err := p.Project.Config()
	switch {
	case err != nil:
		return failure("mend it, or move it away and run vx init", "%v", err)
	case !c.Muted(p.Now):
		return nil
	case c.MutedUntil.Sub(p.Now) > forever:
		return warning("vx unmute", "wakes of this project stay in the queue")
	}
	return warning("vx unmute", "wakes of this project stay in the queue until %s", p.clock(c.MutedUntil))
}

// projects looks for those whose path is gone.
func projects(_ context.Context, p *Patient) []Result {
	if p.State == nil {
		return nil
	}
	known, bad := p.State.Projects()
	var all []Result
	for _, err := range bad {
		all = append(all, warning("look into "+p.State.Join("projects"), "%v", err)...)
	}
	for _, known := range known {
		if !known.Gone() {
			continue
		}
		h, err := wake.Open(known).Holdings()
		if err != nil {
			all = append(all, warning("look into "+known.Dir, "%v", err)...)
			continue
		}
		root := state.Quote(known.Root)
		fix := fmt.Sprintf("vx project move %s NEW, or vx project forget %s", root, root)
		all = append(all, warning(fix, "%s is gone, and holds %s", known.Root, several(h.Waiting+h.Unsettled, "wake"))...)
	}
	if len(all) == 0 {
		return ok("%d known", len(known))
	}
	return all
}

const (
	logTail = 64 << 10       // bytes at the end of the log that are looked at
	logNews = 24 * time.Hour // what is older tells nothing of today
)

// logLine is an error in the hook's log; the log is written by log/slog.
var logLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^time=(\S+) level=ERROR msg=(.*)$`)
})

// hookLog looks for errors of the last day. The hook itself must not say them: what it prints a model may read.
func hookLog(_ context.Context, p *Patient) []Result {
	var all []Result
	there := false
	for _, path := range hook.Logs() {
		tail, err := readTail(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			all = append(all, warning("look into it", "%v", err)...)
			continue
		}
		there = true
		n, last := 0, ""
		for line := range bytes.Lines(tail) {
			m := logLine().FindSubmatch(bytes.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			if at, err := time.Parse(time.RFC3339, string(m[1])); err == nil && p.Now.Sub(at) < logNews {
				n++
				last = fmt.Sprintf("at %s: %.300s", p.clock(at), m[2])
			}
		}
		if n > 0 {
			all = append(all, warning("see "+home(path), "%s in the last day, the latest %s", several(n, "error"), last)...)
		}
	}
	if len(all) == 0 && there {
		return ok("no error in the last day")
	}
	return all
}

func readTail(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO there must not make it wait
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, fi.Size()-logTail), logTail))
}
