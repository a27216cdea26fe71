package wake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/awaiter"
	"vx/internal/claude"
	"vx/internal/lock"
	"vx/internal/pi"
	"vx/internal/proc"
	"vx/internal/receipt"
)

// Settle ends deliveries by proof and takes over those whose owner is gone. It never waits for a live owner, and one
// delivery that cannot be settled does not hold up the others: their errors are joined. For the queue's lock it waits two
// seconds in all: an await that settles is deaf meanwhile, and what is left is there at the next look.
func (q *Queue) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	var errs []error
	for _, stage := range []string{".claimed", ".emitted"} {
		tokens, err := atomicfile.Names(q.join(stage))
		if err != nil {
			errs = append(errs, err)
		}
		for _, token := range tokens {
			if err := q.settleOne(ctx, stage, token); err != nil {
				errs = append(errs, fmt.Errorf("settle %s/%.4s…: %w", stage, token, err))
			}
		}
	}
	return errors.Join(errs...)
}

// settleOne judges a delivery whose owner is gone. Holding the owner's lock it is the only one to do so.
func (q *Queue) settleOne(ctx context.Context, stage, token string) error {
	dir := q.join(stage, token)
	owner, gone, err := takeOver(dir)
	if err != nil || !gone {
		return err
	}
	if owner != nil {
		defer owner.Unlock()
	}
	d := &Delivery{Token: token, q: q, dir: dir}
	if err := d.reread(); err != nil {
		return err
	}
	if len(d.items) == 0 {
		return removeDelivery(dir)
	}
	n, err := readNote(dir)
	if err != nil {
		return err
	}
	if n != nil {
		d.to = n.Recipient
	}
	if stage == ".claimed" {
		return d.judgeClaimed(ctx, n)
	}
	return d.judgeEmitted(ctx, n)
}

// takeOver locks a delivery's owner file if its owner is gone.
func takeOver(dir string) (l *lock.Lock, gone bool, err error) {
	path := filepath.Join(dir, "owner")
	host, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		// A delivery that a crash left half removed has no owner any more; one that is gone has no directory.
		if !exists(dir) {
			return nil, false, nil
		}
		err = nil
	}
	if err != nil {
		return nil, false, err
	}
	l, err = lock.Try(path)
	switch {
	case errors.Is(err, lock.ErrHeld), errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case noLocks(err), err == nil && len(host) > 0 && strings.TrimSpace(string(host)) != hostname():
		fi, serr := os.Stat(dir)
		if serr != nil || time.Since(fi.ModTime()) < lockless {
			if l != nil {
				l.Unlock()
			}
			return nil, false, nil
		}
		return l, true, nil
	}
	return l, err == nil, err
}

// reread fills in what the delivery's directory holds. A file that does not parse is an item all the same: it goes where
// the others go.
func (d *Delivery) reread() error {
	for _, box := range boxes {
		entries, err := os.ReadDir(filepath.Join(d.dir, box))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			name := e.Name()
			switch {
			case name == ".to.json" && box == "":
				name = "to.json"
			case !isWake(name), name == "to.json" && box == "":
				continue
			}
			it := item{name: box + name, path: d.local(box + name)}
			data, info, err := readFile(it.path)
			if err != nil && !errors.Is(err, errBad) {
				return err
			}
			if err == nil {
				it.written = info.ModTime()
				it.wake, _ = parse(data, name, info.ModTime())
			}
			d.items = append(d.items, it)
			d.Wakes = append(d.Wakes, it.wake)
		}
	}
	return nil
}

// readNote is nil for a delivery that has no note, or none that is whole: only behind a whole one was anything printed.
func readNote(dir string) (*note, error) {
	data, err := os.ReadFile(filepath.Join(dir, "to.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := new(note)
	if json.Unmarshal(data, n) != nil {
		// A crash came while it was written, or somebody has written into it since: nothing can be proven from it.
		return nil, nil
	}
	return n, nil
}

// judgeClaimed ends a delivery that was never emitted: nothing shows that its text was printed whole. Only a receipt
// keeps it from going back.
func (d *Delivery) judgeClaimed(ctx context.Context, n *note) error {
	if n == nil {
		return d.reap(ctx, "its owner died before printing")
	}
	if n.Accepted != "" {
		return d.end(n.Accepted)
	}
	shown, err := d.receipt(n)
	if err != nil {
		return err
	}
	if shown == receipt.TurnStarted || shown == receipt.TurnFailed {
		return d.delivered(shown)
	}
	if n.Transcript != "" || n.Sent {
		wait := d.q.Grace
		if n.Sent && n.Harness == "opencode" {
			wait *= 60 // the client itself can be asked, by whoever calls Orphans
		}
		if ok, err := d.judgeable(n, wait); err != nil || !ok {
			return err
		}
	}
	if shown == receipt.Enqueued && n.Client.Status() != proc.Gone {
		return d.sawEnqueued(n)
	}
	if n.Sent {
		return d.setAside(ctx, mayBeTold)
	}
	if n.Held {
		return d.giveBack(ctx, "reaped", "its owner died with it in hand, and no receipt was found", func(w *Wake) bool {
			w.Reaps = 0
			return true
		})
	}
	return d.reap(ctx, "its owner died while printing, and no receipt was found")
}

// judgeEmitted ends a delivery that was printed whole, by what the client's transcript shows of it.
func (d *Delivery) judgeEmitted(ctx context.Context, n *note) error {
	if n == nil {
		n = &note{}
	}
	if n.Accepted != "" {
		return d.end(n.Accepted)
	}
	shown, err := d.receipt(n)
	if err != nil {
		return err
	}
	if shown == receipt.TurnStarted || shown == receipt.TurnFailed || n.Transcript == "" {
		return d.delivered(shown)
	}
	wait := d.q.Grace
	if shown == receipt.NoTranscript {
		// Busy clients make the file, or end a line of it, seconds late.
		wait *= 6
	}
	if ok, err := d.judgeable(n, wait); err != nil || !ok {
		return err
	}
	switch {
	case shown == receipt.NoTranscript:
		return d.delivered(shown)
	case n.Sent && (shown == receipt.Absent || n.Client.Status() == proc.Gone):
		return d.setAside(ctx, mayBeTold)
	case n.Client.Status() == proc.Gone:
		return d.undelivered(ctx, "the client ended before the turn started")
	case shown == receipt.Enqueued:
		return d.sawEnqueued(n)
	}
	return d.undelivered(ctx, "the client's transcript does not show it")
}

// mayBeTold is why wakes are kept that were sent on a way that gives no sign.
const mayBeTold = "sent to the client, and nothing shows whether the model was told"

// receipt looks for the delivery's token where the recipient's harness would show it.
func (d *Delivery) receipt(n *note) (receipt.Receipt, error) {
	switch {
	case n.Transcript == "" || n.Harness == "opencode":
		return receipt.NoTranscript, nil
	case n.Harness == "pi":
		return pi.FindReceipt(n.Transcript, n.TranscriptSize, n.Noted, d.Token)
	case n.Sent:
		return claude.FindTyped(n.Transcript, n.TranscriptSize, n.Noted, d.Token)
	}
	return claude.FindReceipt(n.Transcript, n.TranscriptSize, n.Noted, d.Token)
}

// judgeable reports whether the absence of a receipt means anything yet: the machine was awake for the grace since the
// note, and the client was not stopped. A client that was needs the grace anew once it goes on.
func (d *Delivery) judgeable(n *note, grace time.Duration) (bool, error) {
	if n.Boot != proc.BootID() {
		return true, nil
	}
	since := proc.Awake() - n.Awake
	if n.Client.Status() == proc.Stopped {
		if since <= grace/2 {
			return false, nil
		}
		n.Awake = proc.Awake()
		return false, rewriteNote(d.dir, *n)
	}
	return since >= grace, nil
}

func (d *Delivery) delivered(r receipt.Receipt) error {
	proof := "unproven"
	switch r {
	case receipt.TurnStarted:
		proof = "turn started"
	case receipt.TurnFailed:
		proof = "turn failed"
	}
	return d.end(proof)
}

// end removes a delivery that has arrived.
func (d *Delivery) end(proof string) error {
	if err := d.q.before(Settling); err != nil {
		return err
	}
	for _, it := range d.items {
		if err := os.Remove(it.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	events := d.events("delivered", "")
	for i := range events {
		events[i].Proof = proof
	}
	d.q.record(events...)
	return removeDelivery(d.dir)
}

// sawEnqueued leaves the delivery to its living client, and says so in the history once.
func (d *Delivery) sawEnqueued(n *note) error {
	if n.Enqueued {
		return nil
	}
	n.Enqueued = true
	if err := rewriteNote(d.dir, *n); err != nil {
		return err
	}
	d.q.record(d.events("enqueued", "")...)
	return nil
}

// reap puts back what was never emitted. The third time a wake goes to .bad: it may be what kills its consumers.
func (d *Delivery) reap(ctx context.Context, why string) error {
	return d.giveBack(ctx, "reaped", why, func(w *Wake) bool {
		w.Reaps++
		return w.Reaps < maxReaps
	})
}

// undelivered puts back what was printed but never reached the model. That happens once; a wake that fares so twice is
// kept in .bad, where doctor reports it, and not tried for ever.
func (d *Delivery) undelivered(ctx context.Context, why string) error {
	return d.giveBack(ctx, "put_back", why, func(w *Wake) bool {
		w.Reaps = 0
		w.PutBacks++
		return w.PutBacks <= 1
	})
}

// giveBack returns the wakes to the queue, each with its count written down first; again reports whether it may be tried
// again.
func (d *Delivery) giveBack(ctx context.Context, event, why string, again func(*Wake) bool) error {
	if err := d.q.before(Settling); err != nil {
		return err
	}
	l, err := d.q.lock(ctx)
	if err != nil {
		return err
	}
	for _, it := range d.items {
		if err = d.giveBackOne(it, event, why, again); err != nil {
			break
		}
	}
	l.Unlock()
	if err == nil {
		err = removeDelivery(d.dir)
	}
	awaiter.Ring(d.q.Project.State(), d.q.Project)
	return err
}

func (d *Delivery) giveBackOne(it item, event, why string, again func(*Wake) bool) error {
	if it.wake.ID == "" { // does not parse: the next claim sees to it
		return d.q.restore(it.path, it.name)
	}
	if !again(&it.wake) {
		return d.q.quarantine(it.path, fmt.Sprintf("%s, %d times", why, max(it.wake.Reaps, it.wake.PutBacks)))
	}
	temp, err := d.q.stage(it.wake)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, it.path); err != nil {
		os.Remove(temp)
		return err
	}
	if err := d.q.restore(it.path, it.name); err != nil {
		return err
	}
	e := d.eventOf(event, it)
	e.Why = why
	d.q.record(e)
	return nil
}

// noLocks reports whether a file system has no locks, as against a lock that is held.
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
