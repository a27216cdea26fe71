package task

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
)

const (
	// lockWait is how long the tasks' lock is waited for: it is held for a few writes, and a frozen holder must not hang all.
	lockWait = 10 * time.Second
	maxSize  = 16 << 20 // bytes of a record; what is larger is not read
	idLen    = 16
)

// Store is a project's tasks. It may be used from several goroutines.
type Store struct {
	Project *state.Project
	mu      sync.Mutex
	seen    listing
}

// Open returns the project's tasks. Nothing is read or written yet.
func Open(p *state.Project) *Store { return &Store{Project: p} }

func (s *Store) dir() string { return s.Project.Join("tasks") }

func (s *Store) path(id string) string { return s.Project.Join("tasks", id+".json") }

// A NotFound is an id that no task of the project has.
type NotFound struct{ ID string }

func (e *NotFound) Error() string { return fmt.Sprintf("task %s: there is none", said(e.ID)) }

// Hint is the command that shows those that there are.
func (e *NotFound) Hint() string { return "vx status --all" }

// An Unreadable is a task whose record says nothing.
type Unreadable struct {
	ID, Path string
	Err      error
}

func (e *Unreadable) Error() string { return fmt.Sprintf("task %s: %v", e.ID, e.Err) }
func (e *Unreadable) Unwrap() error { return e.Err }

// Hint is what helps.
func (e *Unreadable) Hint() string { return "mend " + state.Quote(e.Path) + ", or move it away" }

// said is an id as somebody wrote it, which may be anything.
func said(id string) string {
	if id != "" && len(id) <= idLen && strings.Trim(strings.ToLower(id), "0123456789abcdef") == "" {
		return id
	}
	return fmt.Sprintf("%.40q", id)
}

// An Ambiguous is the beginning of more than one id.
type Ambiguous struct {
	ID  string
	IDs []string
}

func (e *Ambiguous) Error() string {
	return fmt.Sprintf("task %s: it may be any of %s", e.ID, strings.Join(e.IDs, ", "))
}

// Hint is what helps.
func (e *Ambiguous) Hint() string { return "write more of the id" }

// A Conflict is a task whose status is not any more what the writer saw. Nothing was saved.
type Conflict struct {
	ID       string
	Seen, Is Status
}

func (e *Conflict) Error() string {
	return fmt.Sprintf("task %s: it is %s by now, not %s", e.ID, e.Is, e.Seen)
}

// Hint is the command that shows the task.
func (e *Conflict) Hint() string { return "vx task show " + e.ID }

// A BadMove is a change of status that no task may make. Nothing was saved.
type BadMove struct {
	ID       string
	From, To Status
}

func (e *BadMove) Error() string {
	return fmt.Sprintf("task %s: from %s it cannot become %s", e.ID, e.From, e.To)
}

// locked calls f under the lock of the project's tasks.
func (s *Store) locked(ctx context.Context, f func() error) error {
	if err := s.Project.Ensure(); err != nil {
		return err
	}
	if err := os.Mkdir(s.dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("tasks: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	l, err := lock.Wait(ctx, s.Project.Join("tasks", ".lock"))
	if err != nil {
		return fmt.Errorf("tasks: %w", err)
	}
	defer l.Unlock()
	return f()
}

// Add saves a new task, with its id and times filled in, and its status where it has none.
func (s *Store) Add(ctx context.Context, t Task) (Task, error) {
	now := time.Now().UTC().Round(0)
	t.CreatedAt, t.UpdatedAt = now, now
	if t.Status == "" {
		t.Status = Pending
	}
	err := s.locked(ctx, func() error {
		for {
			var b [idLen / 2]byte
			rand.Read(b[:])
			t.ID = hex.EncodeToString(b[:])
			data, err := encode(t, nil)
			if err == nil {
				err = atomicfile.Create(s.path(t.ID), data, 0o600)
			}
			if !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	})
	if err != nil {
		return Task{}, fmt.Errorf("task: %w", err)
	}
	return t, nil
}

// Get is the task with that id. An id may be shortened while only one begins so: else the error is an *Ambiguous, and a
// *NotFound where none does.
func (s *Store) Get(prefix string) (Task, error) {
	id, err := s.find(prefix)
	if err != nil {
		return Task{}, err
	}
	t, _, err := s.read(id)
	return t, err
}

func (s *Store) find(prefix string) (string, error) {
	prefix = strings.ToLower(prefix)
	if isID(prefix) {
		return prefix, nil
	}
	names, err := atomicfile.Names(s.dir())
	if err != nil {
		return "", fmt.Errorf("tasks: %w", err)
	}
	var ids []string
	for _, name := range names {
		if id, ok := idOf(name); ok && prefix != "" && strings.HasPrefix(id, prefix) {
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return "", &NotFound{prefix}
	case 1:
		return ids[0], nil
	}
	slices.Sort(ids)
	return "", &Ambiguous{prefix, ids}
}

// Update changes a task. A status on the disk other than the one that the caller has seen is a *Conflict: a land or a
// strike in between wins. A change of status that is not in the table is a *BadMove, and an error of change is returned as
// it is; then nothing is saved. The change must not wait for anything: the lock is held. It cannot change the id, the
// kind's wakes or the times that the store keeps.
func (s *Store) Update(ctx context.Context, id string, seen Status, change func(*Task) error) (Task, error) {
	var t Task
	err := s.locked(ctx, func() error {
		old, raw, err := s.readAs(id, seen)
		if err != nil {
			return err
		}
		t, _, err = s.read(id) // one that shares nothing with old
		if err == nil {
			err = change(&t)
		}
		if err == nil {
			t.WakeID, t.WakeProject = old.WakeID, old.WakeProject
			err = s.save(&t, old, raw)
		}
		return err
	})
	if err != nil {
		return Task{}, err
	}
	return t, nil
}

// Restore takes back a change of status that could not be carried out: a task is as it was before a prompt, an answer or
// a redispatch that its agent refused. It is refused, as a *Conflict, where anything but marks of the sentinel's has
// changed since.
func (s *Store) Restore(ctx context.Context, changed, before Task) (Task, error) {
	t := before
	err := s.locked(ctx, func() error {
		now, raw, err := s.readAs(changed.ID, changed.Status)
		if err != nil {
			return err
		}
		if !now.PromptedAt.Equal(changed.PromptedAt) {
			return &Conflict{now.ID, changed.Status, now.Status}
		}
		t.ID, t.CreatedAt, t.WakeID, t.WakeProject = now.ID, now.CreatedAt, now.WakeID, now.WakeProject
		return s.write(&t, now, raw)
	})
	if err != nil {
		return Task{}, err
	}
	return t, nil
}

// Remove deletes the record of a dispatch that was undone.
func (s *Store) Remove(ctx context.Context, id string) error {
	return s.locked(ctx, func() error {
		if !isID(id) {
			return &NotFound{id}
		}
		err := os.Remove(s.path(id))
		if errors.Is(err, fs.ErrNotExist) {
			return &NotFound{id}
		}
		if err == nil {
			err = atomicfile.SyncDir(s.dir())
		}
		if err != nil {
			return fmt.Errorf("task %s: %w", id, err)
		}
		return nil
	})
}

// readAs reads a task that is to have a status. The lock is held.
func (s *Store) readAs(id string, seen Status) (Task, []byte, error) {
	t, raw, err := s.read(id)
	if err == nil && t.Status != seen {
		err = &Conflict{id, seen, t.Status}
	}
	return t, raw, err
}

// save writes t if it differs from old and its status may follow. The lock is held.
func (s *Store) save(t *Task, old Task, raw []byte) error {
	if err := old.checkMove(t.Status); err != nil {
		return err
	}
	t.ID, t.CreatedAt, t.UpdatedAt = old.ID, old.CreatedAt, old.UpdatedAt
	was, err := encode(old, nil)
	if err != nil {
		return err
	}
	is, err := encode(*t, nil)
	if err != nil || bytes.Equal(was, is) {
		return err
	}
	return s.write(t, old, raw)
}

func (t Task) checkMove(to Status) error {
	if to != t.Status && !t.Status.May(to) {
		return &BadMove{t.ID, t.Status, to}
	}
	return nil
}

// write saves t over old. Times never run backwards, so that news can be told from older news whatever the clock does.
func (s *Store) write(t *Task, old Task, raw []byte) error {
	t.UpdatedAt = after(old.UpdatedAt, t.PromptedAt)
	data, err := encode(*t, raw)
	if err == nil {
		err = atomicfile.Write(s.path(old.ID), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", old.ID, err)
	}
	return nil
}

// after is now, or right after the latest of some times that the clock has not come to again.
func after(times ...time.Time) time.Time {
	now := time.Now().UTC().Round(0)
	for _, t := range times {
		if !now.After(t) {
			now = t.Add(time.Microsecond).UTC()
		}
	}
	return now
}

// read reads a task's file, and its bytes as they are.
func (s *Store) read(id string) (Task, []byte, error) {
	if !isID(id) {
		return Task{}, nil, &NotFound{id}
	}
	data, _, err := atomicfile.ReadPlain(s.path(id), maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return Task{}, nil, &NotFound{id}
	}
	var t Task
	if err == nil {
		t, err = decode(data, id)
	}
	if errors.Is(err, syscall.ELOOP) {
		err = errors.New("a link, which is not followed")
	}
	if err != nil {
		return Task{}, nil, &Unreadable{id, s.path(id), err}
	}
	return t, data, nil
}

// isID reports whether a string is a whole id, and so safe in a path.
func isID(s string) bool {
	return len(s) == idLen && strings.Trim(s, "0123456789abcdef") == ""
}

// idOf is the id of the task in a file of that name.
func idOf(name string) (string, bool) {
	id, ok := strings.CutSuffix(name, ".json")
	return id, ok && isID(id)
}
