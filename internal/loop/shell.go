package loop

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"vx/internal/state"
)

// Owned is a run directory whose own loop heeds its files and writes its marker.
type Owned struct {
	Dir string
	PID int
}

func (o *Owned) Error() string {
	return fmt.Sprintf("run directory %s: its run belongs to process %d, which lives", o.Dir, o.PID)
}

// Hint is the command for other people's runs.
func (o *Owned) Hint() string {
	return "vx loop pause, resume or stop --run " + state.Quote(filepath.Base(o.Dir))
}

// Join is the run of a shell loop, which keeps a run directory and has no process that is known. The error is an *Owned
// where a loop of vx that lives has the directory.
func Join(dir string) (*Run, error) {
	dir, err := resolve(dir)
	if err != nil {
		return nil, err
	}
	record, err := readRecord(dir)
	if err != nil {
		return nil, err
	}
	if record != nil && !record.gone(time.Now()) {
		return nil, &Owned{dir, record.PID}
	}
	p, err := readProgress(dir)
	if err != nil {
		return nil, err
	}
	r := &Run{ID: filepath.Base(dir), Dir: dir}
	r.paused, r.ended = !p.pausedSince().IsZero(), p.reason != ""
	if !p.there {
		if err := add(dir, header("a shell loop", r.ID, time.Now()), true); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Ended reports whether the run has its marker.
func (r *Run) Ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// Register makes the run known to a project, so that it is listed and controlled like its others.
func (r *Run) Register(p *state.Project) error {
	if err := p.Ensure(); err != nil {
		return err
	}
	_, err := register(p, r.Dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // it works without
	}
	return err
}
