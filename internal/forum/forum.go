// Package forum keeps a project's inbox of feedback: what people write in a review is a message, one JSON file each, that
// waits until the commander has acknowledged it. The inbox is what is true; the wake of a session only rings for it, and
// what it says is counted anew when it is delivered. The package knows nothing of how a review is shown or written.
//
// A message and its wake are one thing, as a task's transition and its wake are: the wake is made durable beside the
// queue, the message that names it is written, and the wake enters. A crash in between leaves what Recover ends. To
// acknowledge a message is one rename.
package forum

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
	"vx/internal/wake"
)

const (
	lockWait = 10 * time.Second // the lock is held for a few writes; a frozen holder must not hang all
	halfDone = 2 * time.Second  // a file that does not parse and is younger may still be written to
)

// Inbox is a project's inbox on disk.
type Inbox struct {
	Project *state.Project
	queue   *wake.Queue
}

// Open returns the project's inbox. Nothing is read or written yet.
func Open(p *state.Project) *Inbox { return &Inbox{p, wake.Open(p)} }

// Dir is the directory that a script may drop messages into, by rename.
func (b *Inbox) Dir() string { return b.Project.Join("forum-inbox") }

func (b *Inbox) join(elem ...string) string {
	return filepath.Join(append([]string{b.Dir()}, elem...)...)
}

// acknowledged is where messages are kept that wait no more, so that the same one is not posted again.
const acknowledged = "acknowledged"

// nameOf is the name of a message's file.
func nameOf(id string) string { return wake.FileName(id) + ".json" }

// isMessage reports whether a name in the inbox is a message's.
func isMessage(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".")
}

// locked calls f under the inbox's lock.
func (b *Inbox) locked(ctx context.Context, f func() error) error {
	err := b.Project.Ensure()
	for _, dir := range []string{b.Dir(), b.join(acknowledged)} {
		if err == nil {
			if err = os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
				err = nil
			}
		}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	l, err := lock.Wait(ctx, b.join(".lock"))
	if err != nil {
		return err
	}
	defer l.Unlock()
	return f()
}

// Post adds a message, and rings for it. Where the inbox has one of that id, or had one that was acknowledged, nothing is
// added, nothing rings, and what is there is returned. After an error the message may be there all the same: post it again
// under the same id.
func (b *Inbox) Post(ctx context.Context, m Message) (posted Message, fresh bool, err error) {
	if m, err = m.complete(); err != nil {
		return m, false, err
	}
	err = b.locked(ctx, func() error {
		_ = b.settle(ctx) // what an earlier one left; if it cannot be judged now, this one need not suffer
		var known bool
		if posted, known, err = b.find(m.ID); known && err == nil {
			return b.enter(ctx, posted)
		}
		if err != nil {
			return err
		}
		posted, fresh = m, true
		return b.add(ctx, &posted)
	})
	if err != nil {
		return posted, false, fmt.Errorf("message %.80s: %w", m.ID, err)
	}
	return posted, fresh, nil
}

// find is the message with an id, whether it waits or is acknowledged.
func (b *Inbox) find(id string) (m Message, known bool, err error) {
	for _, dir := range []string{b.Dir(), b.join(acknowledged)} {
		m, err := read(dir, nameOf(id))
		if !errors.Is(err, fs.ErrNotExist) {
			return m, true, err
		}
	}
	return Message{}, false, nil
}

// enter lets the wake that a message names into the queue, if it is still beside it.
func (b *Inbox) enter(ctx context.Context, m Message) error {
	a, err := b.queue.FindAside(m.Session, m.WakeID)
	if err == nil && a != nil {
		_, err = a.Enter(ctx)
	}
	return err
}

// add writes a message together with its wake. The lock is held.
func (b *Inbox) add(ctx context.Context, m *Message) error {
	return b.ring(ctx, *m, func(id string) error {
		m.WakeID = id
		data, err := encode(*m)
		if err != nil {
			return err
		}
		return atomicfile.Create(b.join(nameOf(m.ID)), data, 0o600)
	})
}

// ring has a message's wake enter the queue, once save has made the message name it. The lock is held.
func (b *Inbox) ring(ctx context.Context, m Message, save func(wakeID string) error) error {
	now := time.Now().UTC()
	a, err := b.queue.Aside(ctx, wake.Wake{
		ID: wake.NewID(now), Key: m.Session, Kind: wake.KindForum, Title: m.File, Detected: now, Producer: "vx forum",
		Forum: &wake.Forum{File: m.File, Messages: 1, Ended: m.Ended},
	})
	if err != nil {
		return err
	}
	if err := save(a.Wake.ID); err != nil {
		// It may have come to be saved; and if that cannot be told now, it can later.
		saved, _, ferr := b.find(m.ID)
		switch {
		case ferr != nil:
		case a.Names(saved.Session, saved.WakeID):
			_, ferr = a.Enter(ctx)
		default:
			ferr = a.Drop(ctx)
		}
		return errors.Join(err, ferr)
	}
	_, err = a.Enter(ctx)
	return err
}

// Waiting are the messages that wait, the oldest first, and one error for each file that is none.
func (b *Inbox) Waiting() ([]Message, []error) { return readAll(b.Dir()) }

func readAll(dir string) (all []Message, bad []error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{fmt.Errorf("inbox: %w", err)}
	}
	for _, e := range entries {
		if !isMessage(e.Name()) {
			continue
		}
		m, err := read(dir, e.Name())
		switch {
		case err == nil:
			all = append(all, m)
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errHalf):
		default:
			bad = append(bad, fmt.Errorf("message %s: %w", e.Name(), err))
		}
	}
	slices.SortStableFunc(all, func(a, b Message) int {
		if c := a.Posted.Compare(b.Posted); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, bad
}

// Find is those of the waiting messages that have the ids, which may be shortened while only one begins so. An id that was
// acknowledged before finds nothing, and one that never was there is a *NotFound.
func (b *Inbox) Find(waiting []Message, ids []string) ([]Message, error) {
	var found []Message
	for _, id := range ids {
		begin := func(m Message) bool { return strings.HasPrefix(m.ID, id) }
		at := slices.IndexFunc(waiting, func(m Message) bool { return m.ID == id })
		if at < 0 && id != "" {
			at = slices.IndexFunc(waiting, begin)
			if at >= 0 && slices.ContainsFunc(waiting[at+1:], begin) {
				return nil, &NotFound{id, "it may be any of several"}
			}
		}
		if at >= 0 {
			found = append(found, waiting[at])
			continue
		}
		if _, known, err := b.find(id); !known || err != nil {
			return nil, errors.Join(&NotFound{id, "there is none"}, err)
		}
	}
	return found, nil
}

// A NotFound is an id that no message has, or that several begin with.
type NotFound struct{ ID, Why string }

func (e *NotFound) Error() string { return fmt.Sprintf("message %.80s: %s", e.ID, e.Why) }

// Hint is the command that shows those that there are.
func (e *NotFound) Hint() string { return "vx forum inbox" }

// Acknowledge takes messages out of those that wait. One that says something else by now, or is gone, is left as it is. It
// returns how many were acknowledged.
func (b *Inbox) Acknowledge(ctx context.Context, messages []Message) (n int, err error) {
	if len(messages) == 0 {
		return 0, nil
	}
	err = b.locked(ctx, func() error {
		for _, m := range messages {
			now, err := read(b.Dir(), m.name)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !m.says(now) {
				continue
			}
			if err == nil {
				err = os.Rename(b.join(m.name), b.join(acknowledged, m.name))
			}
			if err != nil {
				return fmt.Errorf("message %.80s: %w", m.ID, err)
			}
			n++
		}
		return errors.Join(atomicfile.SyncDir(b.join(acknowledged)), atomicfile.SyncDir(b.Dir()))
	})
	return n, err
}

// News says of the wakes of sessions, in the project's queue, why they are not news any more, and brings what they tell up
// to date; see wake.Queue.News. A wake whose session the inbox does not know is news.
func News(_ *state.Dir, p *state.Project) func(*wake.Wake) (string, error) {
	return func(w *wake.Wake) (string, error) {
		if w.Kind != wake.KindForum {
			return "", nil
		}
		waiting, bad := Open(p).Waiting()
		var now wake.Forum
		for _, m := range waiting {
			if m.Session != w.Key {
				continue
			}
			now.Messages++
			now.Ended = now.Ended || m.Ended
			if m.File != "" {
				now.File = m.File
			}
		}
		switch {
		case now.Messages > 0:
			w.Forum = &now
			return "", nil
		case len(bad) > 0:
			return "", errors.Join(bad...)
		case w.Forum == nil: // it was put by hand
			return "", nil
		}
		return "acknowledged", nil
	}
}
