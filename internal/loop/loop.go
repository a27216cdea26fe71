// Package loop holds runs. A run is one execution of a loop that lets an agent work again and again; it has a directory of
// its own, in which anybody can see how far it has come and ask it to pause or to stop. The files are those of ralph.sh, so
// that runs of either kind are read and controlled alike:
//
//	progress.txt   a header, key=value lines, prose; at its end the marker: that the run has ended, and why
//	PAUSE, STOP    are there or not; whoever makes one asks, and the loop looks between two pieces of work
//	iter-NNN.log   what the worker of an iteration printed
//	run.json       whose run it is: kind, command, process, limits. Only the owner writes it; ralph.sh has none
//	.lock          held by the owner as long as it lives, and by whoever writes a marker in its place
//
// What a loop does in an iteration is no business of this package. The two loops of vx are packages below it: loop/green
// works until a gate is green, loop/ralph until a selector finds no more work. They import this package and not each other,
// and own a Run:
//
//	run, err := loop.Create(project, loop.Plan{Kind: "green", …})    the tree's lock, the directory, the heartbeat
//	defer run.Finish(loop.Failed, "…")                               does nothing where it has ended already
//	for n := 1; ; n++ {
//		err = run.Check(ctx)                                      STOP: ErrStopped, and the run has ended
//		run.Begin(n, loop.Field{"task", …})                        "## … - iter n", iteration=n, task=…
//		err = run.Start(cmd); err = run.Wait(cmd)                  the worker, in a process group of its own
//		run.Note(loop.Field{"claude_rc", …}); err = run.Check(ctx)
//	}
//	err = run.Finish(loop.Done, ""); os.Exit(loop.Done.Status(0))
//
// Whoever only looks (vx loop, vx status, the sentinel) asks List, which also finds runs of ralph.sh and of shell loops.
//
// A crash leaves a run without a marker, whose owner's process is gone: the next List writes CRASHED for it. A marker that
// was being written is completed, with its own reason where that stands there whole. A crash of Create leaves a directory
// that is marked in the same way, or an empty one.
package loop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Reason is why a run has ended, as its marker says it.
type Reason string

// The reasons. Crashed is written by whoever finds that the owner is gone; NeedsHuman is ralph.sh's, with a text behind it.
const (
	Done          Reason = "DONE"
	NoWork        Reason = "NO_WORK"
	Stopped       Reason = "STOPPED"
	Escalated     Reason = "ESCALATED"
	MaxIterations Reason = "MAX_ITERATIONS"
	Failed        Reason = "FAILED"
	Budget        Reason = "BUDGET"
	Interrupted   Reason = "INTERRUPTED"
	Crashed       Reason = "CRASHED"
	NeedsHuman    Reason = "NEEDS_HUMAN"
)

// Reasons are all of them.
var Reasons = []Reason{Done, NoWork, Stopped, Escalated, MaxIterations, Failed, Budget, Interrupted, Crashed, NeedsHuman}

// Status is the exit status that goes with the reason. The signal counts for Interrupted alone.
func (r Reason) Status(sig syscall.Signal) int {
	switch r {
	case Done, NoWork, Stopped:
		return 0
	case Escalated:
		return 3
	case Interrupted:
		return 128 + int(sig)
	}
	return 1
}

// ParseReason reads a reason; NEEDS_HUMAN may have a text behind it: "NEEDS_HUMAN: which database".
func ParseReason(s string) (Reason, error) {
	word, text, more := strings.Cut(s, ":")
	if !slices.Contains(Reasons, Reason(word)) || more && Reason(word) != NeedsHuman {
		return "", fmt.Errorf("unknown reason %.40q", s)
	}
	if text = line(text); text == "" {
		return Reason(word), nil
	}
	return Reason(word + ": " + text), nil
}

// ErrStopped is what Check returns after it has ended the run because of STOP.
var ErrStopped = errors.New("stopped")
