package wake

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"vx/internal/lock"
)

// sweepMost is how many entries of .tmp one Prepare looks at: two hundred awaits that start at once are not to look at each
// other's forty thousand times.
const sweepMost = 4

// Prepare makes the directory of the next delivery, where that is not done yet, before there is anything to deliver: to
// make new files is the larger part of a claim on a disk. It lies in .tmp until then, its owner locked, with an empty note,
// which says that nothing was printed. What a process leaves of it that is killed, one of the next removes.
func (q *Queue) Prepare() error {
	if q.spare != nil {
		return nil
	}
	q.sweep()
	d, err := q.makeDelivery()
	if err == nil && d.owner == nil {
		// No locks here: a directory's age tells whether it is in use, so that it is made when it is used.
		return d.remove()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "to.json"), nil, 0o600)
	}
	if err != nil {
		return errors.Join(err, d.remove())
	}
	q.spare = d
	return nil
}

// Unprepare takes back what Prepare made.
func (q *Queue) Unprepare() error {
	d := q.spare
	q.spare = nil
	return d.remove()
}

// Spare is the lock of what Prepare made, a path, for a process that goes on as another program; "" where there is
// nothing. See TakeUp.
func (q *Queue) Spare() string {
	if q.spare == nil {
		return ""
	}
	return filepath.Join(q.spare.dir, "owner")
}

// TakeUp goes on with what the process had prepared before it became another program. Somebody may have removed it
// meanwhile, or be about to: then there is nothing.
func (q *Queue) TakeUp(spare string) {
	if q.spare != nil || spare == "" {
		return
	}
	owner, err := lock.Try(spare)
	if err != nil {
		return
	}
	dir := filepath.Dir(spare)
	q.spare = &Delivery{Token: filepath.Base(dir), q: q, dir: dir, owner: owner}
}

// takeSpare is the delivery that was prepared, shown; nil where there is none, or somebody has removed it.
func (q *Queue) takeSpare() *Delivery {
	d := q.spare
	if d == nil {
		return nil
	}
	q.spare = nil
	now := time.Now() // another machine, which cannot see the lock, goes by the age
	if os.Chtimes(d.dir, now, now) == nil && d.show() == nil {
		return d
	}
	_ = d.remove()
	return nil
}

// sweep removes some of what processes that were killed had prepared.
func (q *Queue) sweep() {
	dir, err := os.Open(q.join(".tmp"))
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(sweepMost)
	for _, name := range names {
		path := filepath.Join(dir.Name(), name)
		fi, err := os.Lstat(path)
		if err != nil || !fi.IsDir() || time.Since(fi.ModTime()) < lockless {
			continue // young: its owner may not be locked yet
		}
		owner, gone, err := takeOver(path)
		if err != nil || !gone {
			continue
		}
		_ = removeDelivery(path) // with a wake in it, which cannot be, it would stay
		if owner != nil {
			owner.Unlock()
		}
	}
}
