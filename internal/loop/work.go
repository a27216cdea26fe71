package loop

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// Interrupt is the cause with which a loop's context is cancelled on a signal.
type Interrupt struct{ Signal syscall.Signal }

func (i *Interrupt) Error() string { return i.Signal.String() }

// SignalOf is the signal that has ended a context, 0 for none.
func SignalOf(ctx context.Context) syscall.Signal {
	if i, ok := errors.AsType[*Interrupt](context.Cause(ctx)); ok {
		return i.Signal
	}
	return 0
}

// Outcome is how a worker has ended.
type Outcome struct {
	Status int            // its exit status, 128 + signal where one ended it, 127 where it was not started
	Signal syscall.Signal // that ended it, 0 for none
	Late   bool           // its time was up, and its process group was ended
	Start  error          // it could not be started
	Left   error          // its process group could not be ended
}

// Work runs a worker in a process group of its own until it ends. The group is ended when the limit (0: none) is over, or ctx
// ends.
func (r *Run) Work(ctx context.Context, cmd *exec.Cmd, limit time.Duration) Outcome {
	if err := r.Start(cmd); err != nil {
		return Outcome{Status: 127, Start: err}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Wait(cmd) // the status says it
	}()
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	o := Outcome{}
	select {
	case <-done:
	case <-ctx.Done():
		o.Left = r.EndWorker()
	case <-late:
		o.Late = true
		o.Left = r.EndWorker()
	}
	<-done
	o.Status = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		o.Signal, o.Status = ws.Signal(), 128+int(ws.Signal())
	}
	return o
}
