package wake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"vx/internal/receipt"
)

// Accepted ends a delivery whose client has said that it has the text; proof is how it said so ("acknowledged"). Once the
// note has it the delivery counts as delivered, whatever the transcript shows: a crash on the way is ended by Settle. An
// error leaves it to Settle too.
func (d *Delivery) Accepted(proof string) error {
	if err := d.accepted(proof); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	return nil
}

func (d *Delivery) accepted(proof string) error {
	if err := d.q.before(Accepting); err != nil {
		return err
	}
	noted := d.renote(func(n *note) { n.Accepted = proof })
	if noted == nil {
		noted = d.q.before(Accepted)
	}
	// Where it could not be noted this is as good for most: printed whole, and to be judged by its receipt.
	if err := errors.Join(noted, d.emit()); err != nil {
		return err
	}
	return errors.Join(d.end(proof), d.Close())
}

// EndIfTold ends a delivery whose client can say nothing any more, if its transcript shows that the model was told, and
// reports whether it does. A transcript that cannot be read shows nothing.
func (d *Delivery) EndIfTold() (bool, error) {
	n, err := readNote(d.dir)
	if err != nil || n == nil {
		return false, err
	}
	shown, err := d.receipt(n)
	if err != nil || shown != receipt.TurnStarted && shown != receipt.TurnFailed {
		return false, err
	}
	return true, errors.Join(d.delivered(shown), d.Close())
}

// Sending makes durable that the delivery goes a way from here on that gives no sign back: its text may have been taken
// although nothing shows it. Settle never puts such a delivery back. Release still does, for who knows that nothing went.
func (d *Delivery) Sending() error {
	err := d.q.before(Sending)
	if err == nil {
		err = d.renote(func(n *note) { n.Sent = true })
	}
	if err == nil {
		err = d.q.before(Sent)
	}
	if err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return nil
}

// Held makes durable that the delivery was printed whole for a client that is to say what became of it. From here on the
// deaths of its owners are not the wakes' fault: they go back each time, and never to .bad.
func (d *Delivery) Held() error {
	if err := d.renote(func(n *note) { n.Held = true }); err != nil {
		return fmt.Errorf("held: %w", err)
	}
	return nil
}

// renote changes the delivery's note, durably.
func (d *Delivery) renote(change func(*note)) error {
	n, err := readNote(d.dir)
	if err != nil {
		return err
	}
	if n == nil {
		return fmt.Errorf("note: %w", fs.ErrNotExist)
	}
	change(n)
	return rewriteNote(d.dir, *n)
}

// setAside keeps in .bad, where they are reported, wakes of which nobody can say whether they were told: they are neither
// lost nor told twice.
func (d *Delivery) setAside(ctx context.Context, why string) error {
	if err := errors.Join(ctx.Err(), d.q.before(Settling)); err != nil {
		return err
	}
	for _, it := range d.items {
		if err := d.q.quarantine(it.path, why); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return removeDelivery(d.dir)
}
