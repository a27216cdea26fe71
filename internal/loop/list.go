package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
)

// State is what a run is at.
type State string

// The states. Silent is a run without a marker, of a process that is not known, in whose directory nothing has changed for
// an hour: it is active, or has ended without a word.
const (
	Running    State = "running"
	PauseAsked State = "pause asked for" // and not known to have taken effect
	Paused     State = "paused"
	Stopping   State = "stopping"
	Dead       State = "dead"
	Ended      State = "ended"
	Silent     State = "silent"
)

// quietFor makes a run silent. A worker of ralph.sh may take that long.
const quietFor = time.Hour

// Kinds of runs that vx does not own.
const (
	kindOriginal = "ralph.sh"
	kindShell    = "shell"
)

// Found is a run as somebody finds it who does not own it. All text in it is cleaned and cut.
type Found struct {
	ID        string
	Dir       string
	Kind      string // "green", "ralph", "ralph.sh", "shell"
	Title     string
	State     State
	Reason    Reason // why it has ended; "" while it has not
	Iteration int    // 0: none has begun
	Limit     int    // how many there may be; 0: not known
	Spec      string
	Task      string
	Started   time.Time // zero where it is not known
	Changed   time.Time // when it was last heard of, or ended

	Pause   bool      // PAUSE is there
	Stop    bool      // STOP is there
	AskedAt time.Time // when PAUSE was made
	// PausedAt is when the pause took effect; zero: it has not, or, where Tells is false, nobody can say.
	PausedAt time.Time
	Tells    bool // its loop says when a pause takes effect
	// Fresh says that this very look has found the run dead.
	Fresh bool

	record *Record // nil for one that vx does not own
}

// Active reports whether the run has no marker.
func (f *Found) Active() bool { return f.Reason == "" }

// Worker is the process that works for the run now, where it is known and lives.
func (f *Found) Worker() (proc.ID, bool) {
	if w := f.worker(); w != nil && (w.Status() == proc.Running || w.Status() == proc.Stopped) {
		return w.ID, true
	}
	return proc.ID{}, false
}

// worker is what was written down of a worker, on this boot of this machine.
func (f *Found) worker() *Worker {
	r := f.record
	if r == nil || r.Worker == nil || !r.here() || r.BootID == "" || r.BootID != proc.BootID() {
		return nil
	}
	return r.Worker
}

// Owner is the process of the run's loop, where it is known and lives.
func (f *Found) Owner() (proc.ID, bool) {
	if f.record == nil || !f.Active() {
		return proc.ID{}, false
	}
	return f.record.ID, true
}

// Heartbeat is when the owner last said that it lives; zero for a run that vx does not own.
func (f *Found) Heartbeat() time.Time {
	if f.record == nil {
		return time.Time{}
	}
	return f.record.Heartbeat
}

// originals is where ralph.sh keeps the runs of a project.
func originals(root string) string { return filepath.Join(root, "scripts", "ralph", "runs") }

// List are the runs of the project at a root, the newest first, and what could not be read of them. p is its state, nil
// where it has none yet. A run of vx whose owner is gone gets its marker here.
func List(root string, p *state.Project) ([]Found, []error) { return new(Lister).List(root, p) }

// Lister lists again and again, as the sentinel does, and remembers runs that have ended: most of them have.
type Lister struct{ ended map[string]remembered }

// remembered is a run that had ended when its progress.txt was like this.
type remembered struct {
	size    int64
	changed time.Time
	found   Found
}

// List is as the function of that name.
func (l *Lister) List(root string, p *state.Project) ([]Found, []error) {
	var all []Found
	var bad []error
	seen := map[string]bool{}
	look := func(dir, kind string, links bool) {
		names, err := atomicfile.Names(dir)
		if err != nil {
			bad = append(bad, fmt.Errorf("runs: %w", err))
		}
		for _, name := range names {
			at := filepath.Join(dir, name)
			if fi, err := os.Lstat(at); err != nil || !fi.IsDir() && !(links && fi.Mode().Type() == fs.ModeSymlink) {
				continue
			}
			resolved, err := resolve(at)
			if err != nil || seen[resolved] {
				continue // a link to what is gone, or to what was seen
			}
			seen[resolved] = true
			f, err := l.find(resolved, name, kind)
			if err != nil {
				bad = append(bad, fmt.Errorf("run %s: %w", line(name), err))
			}
			if f != nil {
				all = append(all, *f)
			}
		}
	}
	look(originals(root), kindOriginal, false)
	if p != nil {
		look(p.Join(runsDir), kindShell, true)
	}
	for dir := range l.ended {
		if !seen[dir] {
			delete(l.ended, dir)
		}
	}
	slices.SortFunc(all, func(a, b Found) int {
		if c := b.Started.Compare(a.Started); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	return all, bad
}

// find is find that reads no run twice that has ended.
func (l *Lister) find(dir, id, kind string) (*Found, error) {
	fi, err := os.Lstat(filepath.Join(dir, progressFile))
	if err == nil {
		if r, ok := l.ended[dir]; ok && r.size == fi.Size() && r.changed.Equal(fi.ModTime()) && r.found.ID == id {
			r.found.Fresh = false
			return &r.found, nil
		}
	}
	f, trouble := find(dir, id, kind)
	if f != nil && !f.Active() && trouble == nil && err == nil {
		if l.ended == nil {
			l.ended = map[string]remembered{}
		}
		l.ended[dir] = remembered{fi.Size(), fi.ModTime(), *f}
	}
	return f, trouble
}

// find is the run in a directory, nil where there is none. With an error it says what is known all the same.
func find(dir, id, kind string) (*Found, error) {
	record, trouble := readRecord(dir)
	p, err := readProgress(dir)
	trouble = errors.Join(trouble, err)
	if record == nil && !p.there {
		return nil, trouble
	}
	f := &Found{ID: id, Dir: dir, Kind: kind, record: record, Tells: kind != kindOriginal}
	if record != nil && p.reason == "" && record.gone(time.Now()) {
		if p, err = f.bury(p); err != nil {
			trouble = errors.Join(trouble, err)
		}
	}
	f.take(&p)
	return f, trouble
}

// bury writes the marker of a run whose owner is gone. Of several that find it one does; the others wait for it. Where the
// lock is held for longer, the owner lives where this process cannot see it.
func (f *Found) bury(p progress) (progress, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l, err := lock.Wait(ctx, filepath.Join(f.Dir, lockFile))
	if errors.Is(err, lock.ErrHeld) {
		return p, nil
	}
	if err != nil {
		f.State = Dead
		return p, err
	}
	defer l.Unlock()
	f.State = Dead
	reason, fresh, err := end(f.Dir, Crashed, fmt.Sprintf("process %d, whose run this is, has ended without a word", f.record.PID))
	if err != nil {
		return p, err
	}
	f.Fresh = fresh
	now, err := readProgress(f.Dir)
	now.reason = reason
	return now, err
}

// take draws the conclusions.
func (f *Found) take(p *progress) {
	f.Reason, f.Changed, f.Started = p.reason, p.changed, p.started
	f.Spec, f.Task = p.values["spec"], p.values["task"]
	if f.Spec == "" {
		f.Spec = p.values["epic"]
	}
	last, changed := iterLogs(f.Dir)
	// ralph.sh writes of an iteration when it is over.
	f.Iteration = max(p.iteration(), last)
	if changed.After(f.Changed) && f.Reason == "" {
		f.Changed = changed
	}
	if r := f.record; r != nil {
		f.Kind, f.Title, f.Started, f.Limit = line(r.Kind), line(r.Title), r.Started, r.Limits.Iterations
		f.Tells = true
	}
	f.Stop, _ = has(f.Dir, stopFile)
	if fi, err := os.Lstat(filepath.Join(f.Dir, pauseFile)); err == nil {
		f.Pause, f.AskedAt = true, fi.ModTime()
		f.PausedAt = p.pausedSince()
		f.Tells = f.Tells || !f.PausedAt.IsZero()
	}
	silent := f.record == nil && time.Since(f.Changed) > quietFor
	switch {
	case f.Reason == Crashed || f.State == Dead && f.Reason == "":
		f.State = Dead
	case f.Reason != "":
		f.State = Ended
	case f.Stop && !silent:
		f.State = Stopping
	case f.Pause && !f.Stop && !f.PausedAt.IsZero():
		f.State = Paused
	case f.Pause && !f.Stop:
		f.State = PauseAsked
	case silent:
		f.State = Silent
	default:
		f.State = Running
	}
}

var iterLog = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^iter-([0-9]{1,9})\.log$`) })

// iterLogs is the number of the last log of an iteration, 0 where there is none, and when any was written to last.
func iterLogs(dir string) (last int, changed time.Time) {
	names, _ := atomicfile.Names(dir) // what cannot be read says nothing
	for _, name := range names {
		m := iterLog().FindStringSubmatch(name)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		last = max(last, n)
		if fi, err := os.Lstat(filepath.Join(dir, name)); err == nil && fi.ModTime().After(changed) {
			changed = fi.ModTime()
		}
	}
	return last, changed
}
