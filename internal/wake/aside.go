package wake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"vx/internal/atomicfile"
	"vx/internal/awaiter"
)

// Aside is a wake that is durable beside the queue and not news yet: the record that it tells of, a task's or a message's,
// is still to be saved. A record that names it makes it news, and then it enters the queue, by one rename; one that nobody
// names is dropped. So a change and its wake are one thing, wherever a crash comes between.
type Aside struct {
	Wake Wake

	q    *Queue
	name string // in .aside
}

// taken ends the name of what waited under the wake's key and was taken out of the queue, to be folded into the aside file.
// It goes once that is done: as long as it is there it has to be folded in, once more at worst, which changes nothing.
const taken = ".taken"

// Aside makes a wake durable beside the queue. It must be complete: its id and its key, which is the task's id or the
// session's, are how a record names it.
func (q *Queue) Aside(ctx context.Context, w Wake) (*Aside, error) {
	if w.ID == "" || w.Key == "" {
		return nil, fmt.Errorf("aside %s: id or key is missing", w.ID)
	}
	if w.Schema == 0 {
		w.Schema = Schema
	}
	a := &Aside{w, q, asideName(w.Key, w.ID)}
	err := q.Ensure()
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = q.before(Asiding)
	}
	if err == nil {
		if err = os.Mkdir(q.join(".aside"), 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err == nil {
		err = a.write(w)
	}
	if err == nil {
		err = q.before(SetAside)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("aside %s: %w", w.ID, err), a.Drop(ctx))
	}
	return a, nil
}

func asideName(key, id string) string { return FileName(key) + "-" + FileName(id) + ".json" }

// Names reports whether this is the wake with that id, of that task or session. The name of its file says so: what is folded
// into it may have given it another id.
func (a *Aside) Names(key, id string) bool { return a.name == asideName(key, id) }

// Asides are the wakes that a crash left beside the queue, or that are on their way into it now.
func (q *Queue) Asides() ([]*Aside, error) {
	names, err := atomicfile.Names(q.join(".aside"))
	if err != nil {
		return nil, fmt.Errorf("asides: %w", err)
	}
	var all []*Aside
	var errs []error
	for _, name := range names {
		if !isWake(name) {
			continue
		}
		a, err := q.aside(name)
		switch {
		case err == nil:
			all = append(all, a)
		case errors.Is(err, errBad):
			errs = append(errs, fmt.Errorf("aside %s: %w", name, err), q.quarantine(q.join(".aside", name), err.Error()))
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("aside %s: %w", name, err))
		}
	}
	return all, errors.Join(errs...)
}

// FindAside is the aside wake that a record names; nil where it is in the queue already, or was never there.
func (q *Queue) FindAside(key, id string) (*Aside, error) {
	a, err := q.aside(asideName(key, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("aside %s: %w", id, err)
	}
	return a, nil
}

func (q *Queue) aside(name string) (*Aside, error) {
	data, info, err := readFile(q.join(".aside", name))
	if err != nil {
		return nil, err
	}
	w, err := parse(data, name, info.ModTime())
	if err != nil {
		return nil, err
	}
	return &Aside{w, q, name}, nil
}

// Enter puts the wake into the queue, folding what waits there under its key, and rings. It returns the wake as it waits
// now. A wake that somebody else has let in meanwhile is no error.
func (a *Aside) Enter(ctx context.Context) (Wake, error) {
	placed, err := a.enter(ctx)
	if err != nil {
		return placed, fmt.Errorf("enter %s: %w", a.Wake.ID, err)
	}
	return placed, nil
}

func (a *Aside) enter(ctx context.Context) (Wake, error) {
	q := a.q
	l, err := q.lock(ctx)
	if err != nil {
		return a.Wake, err
	}
	defer l.Unlock()
	if err := q.before(Entering); err != nil {
		return a.Wake, err
	}
	now, err := q.aside(a.name)
	if errors.Is(err, fs.ErrNotExist) {
		return a.Wake, nil
	}
	if err != nil {
		return a.Wake, err
	}
	name := now.Wake.place()
	var folded []Wake
	for placed := false; !placed; {
		if folded, err = now.takeIn(name, folded); err != nil {
			return a.Wake, err
		}
		err = atomicfile.RenameNew(now.path(), q.join(name))
		if placed = err == nil; !placed && !errors.Is(err, fs.ErrExist) { // else a script has dropped one since
			return a.Wake, err
		}
	}
	q.before(Put)
	q.recordPut(a.Wake, now.Wake)
	for _, w := range folded {
		if w.ID != now.Wake.ID {
			e := eventOf("folded", w)
			e.Into = now.Wake.ID
			q.record(e)
		}
	}
	awaiter.Ring(q.Project.State(), q.Project)
	return now.Wake, q.syncBox(name)
}

// takeIn folds what waits at a name of the queue into the aside file. It is taken out of the queue first, so that no claim
// can tell it as well. The queue's lock is held.
func (a *Aside) takeIn(name string, folded []Wake) ([]Wake, error) {
	for {
		w, err := a.readTaken()
		switch {
		case err == nil:
			placed := fold(w, a.Wake)
			placed.Kind = a.Wake.Kind // one that a script dropped there need not say it
			if err := a.write(placed); err != nil {
				return folded, err
			}
			a.Wake, folded = placed, append(folded, w)
			err = os.Remove(a.path() + taken)
		case errors.Is(err, errBad):
			err = a.q.quarantine(a.path()+taken, err.Error())
		case errors.Is(err, fs.ErrNotExist):
			if err = os.Rename(a.q.join(name), a.path()+taken); errors.Is(err, fs.ErrNotExist) {
				return folded, nil
			}
			if err == nil {
				err = a.q.before(Folding)
			}
		}
		if err != nil {
			return folded, err
		}
	}
}

func (a *Aside) readTaken() (Wake, error) {
	data, info, err := readFile(a.path() + taken)
	if err != nil {
		return Wake{}, err
	}
	return parse(data, FileName(a.Wake.Key)+".json", info.ModTime())
}

// write makes the aside file hold w: the old content, or none, stands until the new one is durable.
func (a *Aside) write(w Wake) error {
	temp, err := a.q.stage(w)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, a.path()); err != nil {
		os.Remove(temp)
		return err
	}
	return atomicfile.SyncDir(a.q.join(".aside"))
}

// Drop removes a wake that never became news. What an Enter had taken out of the queue for it goes back.
func (a *Aside) Drop(ctx context.Context) error {
	err := a.giveBack(ctx)
	if err == nil {
		err = os.Remove(a.path())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("aside %s: %w", a.Wake.ID, err)
	}
	return nil
}

func (a *Aside) giveBack(ctx context.Context) error {
	if !exists(a.path() + taken) {
		return nil
	}
	l, err := a.q.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	return a.q.restore(a.path()+taken, a.Wake.place())
}

func (a *Aside) path() string { return a.q.join(".aside", a.name) }
