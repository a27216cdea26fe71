package commander

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vx/internal/atomicfile"
	"vx/internal/awaiter"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
)

// Live are a project's commanders: those that are registered and whose process runs, and whoever has a live await; one
// a process, the oldest first. What is kept of others is removed. The error says what could not be read.
func Live(dir *state.Dir, p *state.Project) ([]Entry, error) {
	live, dead, err := look(p)
	awaits, awaitErr := awaiter.List(dir, p)
	return together(live, awaits), errors.Join(err, awaitErr, bury(p, dead))
}

// Look is Live for a reader that must not write.
func Look(dir *state.Dir, p *state.Project) ([]Entry, error) {
	live, _, err := look(p)
	awaits, _, awaitErr := awaiter.Look(dir, p)
	return together(live, awaits), errors.Join(err, awaitErr)
}

// look reads the registry: who lives, and whose files are of no more use. One that cannot be read and whose process runs
// keeps nobody from the others.
func look(p *state.Project) (live []Entry, dead []proc.ID, err error) {
	names, err := atomicfile.Names(p.Join(folder))
	if err != nil {
		return nil, nil, fmt.Errorf("commanders: %w", err)
	}
	var errs []error
	for _, name := range names {
		id, ok := processOf(name)
		if !ok {
			continue
		}
		r, err := read(p.Join(folder, name))
		switch {
		case errors.Is(err, os.ErrNotExist): // it left just now
		case r.gone(id):
			dead = append(dead, id)
		case err != nil:
			errs = append(errs, fmt.Errorf("commander %s: %w", name, err))
		default:
			live = append(live, r.Entry)
		}
	}
	return live, dead, errors.Join(errs...)
}

// bury removes what is kept of processes that have ended. Whoever writes just now does it the next time.
func bury(p *state.Project, dead []proc.ID) error {
	if len(dead) == 0 {
		return nil
	}
	l, err := lock.Try(p.Join(folder, lockName))
	if errors.Is(err, lock.ErrHeld) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("commanders: %w", err)
	}
	defer l.Unlock()
	var errs []error
	for _, id := range dead {
		path := p.Join(folder, fileOf(id))
		// Read again: before the machine's last start another process may have had the same pid at the same age.
		if r, _ := read(path); !r.gone(id) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("commander %s: %w", filepath.Base(path), err))
		}
	}
	return errors.Join(errs...)
}

// together joins what both registries know of each process.
func together(registered []Entry, awaits []awaiter.Entry) []Entry {
	all := registered
	for _, a := range awaits {
		i := slices.IndexFunc(all, func(e Entry) bool { return !a.Client.IsZero() && e.Process == a.Client })
		if i < 0 {
			all = append(all, ofAwait(a))
			continue
		}
		e := &all[i]
		e.Waits = true
		if e.Pane == "" {
			e.Pane, e.Socket = a.Pane, a.Socket
		}
		// Whoever spoke last knows the session: a client can begin another one.
		if e.Session == "" || a.Session != "" && a.Since.After(e.told) {
			e.Session = a.Session
		}
		if a.Since.Before(e.Since) {
			e.Since = a.Since
		}
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Process.PID, b.Process.PID))
	})
	return all
}

func ofAwait(a awaiter.Entry) Entry {
	return Entry{
		Harness: a.Harness, Session: a.Session, Process: a.Client, Pane: a.Pane, Socket: a.Socket,
		Since: a.Since, Waits: true, told: a.Since,
	}
}
