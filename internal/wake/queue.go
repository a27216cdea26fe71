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
	"vx/internal/lock"
	"vx/internal/state"
)

// Step names a moment at which a process can be killed or a disk can fail.
type Step string

// The steps, in the order of a wake's life. Printing is called by whoever prints, and so is Printed where
// the client accepts; all others by this package.
const (
	Staging   Step = "staging"   // before the wake's temporary file is written
	Staged    Step = "staged"    // before it is renamed into the queue
	Put       Step = "put"       // it waits; before the bell
	Asiding   Step = "asiding"   // before a task's wake is written beside the queue
	SetAside  Step = "aside"     // it is durable there; before the task is saved
	Entering  Step = "entering"  // the task is saved; before its wake goes into the queue
	Folding   Step = "folding"   // what waited there was taken out, to be folded into it
	Making    Step = "making"    // before the delivery's directory is made
	Made      Step = "made"      // the directory stands, its owner locked; before the first wake is claimed
	Claimed   Step = "claimed"   // before the claimed wakes are read
	Noting    Step = "noting"    // before to.json is written
	Noted     Step = "noted"     // to.json is durable
	Printing  Step = "printing"  // before the first byte
	Printed   Step = "printed"   // the text was written whole; before the rename into .emitted
	Emitted   Step = "emitted"   // the rename is done
	Accepting Step = "accepting" // the client has said that it has the text; before that is noted
	Accepted  Step = "accepted"  // it is noted
	Sending   Step = "sending"   // before it is noted that the text may be taken without a sign
	Sent      Step = "sent"      // it is noted; before the text goes
	Releasing Step = "releasing" // before a wake goes back
	Settling  Step = "settling"  // a delivery's end is known; before it is carried out
)

const (
	lockWait   = 10 * time.Second // a put holds the lock for milliseconds; a frozen one must not hang the next
	settleWait = 2 * time.Second
	maxSize    = 8 << 20          // bytes of one wake's file; what is larger goes to .bad
	halfDone   = 2 * time.Second  // an unparsable file younger than this may still be written to
	grace      = 10 * time.Second // awake, from the note to a judgement that a receipt is absent
	lockless   = 2 * time.Minute  // where locks cannot tell, this long until an owner counts as gone
	maxReaps   = 3
	maxClaim   = 50
	countMore  = 200
)

// Queue is a project's queue on disk; see Open.
type Queue struct {
	Project *state.Project
	// Before is called at each step; a returned error takes the place of what follows it. Nil but in crash and fault
	// tests.
	Before func(Step) error
	// Grace is how long after its note a delivery's receipt may be outstanding before its absence counts, in time that
	// the machine was awake.
	Grace time.Duration
	// News says why a claimed wake is not news any more, "" where it is. What it changes in the wake is what is told: a
	// count can be brought up to date, while the file stays as it is. Where News cannot say the wake is delivered. Nil:
	// everything is news.
	News func(*Wake) (stale string, err error)

	spare *Delivery // see Prepare
}

// Open returns the project's queue. Nothing is read or written yet.
func Open(p *state.Project) *Queue { return &Queue{Project: p, Grace: grace} }

func (q *Queue) before(s Step) error {
	if q.Before == nil {
		return nil
	}
	return q.Before(s)
}

func (q *Queue) join(elem ...string) string {
	return q.Project.Join(append([]string{"wakes"}, elem...)...)
}

// Dir is the directory that a script may drop wakes into, by rename.
func (q *Queue) Dir() string { return q.join() }

// boxes are the directories that hold waiting wakes, as prefixes of names in the queue.
var boxes = []string{"forum/", ""}

// place is the wake's name in the queue.
func (w *Wake) place() string {
	name := FileName(w.Key) + ".json"
	if w.Kind == KindForum {
		name = "forum/" + name
	}
	return name
}

// Ensure makes the queue's directories, and the project's where it is missing.
func (q *Queue) Ensure() error {
	if err := q.Project.Ensure(); err != nil {
		return err
	}
	for _, dir := range []string{"", ".tmp", ".claimed", ".emitted", ".bad", "forum"} {
		if err := os.Mkdir(q.join(dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("queue: %w", err)
		}
	}
	return nil
}

func (q *Queue) lock(ctx context.Context) (*lock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return lock.Wait(ctx, q.join(".lock"))
}

// Put adds a wake, folding it with one of the same key that waits, rings a doorbell, makes it durable and settles what
// can be settled. Missing fields (schema, id, key, kind, detected_at) are filled in. It returns the wake as it waits
// now: after folding with a newer one that is the newer one's id. An error means that nothing was added, unless it is the
// sync of the directory that failed: then the wake waits, and only a crash of the whole machine could still lose it.
func (q *Queue) Put(ctx context.Context, w Wake) (Wake, error) {
	if err := q.Ensure(); err != nil {
		return Wake{}, err
	}
	if w.Schema == 0 {
		w.Schema = Schema
	}
	if w.Detected.IsZero() {
		w.Detected = time.Now()
	}
	if w.ID == "" {
		w.ID = NewID(w.Detected)
	}
	if w.Key == "" {
		w.Key = w.ID
	}
	if w.Kind == "" {
		w.Kind = KindMessage
	}
	name := w.place()
	l, err := q.lock(ctx)
	if err != nil {
		return Wake{}, fmt.Errorf("put %s: %w", w.Key, err)
	}
	placed, err := q.place(name, w)
	if err == nil {
		q.before(Put)
		q.recordPut(w, placed)
		// The bell does not wait for the disk: a wake that is delivered meanwhile need not be durable any more.
		awaiter.Ring(q.Project.State(), q.Project)
		err = q.syncBox(name)
	}
	l.Unlock()
	if err != nil {
		return Wake{}, fmt.Errorf("put %s: %w", w.Key, err)
	}
	// What is old can wait until the bell has rung; a failure to settle is the next one's to try.
	_ = q.Settle(ctx)
	return placed, nil
}

func (q *Queue) recordPut(w, placed Wake) {
	events := []Event{eventOf("put", w)}
	if placed.ID != w.ID {
		e := eventOf("folded", w)
		e.Into = placed.ID
		events = append(events, e)
	}
	q.record(events...)
}

// place puts w at a name of the queue, folding in what waits there. The queue's lock is held, so that only claims and
// files dropped by a script can come between. It returns the wake that waits there now, durable after syncBox.
func (q *Queue) place(name string, w Wake) (Wake, error) {
	path := q.join(name)
	for {
		waiting, info, err := q.waiting(name)
		if err != nil {
			return w, err
		}
		placed := w
		if info != nil {
			placed = fold(waiting, w)
		}
		temp, err := q.stage(placed)
		if err != nil {
			return w, err
		}
		dropped, err := swapIn(temp, path, info)
		switch {
		case errors.Is(err, fs.ErrExist), info != nil && errors.Is(err, fs.ErrNotExist):
			// Dropped, or claimed, since we looked.
			os.Remove(temp)
			continue
		case err != nil:
			os.Remove(temp)
			return w, err
		case dropped != nil:
			// A script dropped its own file over the one that we read: fold that in too.
			w = *dropped
			continue
		}
		if info != nil && waiting.ID != placed.ID {
			e := eventOf("folded", waiting)
			e.Into = placed.ID
			q.record(e)
		}
		return placed, nil
	}
}

// syncBox makes durable what was renamed to a name of the queue.
func (q *Queue) syncBox(name string) error { return atomicfile.SyncDir(filepath.Dir(q.join(name))) }

// waiting reads the wake that waits at a name; info is nil when there is none. What cannot be read is moved to .bad: it
// must not stand in the way of news.
func (q *Queue) waiting(name string) (Wake, fs.FileInfo, error) {
	path := q.join(name)
	data, info, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Wake{}, nil, nil
	}
	var w Wake
	if err == nil {
		w, err = parse(data, filepath.Base(name), info.ModTime())
	}
	if err == nil {
		return w, info, nil
	}
	if !errors.Is(err, errBad) {
		return w, nil, err
	}
	if qerr := q.quarantine(path, err.Error()); qerr != nil && !errors.Is(qerr, fs.ErrNotExist) {
		return w, nil, errors.Join(err, qerr)
	}
	return w, nil, nil
}

// stage writes a wake, synced, under a temporary name.
func (q *Queue) stage(w Wake) (string, error) {
	data, err := json.Marshal(w)
	if err != nil {
		return "", err
	}
	if err := q.before(Staging); err != nil {
		return "", err
	}
	temp := q.join(".tmp", newToken()+".json")
	if err := writeSynced(temp, append(data, '\n')); err != nil {
		return "", err
	}
	if err := q.before(Staged); err != nil {
		os.Remove(temp)
		return "", err
	}
	return temp, nil
}

// swapIn renames temp to path. Where a file was read there before (info), the two are exchanged, so that what was
// claimed meanwhile is not put back by us (fs.ErrNotExist), and what a script dropped meanwhile is returned. Where
// nothing was there, nothing may be there now (fs.ErrExist).
func swapIn(temp, path string, info fs.FileInfo) (dropped *Wake, err error) {
	if info == nil {
		return nil, atomicfile.RenameNew(temp, path)
	}
	err = atomicfile.Exchange(temp, path)
	if errors.Is(err, errors.ErrUnsupported) {
		// Without an exchange a claim in the microseconds since we looked tells the older news twice, once folded.
		return nil, os.Rename(temp, path)
	}
	if err != nil {
		return nil, err
	}
	data, out, err := readFile(temp)
	if err == nil && !os.SameFile(out, info) {
		if w, err := parse(data, filepath.Base(path), out.ModTime()); err == nil {
			dropped = &w
		}
	}
	return dropped, os.Remove(temp)
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}

// errBad says that a file is no wake and will not become one, as against a machine that cannot read it now (out of
// descriptors, an I/O error).
var errBad = errors.New("not a wake")

// readFile reads a regular file of at most maxSize bytes; a FIFO or a link that was dropped in is errBad, not a trap.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	data, info, err := atomicfile.ReadPlain(path, maxSize)
	if _, unfit := errors.AsType[*atomicfile.Unfit](err); unfit || errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: %w", errBad, err)
	}
	return data, info, err
}

// quarantine moves a file to .bad, where it is kept and reported. The oldest make room beyond maxBad.
func (q *Queue) quarantine(path, why string) error {
	name := filepath.Base(path)
	kept := strings.TrimSuffix(name, ".json")
	kept = kept[:min(len(kept), maxName)] + "-" + newToken()[:hashLen] + ".json"
	if err := os.Rename(path, q.join(".bad", kept)); err != nil {
		return err
	}
	stem := FileName(strings.TrimSuffix(name, ".json"))
	q.record(Event{Event: "quarantined", ID: stem, Key: stem, Why: why})
	return q.boundBad()
}
