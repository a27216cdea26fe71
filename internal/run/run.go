// Package run runs a command for a person or a script, in the way a shell would, and puts a wake into a project's queue
// when it has ended: how, after how long, and with which last lines.
//
// Where the command would print to a terminal it gets one of its own, in a session of its own, and the real one passes
// keys and output on; so it can be anything, a full-screen editor too. A small process in that session, the monitor, is
// the command's parent there: it makes Ctrl-Z work, and takes care that what the command leaves behind is not hung up
// with it. Elsewhere the command stays in vx's process group, with its own stdin, and prints through pipes.
//
// It is not a supervisor: it never kills the command, restarts nothing and sets no limits. If vx run itself is killed
// with SIGKILL, no wake is put, and the command loses its terminal or the reader of its output; every other end is told.
package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"vx/internal/proc"
	"vx/internal/wake"
)

// The exit statuses of a command that could not be started, as shells have them.
const (
	statusNotFound = 127
	statusNotRun   = 126
)

// Command is a command to run and to tell of.
type Command struct {
	Args   []string // the command and its arguments, at least one
	Title  string   // what to call it; "": the command itself
	Key    string   // the wake's key; "": the run's own
	Tail   int      // how many of the last lines go into the wake
	Direct bool     // the command prints to Stdout and Stderr itself; no lines are known then

	Stdin, Stdout, Stderr *os.File
	Queue                 *wake.Queue
}

// Run runs the command to its end and puts the wake. It returns the command's exit status as a shell would give it (128
// and the signal's number, 127 and 126 when it could not be started), and beside it what went wrong on vx's own part:
// the command was not started, its output could not be passed on, or the wake was not put.
func (c Command) Run() (status int, err error) {
	r := &running{Command: c, id: wake.NewID(time.Now())[10:], began: proc.SinceBoot(), last: "running"}
	r.signals = catch()
	defer r.signals.release()
	if r.out, err = newOutput(c); err != nil {
		return 1, fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	defer r.out.close()
	if err := r.start(); err != nil {
		return r.notStarted(err)
	}
	end := r.attend()
	r.out.drain(lag)
	err = r.tell(r.verdict(end))
	return statusOf(end), errors.Join(err, r.out.leave(r.signals.end))
}

// lag is how long the output of a command that has ended may still be coming in before the wake is put without it: what
// it left running can hold its output open for ever.
const lag = time.Second

// start starts the command. Like execvp it gives a script without an interpreter's line to sh.
func (r *running) start() error {
	path, err := exec.LookPath(r.Args[0])
	if err != nil {
		return err
	}
	launch := launchDirect
	if r.out.terminal != nil {
		launch = launchMonitored
	}
	r.child, err = launch(path, r.Args, r.out)
	if errors.Is(err, syscall.ENOEXEC) {
		r.child, err = launch("/bin/sh", append([]string{"sh", path}, r.Args[1:]...), r.out)
	}
	if err == nil {
		r.out.relay()
	}
	return err
}

// notStarted tells of a command that could not be started.
func (r *running) notStarted(cause error) (status int, err error) {
	status, why := statusNotRun, cause
	if pe, ok := errors.AsType[*fs.PathError](cause); ok {
		why = pe.Err
	}
	if ee, ok := errors.AsType[*exec.Error](cause); ok {
		why = ee.Err
	}
	if errors.Is(cause, exec.ErrNotFound) || errors.Is(cause, fs.ErrNotExist) {
		status, why = statusNotFound, errors.New("command not found")
	}
	err = fmt.Errorf("run %s: %w", r.Args[0], why)
	return status, errors.Join(err, r.tell(ending{"failed", fmt.Sprintf("exit %d, %v", status, why)}))
}

// tell puts the wake that says how the run ended, or stands. A second one of the same run is folded into the first, or
// follows it.
func (r *running) tell(e ending) error {
	key := r.Key
	if key == "" {
		key = "run-" + r.id
	}
	title := r.Title
	if title == "" {
		title = commandLine(r.Args)
	}
	_, err := r.Queue.Put(context.Background(), wake.Wake{
		Key:       key,
		Kind:      wake.KindRun,
		TaskID:    r.id,
		OldStatus: r.last,
		NewStatus: e.status,
		Outcome:   e.outcome,
		Title:     title,
		Detail:    r.out.tail.text(),
		Producer:  "vx run",
	})
	if err != nil {
		return fmt.Errorf("run %s: no wake was put: %w", r.id, err)
	}
	r.last = e.status
	return nil
}
