//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"vx/internal/state"
	"vx/internal/wake"
)

type gcCommand struct {
	Older  span `name:"older" default:"30d" placeholder:"DUR" help:"What has not changed for so long (30d)."`
	DryRun bool `name:"dry-run" help:"Remove nothing, and say what would be."`
}

// Validate is called by kong after parsing.
func (g *gcCommand) Validate() error {
	if g.Older < 0 {
		return &usageError{"--older is negative", "vx gc --older 30d"}
	}
	return nil
}

func (g *gcCommand) Run(ctx context.Context, std stdio) error {
	dir, err := state.Look()
	if errors.Is(err, fs.ErrNotExist) {
		_, err := fmt.Fprintln(std.out, "nothing to remove")
		return err
	}
	if err != nil {
		return err
	}
	found, trouble := wake.Collect(ctx, dir, time.Duration(g.Older), g.DryRun)
	verb := "removed"
	if g.DryRun {
		verb = "would remove"
	}
	var bytes int64
	for _, f := range found {
		bytes += f.Bytes
		fmt.Fprintf(std.out, "%s %s (%s, %s)\n", verb, printable(f.Path), printable(f.What), size(f.Bytes))
	}
	if len(found) == 0 {
		fmt.Fprintln(std.out, "nothing to remove")
	} else {
		fmt.Fprintf(std.out, "%s in all: %d, %s\n", verb, len(found), size(bytes))
	}
	return trouble
}

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
