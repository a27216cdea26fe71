package wake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/awaiter"
	"vx/internal/state"
)

// interrupted is how old a temporary file, or a directory that was being removed, must be for nobody to be at it any more.
const interrupted = 24 * time.Hour

// Garbage is something that is of no more use.
type Garbage struct {
	Path  string
	What  string // "a quarantined wake"
	Bytes int64
}

// Collect removes what has been of no more use for longer than older: quarantined wakes, acknowledged messages, rotated
// histories and logs, and the state of projects whose path is gone; also what crashes left half written, and dead awaits
// left. It never takes a wake that waits or is unsettled, or anything that it does not know. With dry it removes nothing
// and says what it would. What could not be removed does not keep it from the rest: the errors are joined.
func Collect(ctx context.Context, d *state.Dir, older time.Duration, dry bool) ([]Garbage, error) {
	c := &collector{ctx: ctx, now: time.Now(), older: older, dry: dry}
	c.collect(d)
	return c.found, errors.Join(c.errs...)
}

// collector is one run of Collect.
type collector struct {
	ctx   context.Context
	now   time.Time
	older time.Duration
	dry   bool
	found []Garbage
	errs  []error
}

func (c *collector) fail(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.errs = append(c.errs, err)
	}
}

func (c *collector) collect(d *state.Dir) {
	c.awaiters(d)
	c.interrupted(d.Path(), func(name string) bool {
		return strings.HasPrefix(name, ".state.json") || strings.HasPrefix(name, ".sentinel.") || strings.HasPrefix(name, ".probe-") // doctor's
	})
	c.file(d.Join("hook.log.1"), "a rotated log", c.older)
	c.graves(d.Join("projects"))
	projects, bad := d.Projects()
	c.errs = append(c.errs, bad...)
	for _, p := range projects {
		q := Open(p)
		if !c.dry {
			c.fail(q.Settle(c.ctx))
		}
		if !p.Gone() || !c.project(q) {
			c.queue(q)
		}
	}
}

// awaiters removes what dead awaits left; List would do the same.
func (c *collector) awaiters(d *state.Dir) {
	_, left, err := awaiter.Look(d, nil)
	c.fail(err)
	for _, path := range left {
		c.found = append(c.found, Garbage{path, "left by an await that died", size(path)})
	}
	if len(left) > 0 && !c.dry {
		_, err := awaiter.List(d, nil)
		c.fail(err)
	}
}

// graves finishes what a crash left of a project's removal, unless there is something in it: then a person is to see to
// it. A name with a dot is no project's.
func (c *collector) graves(dir string) {
	names, err := atomicfile.Names(dir)
	c.fail(err)
	for _, name := range names {
		if !strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir, name)
		if h, err := buried(path).Holdings(); err != nil || !h.Empty() {
			c.fail(errors.Join(err, fmt.Errorf("%s: holds wakes of a project that was being forgotten; remove it by hand", path)))
			continue
		}
		c.file(path, "left half done by a crash", interrupted)
	}
}

// project removes the state of a project that is gone, if it holds nothing and has not changed for long.
func (c *collector) project(q *Queue) bool {
	h, err := q.Holdings()
	if err != nil {
		c.fail(err)
		return false
	}
	if !h.Empty() || !c.old(h.Changed, c.older) {
		return false
	}
	if !c.dry {
		err = q.Forget(c.ctx, false)
	}
	if _, ok := errors.AsType[*Refusal](err); ok {
		return false // it has come to life since
	}
	if err != nil {
		c.fail(err)
		return false
	}
	c.found = append(c.found, Garbage{q.Project.Dir, "the state of " + q.Project.Root + ", which is gone", h.Bytes})
	return true
}

// queue removes the old parts of a project's queue.
func (c *collector) queue(q *Queue) {
	bad, err := q.bad()
	c.fail(err)
	for _, b := range bad {
		c.file(b.Path, "a quarantined wake", c.older)
	}
	c.file(q.historyFile()+".1", "a rotated history", c.older)
	old, err := atomicfile.Names(q.Project.Join(oldMessages))
	c.fail(err)
	for _, name := range old {
		c.file(q.Project.Join(oldMessages, name), "an acknowledged message", c.older)
	}
	c.interrupted(q.Project.Join("forum-inbox"), func(name string) bool { return strings.HasPrefix(name, ".") && name != ".lock" })
	c.interrupted(q.Project.Join("tasks"), func(name string) bool { return strings.HasPrefix(name, ".") && strings.Contains(name, ".json") })
	c.interrupted(q.join(".tmp"), func(string) bool { return true })
	c.interrupted(q.Project.Dir, isTemp)
}

// interrupted removes the entries of a directory that are meant, if nobody is at them any more.
func (c *collector) interrupted(dir string, meant func(name string) bool) {
	names, err := atomicfile.Names(dir)
	c.fail(err)
	for _, name := range names {
		if meant(name) {
			c.file(filepath.Join(dir, name), "left half done by a crash", interrupted)
		}
	}
}

// file removes a file, or a directory with what is in it, that has not changed for so long.
func (c *collector) file(path, what string, age time.Duration) {
	fi, err := os.Lstat(path)
	if err != nil {
		c.fail(err)
		return
	}
	if !c.old(later(fi.ModTime(), changeTime(fi)), age) || fi.IsDir() && owned(path) {
		return
	}
	g := Garbage{path, what, size(path)}
	if !c.dry {
		if err := os.RemoveAll(path); err != nil {
			c.fail(fmt.Errorf("gc: %w", err))
			return
		}
	}
	c.found = append(c.found, g)
}

func (c *collector) old(changed time.Time, age time.Duration) bool { return c.now.Sub(changed) > age }

// size is how many bytes the files at a path hold.
func size(path string) (n int64) {
	filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if fi, err := e.Info(); err == nil {
				n += fi.Size()
			}
		}
		return nil
	})
	return n
}
