package wake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vx/internal/lock"
	"vx/internal/state"
)

// graveName begins the name that a project's directory has while it is removed; Collect finishes what a crash left of it.
const graveName = ".forgotten-"

// Forget removes all that is kept of the project. It refuses with a *Refusal while an await or a delivery of it is live,
// while a soldier has a camp in it, and, unless it is forced, while wakes or messages wait, are unsettled, or there are tasks or anything
// that this build does not know. The
// directory is renamed first: a crash leaves it whole, or out of every command's sight.
func (q *Queue) Forget(ctx context.Context, force bool) error {
	if err := q.quiet(); err != nil {
		return err
	}
	l, err := q.hold(ctx)
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	if l != nil {
		defer l.Unlock()
	}
	if err := q.removable(q, force); err != nil {
		return err
	}
	grave := filepath.Join(filepath.Dir(q.Project.Dir), graveName+newToken())
	if err := os.Rename(q.Project.Dir, grave); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	// A script that drops a wake takes no lock: look again where nothing can come any more.
	if err := q.removable(buried(grave), force); err != nil {
		back := os.Rename(grave, q.Project.Dir)
		if errors.Is(back, fs.ErrExist) { // made anew meanwhile
			_, back = q.takeOver(ctx, buried(grave))
		}
		if back != nil {
			return errors.Join(err, fmt.Errorf("it is in %s now: %w", grave, back))
		}
		return err
	}
	if err := os.RemoveAll(grave); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	return nil
}

// hold takes the queue's lock, so that no put is on its way; nil where there is no queue.
func (q *Queue) hold(ctx context.Context) (*lock.Lock, error) {
	if _, err := os.Lstat(q.Dir()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return q.lock(ctx)
}

// removable refuses what is not to be removed unless it is forced, and camps in any case. The project's directory is at, by now.
func (q *Queue) removable(at *Queue, force bool) error {
	h, err := at.Holdings()
	switch {
	case err != nil:
		return err
	case h.Camps > 0: // with work in them perhaps that is nowhere else
		return inhabited(q.Project, h.Camps)
	case force || h.Empty():
		return nil
	case len(h.Unknown) > 0 && h.Waiting+h.Unsettled+h.Tasks+h.Messages == 0:
		return &Refusal{q.Project.Root, fmt.Sprintf("its state holds what this vx does not know (%q)", h.Unknown[0]), "look into " + q.Project.Dir}
	}
	if h.Waiting+h.Unsettled+h.Tasks == 0 {
		return &Refusal{q.Project.Root, fmt.Sprintf("it holds messages that nobody has acknowledged: %d", h.Messages), "vx forum inbox --project " + state.Quote(q.Project.Root) + "; --yes removes them too"}
	}
	if h.Waiting+h.Unsettled == 0 {
		return &Refusal{q.Project.Root, fmt.Sprintf("it holds tasks: %d", h.Tasks), "vx status --all shows them; --yes removes them too"}
	}
	return &Refusal{q.Project.Root, fmt.Sprintf("it holds wakes: waiting %d, on their way %d", h.Waiting, h.Unsettled),
		"vx wake list --project " + state.Quote(q.Project.Root) + "; --yes removes them too"}
}
