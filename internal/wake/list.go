package wake

import (
	"cmp"
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
)

// Listing is what a queue holds at one moment, oldest first.
type Listing struct {
	Waiting []Wake     `json:"waiting"`
	Claimed []InFlight `json:"claimed"`
	Emitted []InFlight `json:"emitted"`
	Bad     []Bad      `json:"bad"`
}

// InFlight is a wake in a delivery that has not ended. The token is not in it: it is printed nowhere but in the message,
// so that only the message can put it into a transcript.
type InFlight struct {
	Wake      Wake       `json:"wake"`
	Recipient *Recipient `json:"recipient,omitempty"` // nil until it is about to be printed
	Since     time.Time  `json:"since"`               // when its directory last changed
	Live      bool       `json:"live"`                // its owner holds it
}

// Bad is a file that could not be read or shown, or that never reached a model, kept in .bad/.
type Bad struct {
	Name string    `json:"name"`
	Path string    `json:"path"`
	Time time.Time `json:"time"`
	Size int64     `json:"size"` // bytes
}

// The bounds of .bad/; beyond them the oldest make room.
const (
	maxBad      = 200
	maxBadBytes = 64 << 20
)

// List reads what the queue holds. At most limit waiting wakes are read (0: all). What does not parse is left out of
// them, for the next claim to see to.
func (q *Queue) List(limit int) (Listing, error) {
	l := Listing{Waiting: []Wake{}, Claimed: []InFlight{}, Emitted: []InFlight{}, Bad: []Bad{}}
	err := q.eachName(func(name string) (bool, error) {
		data, info, err := readFile(q.join(name))
		if errors.Is(err, errBad) || errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if w, err := parse(data, filepath.Base(name), info.ModTime()); err == nil {
			l.Waiting = append(l.Waiting, w)
		}
		return limit == 0 || len(l.Waiting) < limit, nil
	})
	if err != nil {
		return l, fmt.Errorf("queue: %w", err)
	}
	slices.SortStableFunc(l.Waiting, older)
	if l.Claimed, err = q.inFlight(".claimed"); err == nil {
		l.Emitted, err = q.inFlight(".emitted")
	}
	if err == nil {
		l.Bad, err = q.bad()
	}
	if err != nil {
		return l, fmt.Errorf("queue: %w", err)
	}
	return l, nil
}

func (q *Queue) inFlight(stage string) ([]InFlight, error) {
	all := []InFlight{}
	tokens, err := atomicfile.Names(q.join(stage))
	if err != nil {
		return all, err
	}
	for _, token := range tokens {
		d := &Delivery{Token: token, q: q, dir: q.join(stage, token)}
		fi, err := os.Stat(d.dir)
		if err == nil {
			err = d.reread()
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // it ended while we looked
		}
		if err != nil {
			return all, err
		}
		f := InFlight{Since: fi.ModTime(), Live: owned(d.dir)}
		if n, err := readNote(d.dir); err == nil && n != nil {
			f.Recipient = &n.Recipient
		}
		for _, w := range d.Wakes {
			f.Wake = w
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b InFlight) int { return older(a.Wake, b.Wake) })
	return all, nil
}

// owned reports whether a delivery's owner holds it.
func owned(dir string) bool { return held(filepath.Join(dir, "owner")) }

// held reports whether somebody has locked the file. It looks only: one that is not there is not made.
func held(path string) bool {
	if !exists(path) {
		return false
	}
	l, err := lock.Try(path)
	if err != nil {
		return errors.Is(err, lock.ErrHeld)
	}
	l.Unlock()
	return false
}

// Count is how many wakes wait, without reading them.
func (q *Queue) Count() (int, error) {
	n := 0
	err := q.eachName(func(string) (bool, error) { n++; return true, nil })
	return n, err
}

func (q *Queue) bad() ([]Bad, error) {
	all := []Bad{}
	entries, err := os.ReadDir(q.join(".bad"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return all, err
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, Bad{e.Name(), q.join(".bad", e.Name()), fi.ModTime(), fi.Size()})
		}
	}
	slices.SortStableFunc(all, func(a, b Bad) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// boundBad removes the oldest of .bad beyond its bounds, and says so in the history.
func (q *Queue) boundBad() error {
	all, err := q.bad()
	if err != nil {
		return err
	}
	var size int64
	for _, b := range all {
		size += b.Size
	}
	for len(all) > maxBad || size > maxBadBytes && len(all) > 1 {
		if err := os.RemoveAll(all[0].Path); err != nil {
			return err
		}
		q.record(Event{Event: "dropped", ID: oneLine(all[0].Name, 80), Why: "the oldest in .bad made room"})
		size -= all[0].Size
		all = all[1:]
	}
	return nil
}
