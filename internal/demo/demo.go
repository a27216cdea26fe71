// Package demo shows the whole way of a wake on one machine, with nothing else installed: vx is registered in a scratch
// project, the registered command is run as Claude Code would run it, a wake is sent from another process and comes out,
// and vx is taken out again. Each step is a promise; the first that is not kept ends the demo.
//
// It knows vx only from outside, as a user does: its commands, its exit statuses and what they print. Everything is in a
// scratch directory with a HOME of its own, and every process is one that it started. Both are gone in the end, also
// after a failure or a signal; only a crash leaves the directory behind, without which the sentinel, the one process that
// the hook starts and leaves running, ends by itself.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Unkept says that a promise was not kept.
type Unkept struct{ Step, Want, Got string }

func (e *Unkept) Error() string {
	return fmt.Sprintf("demo: %s: want %s, got %s", e.Step, e.Want, e.Got)
}

// unkept is an Unkept whose step Run fills in.
func unkept(got, want string, args ...any) error {
	return &Unkept{Want: fmt.Sprintf(want, args...), Got: got}
}

// limit is how long the demo may take; it takes a second.
const limit = 10 * time.Second

// step is one promise. It returns what it has to show: the rest of its line, and lines below.
type step struct {
	name string
	run  func(*stage) (shown string, err error)
}

var steps = []step{
	{"a scratch project", (*stage).build},
	{"vx init", (*stage).install},
	{"the registered command", (*stage).readBack},
	{"the Stop hook", (*stage).start},
	{"vx wake send", (*stage).send},
	{"the wake", (*stage).receive},
	{"the receipt", (*stage).prove},
	{"vx uninstall", (*stage).uninstall},
}

// Run gives the demo with the vx at a path, a line and more for each step on out. The error is an *Unkept when vx does
// not do as promised.
func Run(ctx context.Context, vx string, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("nothing within %v", limit))
	defer cancel()
	s := &stage{ctx: ctx, vx: vx}
	if s.scratch, err = os.MkdirTemp("", "vx-demo-"); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() {
		s.hook.kill()
		s.stopSentinel()
		if rerr := os.RemoveAll(s.scratch); rerr != nil && err == nil {
			err = fmt.Errorf("demo: %w", rerr)
		}
	}()
	if s.scratch, err = filepath.EvalSymlinks(s.scratch); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	began := time.Now()
	fmt.Fprintf(out, "the way of a wake, in %s\n", s.scratch)
	for i, step := range steps {
		shown, err := step.run(s)
		if err != nil {
			fmt.Fprintf(out, "%2d. %-23s FAILED\n", i+1, step.name)
			return s.failed(step.name, err)
		}
		line, below, _ := strings.Cut(shown, "\n")
		fmt.Fprintf(out, "%2d. %-23s %s\n", i+1, step.name, line)
		if below != "" {
			fmt.Fprintf(out, "      | %s\n", strings.ReplaceAll(strings.TrimSuffix(below, "\n"), "\n", "\n      | "))
		}
	}
	fmt.Fprintf(out, "all as promised, in %.1f s; nothing is left of it\n", time.Since(began).Seconds())
	return nil
}

// failed names the step, and the cause where the demo was interrupted or out of time.
func (s *stage) failed(name string, err error) error {
	u, ok := errors.AsType[*Unkept](err)
	if cause := context.Cause(s.ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return errors.New("demo: interrupted")
		}
		if ok {
			u.Got = cause.Error()
		}
	}
	if ok {
		u.Step = name
		return u
	}
	return fmt.Errorf("demo: %s: %w", name, err)
}
