package sentinel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"vx/internal/awaiter"
	"vx/internal/forum"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// House looks after what awaits and deliveries leave behind, in every project: awaits whose client is gone are ended,
// deliveries whose owner is gone are settled or taken back, messages that nobody rang for are rung for. It remembers what
// it saw, so that a sweep in which nothing happened costs some stats.
type House struct {
	dir *state.Dir
	log *slog.Logger

	projects watched[*state.Project]
	awaits   watched[awaiter.Entry]
	sent     map[string]*traces // by the project's directory
	said     map[string]string  // the last complaint about each thing

	meet func(context.Context, []awaiter.Entry) // is told who waits, after each look; nil: nobody is
}

// traces tell whether something was left behind in a project.
type traces struct {
	deliveries wake.Outstanding
	inbox      forum.Watch
}

// NewHouse is a house that has not been looked at yet.
func NewHouse(dir *state.Dir, log *slog.Logger) *House {
	return &House{dir: dir, log: log, sent: map[string]*traces{}, said: map[string]string{}}
}

// Keep does what there is to do now. What it cannot do it logs, once, and tries again the next time.
func (h *House) Keep(ctx context.Context) {
	awaits := h.stopOrphans()
	if h.meet != nil {
		h.meet(ctx, awaits)
	}
	sent := map[string]*traces{}
	for _, p := range h.Projects() {
		t := h.sent[p.Dir]
		if t == nil {
			t = new(traces)
		}
		sent[p.Dir] = t
		if q := wake.Open(p); t.deliveries.Look(q) {
			h.complain("settle "+p.Dir, q.Settle(ctx))
		}
		if t.inbox.Look(p) {
			h.complain("inbox of "+p.Dir, forum.Recover(ctx, p))
		}
	}
	h.sent = sent // of projects that are gone nothing is kept
}

// Projects are all projects of the state directory that can be read.
func (h *House) Projects() []*state.Project {
	path := h.dir.Join("projects")
	all, err := h.projects.look(path, func() ([]*state.Project, error) {
		all, bad := h.dir.Projects()
		return all, errors.Join(bad...)
	})
	h.complain("projects", err)
	return all
}

// stopOrphans ends awaits whose client is proven to be gone: they serve nobody and answer the bell. They end by themselves
// as a rule. It returns all that there are.
func (h *House) stopOrphans() []awaiter.Entry {
	all, err := h.awaits.look(h.dir.Awaiters(), func() ([]awaiter.Entry, error) { return awaiter.List(h.dir, nil) })
	h.complain("awaiters", err)
	for _, e := range all {
		if e.Client.Status() != proc.Gone || !e.Live() {
			continue
		}
		err := e.Terminate()
		if errors.Is(err, proc.ErrGone) {
			err = nil
		}
		h.complain(fmt.Sprint("orphan ", e.Process.PID), err)
	}
	return all
}

// complain logs an error once, not at every sweep. A nil error ends the complaint.
func (h *House) complain(about string, err error) {
	if err == nil {
		delete(h.said, about)
		return
	}
	if text := err.Error(); text != h.said[about] {
		h.said[about] = text
		h.log.Error(about, "err", text)
	}
}

const (
	// coarse is how long a directory must have been left alone for an unchanged modification time to mean that nothing
	// changed: kernels stamp coarsely.
	coarse = 2 * time.Second
	// lookAgain is how long what was seen is believed at most.
	lookAgain = time.Minute
)

// watched is what a directory held when it was read last.
type watched[T any] struct {
	changed, read time.Time
	all           []T
}

// look is what read returns, or what it returned last if nothing has come or gone in the directory since. What could not
// be read whole is read again.
func (w *watched[T]) look(dir string, read func() ([]T, error)) ([]T, error) {
	now := time.Now()
	fi, err := os.Stat(dir)
	if err != nil {
		*w = watched[T]{}
		return nil, err
	}
	since := now.Sub(w.read)
	if fi.ModTime().Equal(w.changed) && w.read.Sub(w.changed) > coarse && since >= 0 && since < lookAgain {
		return w.all, nil
	}
	all, err := read()
	*w = watched[T]{fi.ModTime(), now, all}
	if err != nil {
		w.changed = time.Time{}
	}
	return all, err
}
