package wake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/awaiter"
	"vx/internal/lock"
	"vx/internal/proc"
)

// Recipient is whom a delivery goes to.
type Recipient struct {
	Client     proc.ID `json:"client,omitzero"`
	Harness    string  `json:"harness"` // "claude", "pi", "opencode"; "" for a drain by hand
	Session    string  `json:"session,omitempty"`
	Pane       string  `json:"pane,omitempty"`
	Transcript string  `json:"transcript,omitempty"`
	Typed      bool    `json:"typed,omitempty"` // into the pane, where the text may stand and wait for its Enter
}

// note is to.json: durable before the first byte is printed, so that whoever finds the delivery later can judge it.
type note struct {
	Recipient
	TranscriptSize int64         `json:"transcript_size"` // bytes; what stands before proves nothing
	Noted          time.Time     `json:"noted_at"`
	Awake          time.Duration `json:"awake_ns"` // proc.Awake at the note
	Boot           string        `json:"boot"`
	Enqueued       bool          `json:"enqueued,omitempty"` // seen in the client's own queue, and said so in the history
	Accepted       string        `json:"accepted,omitempty"` // how the client said that it has the text
	Sent           bool          `json:"sent,omitempty"`     // the text may have been taken without a sign; see Sending
	Held           bool          `json:"held,omitempty"`     // printed whole for a client that is to say what became of it
}

// Delivery is some wakes, claimed together, on their way to one client.
type Delivery struct {
	Token string
	Wakes []Wake // oldest first
	More  int    // how many wait still, counted up to 200
	Text  string // what the model is to read, under 10,000 bytes

	q     *Queue
	dir   string
	owner *lock.Lock // nil where the file system has no locks
	items []item
	bytes int64 // of the files that were claimed
	to    Recipient
}

// item is one claimed file.
type item struct {
	name    string // in the queue: "x.json" or "forum/x.json"
	path    string // in the delivery's directory
	wake    Wake
	written time.Time
}

// Claim takes what can be delivered now: at most 50 wakes and not much more than 8 MiB of them, of those what is still news, and of those what fits whole
// into one message, the oldest first. It returns nil when there is nothing, or others were faster. An error leaves
// everything in the queue, or where Settle finds it.
func (q *Queue) Claim(ctx context.Context) (*Delivery, error) {
	young := map[string]bool{} // put back because they may still be written to: once is enough
	for {
		d, err := q.claim(young)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("claim: %w", err), d.abandon(ctx))
		}
		if d == nil {
			return nil, nil
		}
		ok, err := d.choose(ctx, young)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("claim: %w", err), d.abandon(ctx))
		}
		if ok {
			return d, nil
		}
		if err := d.abandon(ctx); err != nil {
			return nil, err
		}
	}
}

// claim renames wakes into a directory of our own. A nil delivery means that there was nothing; one with an error holds
// what was claimed before it.
func (q *Queue) claim(young map[string]bool) (*Delivery, error) {
	var d *Delivery
	err := q.eachName(func(name string) (more bool, err error) {
		switch {
		case young[name]:
			return true, nil
		case d != nil && (len(d.items) == maxClaim || d.bytes >= maxSize):
			d.More++
			return d.More < countMore, nil
		case d == nil:
			if d, err = q.newDelivery(); err != nil {
				return false, err
			}
		}
		return true, d.take(name)
	})
	if err == nil && d != nil {
		err = q.before(Claimed)
	}
	return d, err
}

// newDelivery is a directory whose owner file was locked before anybody could see it: made under a name in .tmp, maybe long
// ago, then renamed.
func (q *Queue) newDelivery() (*Delivery, error) {
	if err := q.before(Making); err != nil {
		return nil, err
	}
	d := q.takeSpare()
	if d == nil {
		var err error
		if d, err = q.makeDelivery(); err == nil {
			err = d.show()
		}
		if err != nil {
			return nil, errors.Join(err, d.remove())
		}
	}
	return d, q.before(Made)
}

// makeDelivery makes a delivery's directory in .tmp, and its owner file, locked. A delivery comes back with an error too,
// where its directory was made.
func (q *Queue) makeDelivery() (*Delivery, error) {
	for _, dir := range []string{".tmp", ".claimed", ".emitted", ".bad"} {
		if err := os.Mkdir(q.join(dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	d := &Delivery{Token: newToken(), q: q}
	d.dir = q.join(".tmp", d.Token)
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return nil, err
	}
	owner := filepath.Join(d.dir, "owner")
	if err := os.WriteFile(owner, []byte(hostname()+"\n"), 0o600); err != nil {
		return d, err
	}
	l, err := lock.Try(owner)
	if noLocks(err) {
		return d, nil
	}
	d.owner = l
	return d, err
}

// show renames the directory to where everybody sees it.
func (d *Delivery) show() error {
	dir := d.q.join(".claimed", d.Token)
	if err := os.Rename(d.dir, dir); err != nil {
		return err
	}
	d.dir = dir
	return nil
}

// remove takes back a delivery that holds no wakes. A nil delivery is nothing.
func (d *Delivery) remove() error {
	if d == nil {
		return nil
	}
	return errors.Join(removeDelivery(d.dir), d.Close())
}

// take claims one wake; that another was faster is no error.
func (d *Delivery) take(name string) error {
	it := item{name: name, path: d.local(name)}
	err := os.Rename(d.q.join(name), it.path)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(it.path) != d.dir {
		// The first one out of wakes/forum; or it is gone, and then the second try says so.
		if err := os.Mkdir(filepath.Dir(it.path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		err = os.Rename(d.q.join(name), it.path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	d.items = append(d.items, it)
	if info, err := os.Lstat(it.path); err == nil {
		d.bytes += min(info.Size(), maxSize) // what is larger is not read
	}
	return nil
}

// local is where a wake lies in the delivery's directory: under its own name, but for the one that is ours.
func (d *Delivery) local(name string) string {
	if name == "to.json" {
		name = ".to.json"
	}
	return filepath.Join(d.dir, name)
}

// choose reads what was claimed and keeps what goes into one message; everything else goes back, or to .bad, or is
// dropped. It reports whether anything was kept.
func (d *Delivery) choose(ctx context.Context, young map[string]bool) (bool, error) {
	var back, rest []item
	for _, it := range d.items {
		keep, err := d.read(&it)
		if err != nil {
			return false, err
		}
		switch {
		case keep:
			rest = append(rest, it)
		case exists(it.path):
			young[it.name] = true
			back = append(back, it)
		}
	}
	slices.SortStableFunc(rest, func(a, b item) int { return older(a.wake, b.wake) })
	// A wake that a consumer died with before may be what killed it: it goes alone, and cannot hold up the others.
	if i := slices.IndexFunc(rest, func(it item) bool { return it.wake.Reaps > 0 }); i >= 0 {
		back = append(append(back, rest[:i]...), rest[i+1:]...)
		d.More += len(rest) - 1
		rest = rest[i : i+1]
	}
	fit, left := d.compose(rest)
	d.More += len(left)
	if err := d.putBack(ctx, append(back, left...)); err != nil {
		return false, err
	}
	d.items = fit
	for _, it := range fit {
		d.Wakes = append(d.Wakes, it.wake)
	}
	d.q.record(d.events("claimed", "")...)
	return len(fit) > 0, nil
}

// read reads a claimed wake; keep is false when it is not to be delivered. Then its file is still there only if it must
// go back.
func (d *Delivery) read(it *item) (keep bool, err error) {
	data, info, err := readFile(it.path)
	if err == nil {
		it.written = info.ModTime()
		it.wake, err = parse(data, filepath.Base(it.name), info.ModTime())
	}
	if err == nil {
		if why := d.q.stale(&it.wake); why != "" {
			drop := eventOf("dropped", it.wake)
			drop.Why = why
			d.q.record(drop)
			return false, os.Remove(it.path)
		}
		err = renders(it.wake)
	}
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, errBad):
		return false, err
	case info != nil && time.Since(info.ModTime()) < halfDone && info.Mode().IsRegular():
		return false, nil
	}
	return false, d.q.quarantine(it.path, err.Error())
}

// stale is why a wake is not news any more; "" where it is, or where that cannot be found out. What is told of it is
// brought up to date.
func (q *Queue) stale(w *Wake) string {
	if e := w.Expires; !e.IsZero() && time.Now().After(e) {
		return "expired"
	}
	if q.News == nil {
		return ""
	}
	told := *w
	why, err := q.News(&told)
	if err != nil {
		slog.Warn("still news", "wake", w.ID, "err", err)
		return ""
	}
	*w = told
	return why
}

// Note makes durable whom the delivery goes to, before the first byte is printed.
func (d *Delivery) Note(to Recipient) error {
	n := note{Recipient: to, Noted: time.Now().UTC(), Awake: proc.Awake(), Boot: proc.BootID()}
	if to.Transcript != "" {
		if fi, err := os.Stat(to.Transcript); err == nil {
			n.TranscriptSize = fi.Size()
		}
	}
	d.to = to
	if err := d.q.before(Noting); err != nil {
		return fmt.Errorf("note: %w", err)
	}
	if err := writeNote(d.dir, n); err != nil {
		return fmt.Errorf("note: %w", err)
	}
	if err := d.q.before(Noted); err != nil {
		return fmt.Errorf("note: %w", err)
	}
	return nil
}

// writeNote writes the delivery's first note straight to its name, where an empty one may lie prepared: one that a crash
// left half written is that of a delivery that was not printed. File and directory are synced at the same time, with the
// content on its way to the disk before, so that one commit of the file system's journal carries both.
func writeNote(dir string, n note) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "to.json")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(append(data, '\n')); err == nil {
		writeBack(f)
		synced := make(chan error)
		go func() { synced <- atomicfile.SyncDir(dir) }()
		err = f.Sync()
		err = errors.Join(err, <-synced)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

// rewriteNote replaces a delivery's note: the old one stands until the new one is whole.
func rewriteNote(dir string, n note) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, ".to-"+newToken())
	if err := writeSynced(temp, append(data, '\n')); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, "to.json")); err != nil {
		os.Remove(temp)
		return err
	}
	return atomicfile.SyncDir(dir)
}

// Emit says that the whole text was written and the reader stood: one rename. If it fails the delivery stays where it
// is and is judged by its receipt like an emitted one.
func (d *Delivery) Emit() error {
	if err := d.q.before(Printed); err != nil {
		return fmt.Errorf("emit: %w", err)
	}
	if err := d.emit(); err != nil {
		return fmt.Errorf("emit: %w", err)
	}
	return nil
}

func (d *Delivery) emit() error {
	dir := d.q.join(".emitted", d.Token)
	if err := os.Rename(d.dir, dir); err != nil {
		return err
	}
	d.dir = dir
	for i := range d.items {
		d.items[i].path = d.local(d.items[i].name)
	}
	d.q.before(Emitted)
	d.q.record(d.events("emitted", "")...)
	return nil
}

// Release puts the wakes back and rings, with the reason in the history. What cannot be put back now is found by Settle.
func (d *Delivery) Release(ctx context.Context, reason string) error {
	// Without its note the delivery was never printed, whatever happens from here on.
	if err := os.Remove(filepath.Join(d.dir, "to.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release: %w", err)
	}
	events := d.events("released", reason)
	if err := d.abandon(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	d.q.record(events...)
	awaiter.Ring(d.q.Project.State(), d.q.Project)
	return nil
}

// Close gives the delivery's lock back: from now on it can be judged. A process that exits need not call it.
func (d *Delivery) Close() error {
	if d.owner == nil {
		return nil
	}
	return d.owner.Unlock()
}

// abandon puts back what the delivery still holds and removes it. A nil delivery holds nothing.
func (d *Delivery) abandon(ctx context.Context) error {
	if d == nil {
		return nil
	}
	defer d.Close()
	if err := d.putBack(ctx, d.items); err != nil {
		return err
	}
	return removeDelivery(d.dir)
}

// putBack returns claimed files to their names, or folds them into newer ones that wait there.
func (d *Delivery) putBack(ctx context.Context, items []item) error {
	if len(items) == 0 {
		return nil
	}
	l, err := d.q.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	for _, it := range items {
		if err := d.q.restore(it.path, it.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// restore returns one file to the queue. The queue's lock is held.
func (q *Queue) restore(path, name string) error {
	if err := q.before(Releasing); err != nil {
		return err
	}
	err := atomicfile.RenameNew(path, q.join(name))
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	data, info, err := readFile(path)
	if err != nil && !errors.Is(err, errBad) {
		return err
	}
	var w Wake
	if err == nil {
		w, err = parse(data, filepath.Base(name), info.ModTime())
	}
	if err != nil {
		return q.quarantine(path, err.Error())
	}
	if _, err := q.place(name, w); err != nil {
		return err
	}
	if err := q.syncBox(name); err != nil {
		return err
	}
	return os.Remove(path)
}

// removeDelivery removes a delivery that holds no wakes any more. Its note goes last but for the owner, so that a crash
// on the way leaves something that still can be judged.
func removeDelivery(dir string) error {
	names, _ := atomicfile.Names(dir)
	for _, name := range names {
		if strings.HasPrefix(name, ".to-") {
			os.Remove(filepath.Join(dir, name)) // a note that a crash left half written
		}
	}
	for _, name := range []string{"forum", "to.json", "owner", ""} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delivery: %w", err)
		}
	}
	return nil
}

// eachName calls f with the names in the queue, in the directory's own order and in batches, until it says that it has
// enough: 100,000 waiting wakes cost no more than 60.
func (q *Queue) eachName(f func(name string) (more bool, err error)) error {
	for _, box := range boxes {
		dir, err := os.Open(q.join(box))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		more, err := eachIn(dir, func(name string) (bool, error) { return f(box + name) })
		dir.Close()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func eachIn(dir *os.File, f func(name string) (bool, error)) (bool, error) {
	for {
		names, err := dir.Readdirnames(64)
		for _, name := range names {
			if !isWake(name) {
				continue
			}
			if more, err := f(name); err != nil || !more {
				return false, err
			}
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
