package forum

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"vx/internal/atomicfile"
	"vx/internal/state"
	"vx/internal/wake"
)

// Recover ends what a crash left half done, and rings for messages that a script dropped: each exactly once.
func Recover(ctx context.Context, p *state.Project) error {
	b := Open(p)
	if _, err := os.Lstat(b.Dir()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return b.recover(ctx)
}

func (b *Inbox) recover(ctx context.Context) error {
	err := b.locked(ctx, func() error {
		errs := []error{b.settle(ctx)}
		waiting, bad := b.Waiting()
		for _, m := range waiting {
			if m.WakeID != "" {
				continue
			}
			if err := b.adopt(ctx, m); err != nil {
				bad = append(bad, fmt.Errorf("message %.80s: %w", m.ID, err))
			}
		}
		return errors.Join(append(errs, bad...)...)
	})
	if err != nil {
		return fmt.Errorf("forum: %w", err)
	}
	return nil
}

// settle judges the wakes that are beside the queue: one that a message names enters, another goes. The lock is held, so
// that none is only on its way.
func (b *Inbox) settle(ctx context.Context) error {
	asides, err := b.queue.Asides()
	errs := []error{err}
	for _, a := range asides {
		if a.Wake.Kind != wake.KindForum {
			continue
		}
		named, err := b.named(a)
		switch {
		case err != nil:
		case named:
			_, err = a.Enter(ctx)
		default:
			err = a.Drop(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// named reports whether a message names the wake, an acknowledged one too: others of its session may have been folded in.
// Where none of those that can be read does, and some cannot, it is not known.
func (b *Inbox) named(a *wake.Aside) (bool, error) {
	var unread []error
	for _, dir := range []string{b.Dir(), b.join(acknowledged)} {
		all, bad := readAll(dir)
		for _, m := range all {
			if a.Names(m.Session, m.WakeID) {
				return true, nil
			}
		}
		unread = append(unread, bad...)
	}
	return false, errors.Join(unread...)
}

// adopt rings for a message that names no wake. Its file is left as it is, but for that name and, where it does not say
// when it was written, that.
func (b *Inbox) adopt(ctx context.Context, m Message) error {
	path := b.join(m.name)
	old, _, err := atomicfile.ReadPlain(path, maxBytes)
	if err != nil {
		return err
	}
	return b.ring(ctx, m, func(id string) error {
		data, err := sjson.SetBytes(old, "wake_id", id)
		if err == nil && !gjson.GetBytes(old, "posted_at").Exists() {
			data, err = sjson.SetBytes(data, "posted_at", m.Posted.UTC())
		}
		if err != nil {
			return err
		}
		return atomicfile.Replace(path, old, data, 0o600)
	})
}

const (
	coarse    = 2 * time.Second // kernels stamp directories coarsely: a younger stamp may hide a second change
	lookAgain = time.Minute     // whatever the stamps say
)

// Watch tells at the price of a stat whether Recover may have something to do. The zero value says yes.
type Watch struct{ changed, at time.Time }

// Look reports whether Recover is worth calling, and takes the caller's word that it will be.
func (w *Watch) Look(p *state.Project) bool {
	now := time.Now()
	fi, err := os.Stat(Open(p).Dir())
	if err != nil {
		*w = Watch{}
		return !errors.Is(err, fs.ErrNotExist)
	}
	since := now.Sub(w.at)
	if fi.ModTime().Equal(w.changed) && w.at.Sub(w.changed) > coarse && since >= 0 && since < lookAgain {
		return false
	}
	*w = Watch{fi.ModTime(), now}
	return true
}
