// Package sentinel is the work of the one process a machine that watches for all projects: every five seconds it looks
// after everything that nobody else may be there to look after.
//
// It decides nothing that it could not decide again: what it knows it reads from the state directory, so a crash at any
// moment leaves nothing but the work of one sweep undone. That only one runs is not its concern, but internal/daemon's.
package sentinel

import (
	"context"
	"log/slog"
	"time"

	"vx/internal/state"
)

// interval is from the beginning of one sweep to that of the next.
const interval = 5 * time.Second

// Config is what a sentinel works with.
type Config struct {
	Dir *state.Dir
	Log *slog.Logger
	// Over is asked after each sweep. It says why the sentinel is to end, "" if it is not.
	Over func() string
}

// Run sweeps until Over has a reason to end, or ctx ends; in either case it finishes the sweep that it is in.
func Run(ctx context.Context, c Config) error {
	house := NewHouse(c.Dir, c.Log)
	next := time.NewTicker(interval)
	defer next.Stop()
	for {
		house.Keep(context.WithoutCancel(ctx))
		if why := c.Over(); why != "" {
			c.Log.Info("sentinel ends", "why", why)
			return nil
		}
		select {
		case <-ctx.Done():
			c.Log.Info("sentinel ends", "why", "a signal")
			return nil
		case <-next.C:
		}
	}
}
