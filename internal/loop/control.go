package loop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/state"
)

// Unfound is a run that is not there, or not the one that is meant.
type Unfound struct {
	What string // in the words of ralphctl, for programs that know them
	Fix  string
}

func (u *Unfound) Error() string { return strings.ToLower(u.What[:1]) + u.What[1:] }

// Hint is the command that shows which runs there are.
func (u *Unfound) Hint() string { return u.Fix }

// Pick is the run that is meant: by its id, which may be shortened while one active run alone begins so, or the only
// active one.
func Pick(all []Found, id string) (*Found, error) {
	var active, begin []*Found
	for i := range all {
		f := &all[i]
		if !f.Active() {
			continue
		}
		active = append(active, f)
		switch {
		case f.ID == id:
			return f, nil
		case id != "" && strings.HasPrefix(f.ID, id):
			begin = append(begin, f)
		}
	}
	meant := active
	if id != "" {
		meant = begin
	}
	switch {
	case len(meant) == 1:
		return meant[0], nil
	case len(meant) > 1:
		return nil, &Unfound{"Multiple active runs, specify --run: " + ids(meant), "vx loop list"}
	case id != "":
		return nil, &Unfound{fmt.Sprintf("Run %s not found or not active", line(id)), "vx loop list"}
	}
	return nil, &Unfound{"No active runs", "vx loop list"}
}

// Any is Pick for whoever wants to see a run: one that has ended counts if it is named, and so does the only one that was
// found dead by this look.
func Any(all []Found, id string) (*Found, error) {
	f, err := Pick(all, id)
	if err == nil {
		return f, nil
	}
	var meant []*Found
	for i := range all {
		f := &all[i]
		switch {
		case id != "" && f.ID == id:
			return f, nil
		case id != "" && strings.HasPrefix(f.ID, id), id == "" && f.Fresh:
			meant = append(meant, f)
		}
	}
	if u := err.(*Unfound); len(meant) == 1 && !strings.HasPrefix(u.What, "Multiple") {
		return meant[0], nil
	}
	return nil, err
}

func ids(all []*Found) string {
	var names []string
	for _, f := range all {
		names = append(names, line(f.ID))
	}
	return strings.Join(names, ", ")
}

// AskPause makes PAUSE: the loop waits before its next piece of work. Asked twice it is asked once.
func (f *Found) AskPause() error { return f.ask(pauseFile) }

// AskStop makes STOP: the loop ends before its next piece of work.
func (f *Found) AskStop() error { return f.ask(stopFile) }

func (f *Found) ask(name string) error {
	// Whatever is there already, a link too, is not written to.
	file, err := os.OpenFile(filepath.Join(f.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(file.Close(), atomicfile.SyncDir(f.Dir))
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", line(f.ID), err)
	}
	return nil
}

// Resume takes PAUSE away.
func (f *Found) Resume() error {
	err := os.Remove(filepath.Join(f.Dir, pauseFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = atomicfile.SyncDir(f.Dir)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", line(f.ID), err)
	}
	return nil
}

// Endable refuses a run of whose worker nothing is known here.
func (f *Found) Endable() error {
	why := "is kept by another program: its worker is not known"
	switch {
	case f.record == nil:
	case f.record.here():
		return nil
	default:
		why = "is on another machine: its worker is not seen from here"
	}
	return &Unfound{
		fmt.Sprintf("Run %s %s and cannot be ended", line(f.ID), why),
		"vx loop stop --run " + state.Quote(line(f.ID)) + " lets the worker finish",
	}
}

// starting is how long a loop that has just looked for STOP takes to write down whom it has started.
const starting = time.Second

// EndWorker ends the process group of the run's worker, after AskStop. It is false where there is none any more. Nothing is
// signalled whose identity is not proven.
func (f *Found) EndWorker() (bool, error) {
	if err := f.Endable(); err != nil {
		return false, err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		record, err := readRecord(f.Dir)
		if err != nil {
			return false, err
		}
		if record != nil {
			f.record = record
		}
		if w := f.worker(); w != nil {
			return w.end()
		}
		if p, err := readProgress(f.Dir); err != nil || p.reason != "" || time.Since(began) > starting {
			return false, err
		}
	}
}
