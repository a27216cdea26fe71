//go:build !windows

package main

import (
	"fmt"
	"time"

	"vx/internal/awaiter"
	"vx/internal/state"
)

type muteCommand struct {
	For *span `arg:"" optional:"" name:"dur" help:"For how long: 30m, 8h, 2d. Default: until vx unmute."`
	place
}

type unmuteCommand struct{ place }

// noEnd is the end of a mute that has none.
var noEnd = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Validate is called by kong after parsing.
func (m *muteCommand) Validate() error {
	if m.For != nil && *m.For <= 0 {
		return &usageError{"the duration is not above zero", "vx mute 8h, or vx unmute"}
	}
	return nil
}

func (m *muteCommand) Run(std stdio, dir *state.Dir) error {
	p, err := m.project(dir)
	if err != nil {
		return err
	}
	until := noEnd
	if m.For != nil {
		until = time.Now().Add(time.Duration(*m.For)).Round(time.Second)
	}
	if err := p.Ensure(); err != nil {
		return err
	}
	if err := p.Update(func(c *state.Config) { c.MutedUntil = until }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "wakes of %s stay in the queue %s\n", printable(p.Root), untilWhen(until))
	return err
}

func (u *unmuteCommand) Run(std stdio, dir *state.Dir) error {
	p, err := u.project(dir)
	if err != nil {
		return err
	}
	c, err := p.Config()
	if err != nil {
		return err
	}
	if !c.Muted(time.Now()) {
		_, err := fmt.Fprintf(std.out, "%s is not muted\n", printable(p.Root))
		return err
	}
	if err := p.Update(func(c *state.Config) { c.MutedUntil = time.Time{} }); err != nil {
		return err
	}
	awaiter.Ring(dir, p) // for what has come meanwhile
	_, err = fmt.Fprintf(std.out, "wakes of %s are delivered again\n", printable(p.Root))
	return err
}

// project is the project that is meant.
func (p place) project(dir *state.Dir) (*state.Project, error) {
	root, err := p.root(dir)
	if err != nil {
		return nil, err
	}
	return dir.Project(root), nil
}

// untilWhen is the end of a mute, in words.
func untilWhen(t time.Time) string {
	if t.Year() >= noEnd.Year()-1 {
		return "until vx unmute"
	}
	return "until " + clock(t)
}
