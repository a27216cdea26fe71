//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vx/hook"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// childArg is the first argument of this program as a child; the second is its order.
const childArg = "child"

// task is what a child is.
type task string

const (
	asAwait    task = "await" // a consumer: the hook
	asDrain    task = "drain" // a consumer that does not wait
	asPut      task = "put"   // a producer
	asTurn     task = "turn"  // ends a task's turn
	asSentinel task = "sentinel"
	asClient   task = "client" // starts consumers as its own children, and reads what they print
	asHolder   task = "holder" // a client that holds what its await brings
	asHold     task = "hold"   // that await
	asInject   task = "inject" // the rest try operations with faults
	asLimits   task = "limits"
	asForbid   task = "forbid"
	asFull     task = "full"
)

// An order is what a child is to do. It reports each step that it comes to on descriptor 3, as a line.
type order struct {
	Task task
	Root string // the project; of a sentinel the state directory

	Queue string // the project whose queue a turn's end is told in

	Die wake.Step // kill yourself at this step; "" for not
	Nth int       // the first time that you come to it, or the second…

	Wake   wake.Wake // to put
	Stdin  string    // for a consumer, from its client
	PID    bool      // a consumer is told its client's pid
	After  time.Duration
	From   wake.Step // what After counts from; "" for the first word
	Reader reader

	Harness    string        // of a client that holds
	Session    string        // its file
	Fate       fate          // what it does with a wake
	Pause      time.Duration // before it shows it
	AwaitAfter time.Duration // when its await is killed, counted from From too; 0 for never

	Short bool // fewer faults
	Plain bool // no file system of its own
}

// patience is how long a child waits for its reader to leave.
const patience = 10 * time.Second

const broken = 7 // the exit status of a child that could not do its work

// child is main in a child process.
func child(arg string) int {
	var o order
	if err := json.Unmarshal([]byte(arg), &o); err != nil {
		return broken
	}
	if o.Task == asClient {
		return clientMain(os.Stdin, os.Stdout)
	}
	steps := os.NewFile(3, "steps")
	fmt.Fprintln(steps, "started")
	switch o.Task {
	case asAwait, asDrain:
		return hook.Program{Before: o.dying(steps), Clock: proc.SinceBoot}.Main(string(o.Task))
	case asHold:
		return awaitMain(o, steps)
	case asInject, asLimits, asForbid, asFull:
		return faultMain(o)
	}
	if err := o.work(steps); err != nil {
		fmt.Fprintln(steps, "error", err)
		return broken
	}
	return 0
}

// work is what a child does that is no program of its own.
func (o order) work(steps *os.File) error {
	switch o.Task {
	case asSentinel:
		return sentinelMain(o, steps)
	case asHolder:
		return holderMain(o, steps)
	}
	dir, err := state.Open()
	if err != nil {
		return err
	}
	if o.Task == asTurn {
		return turnMain(dir, o, steps)
	}
	q := wake.Open(dir.Project(o.Root))
	q.Before = o.dying(steps)
	_, err = q.Put(context.Background(), o.Wake)
	return err
}

// dying reports each step and dies at the ordered one.
func (o order) dying(steps io.Writer) func(wake.Step) error {
	seen := 0
	return func(s wake.Step) error {
		fmt.Fprintln(steps, s)
		if s == o.Die {
			if seen++; seen == o.Nth {
				unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
		}
		if s == wake.Noted && o.Reader == leaves {
			unix.Poll([]unix.PollFd{{Fd: 1}}, int(patience.Milliseconds()))
		}
		return nil
	}
}
