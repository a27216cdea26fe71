package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The sentinel files.
const (
	pauseFile = "PAUSE"
	stopFile  = "STOP"
)

// What a loop says of them, to the letter: people and programs look for these lines.
const (
	sayPaused  = "PAUSED - waiting for resume..."
	sayResumed = "Resumed"
	sayStop    = "STOP sentinel detected, exiting gracefully"
)

// poll is how often a paused loop looks where nothing tells it.
const poll = 5 * time.Second

// tell is watch; tests have it fail.
var tell = watch

// has reports whether a sentinel file is there, whatever kind of file it is.
func has(dir, name string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Check does what the sentinel files say. Loops call it at the start of an iteration, before work is selected, and when a
// worker has returned. STOP comes first, also while it waits: the run ends with Stopped, the file stays, and the error is
// ErrStopped. With PAUSE it waits until that is gone. When ctx ends it returns its error, and the run goes on.
func (r *Run) Check(ctx context.Context) error {
	switch stop, err := has(r.Dir, stopFile); {
	case err != nil:
		return fmt.Errorf("run %s: %w", r.ID, err)
	case stop:
		return r.stop()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pause, err := has(r.Dir, pauseFile)
	if err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	if pause {
		return r.pause(ctx)
	}
	if r.paused { // its loop was killed while it waited
		return r.over("")
	}
	return nil
}

func (r *Run) stop() error {
	if err := r.Finish(Stopped, sayStop); err != nil {
		return err
	}
	return ErrStopped
}

// pause waits until PAUSE is gone.
func (r *Run) pause(ctx context.Context) error {
	var told <-chan struct{}
	if w, err := tell(r.Dir); err == nil { // else it looks now and then
		defer w.close()
		told = w.told
	}
	at := Field{pausedKey, time.Now().UTC().Format(time.RFC3339)}
	if err := r.write(sayPaused, at); err != nil {
		return err
	}
	r.paused = true
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		stop, err := has(r.Dir, stopFile)
		if stop {
			return r.stop()
		}
		pause, err2 := has(r.Dir, pauseFile)
		if err := errors.Join(err, err2); err != nil {
			return fmt.Errorf("run %s: %w", r.ID, err)
		}
		if !pause {
			return r.over(sayResumed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-told:
		case <-tick.C:
		}
	}
}

// over notes that the run waits no more.
func (r *Run) over(say string) error {
	if err := r.write(say, Field{pausedKey, ""}); err != nil {
		return err
	}
	r.paused = false
	return nil
}
