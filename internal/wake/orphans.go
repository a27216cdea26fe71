package wake

import (
	"context"
	"errors"
	"fmt"

	"vx/internal/atomicfile"
)

// Orphans takes over what was sent, on a way that gives no sign back, to clients of a harness by one who has died since. It
// is for whoever can ask such a client; Settle leaves them the time for it. Each has to be accepted, released or closed.
func (q *Queue) Orphans(harness string) ([]*Delivery, error) {
	tokens, err := atomicfile.Names(q.join(".claimed"))
	errs := []error{err}
	var all []*Delivery
	for _, token := range tokens {
		d, err := q.orphan(token, harness)
		if err != nil {
			errs = append(errs, fmt.Errorf("delivery %.4s…: %w", token, err))
		}
		if d != nil {
			all = append(all, d)
		}
	}
	return all, errors.Join(errs...)
}

// orphan takes one over if it is one.
func (q *Queue) orphan(token, harness string) (*Delivery, error) {
	dir := q.join(".claimed", token)
	if n, err := readNote(dir); n == nil || !n.Sent || n.Accepted != "" || n.Harness != harness {
		return nil, err
	}
	owner, gone, err := takeOver(dir)
	if err != nil || !gone {
		return nil, err
	}
	d := &Delivery{Token: token, q: q, dir: dir, owner: owner}
	err = d.reread()
	// Somebody may have ended it since it was looked at.
	n, noteErr := readNote(dir)
	if err = errors.Join(err, noteErr); err != nil || n == nil || len(d.items) == 0 {
		return nil, errors.Join(err, d.Close())
	}
	d.to = n.Recipient
	return d, nil
}

// To is whom the delivery goes to.
func (d *Delivery) To() Recipient { return d.to }

// PutBack ends a delivery that did not reach the model, as far as whoever asked its client can say: its wakes go back, once.
func (d *Delivery) PutBack(ctx context.Context, why string) error {
	if err := d.undelivered(ctx, why); err != nil {
		return fmt.Errorf("put back: %w", err)
	}
	return d.Close()
}
