package doctor

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"vx/internal/proc"
)

const (
	askInterval = 5 * time.Millisecond
	leaveWait   = 2 * time.Second // from SIGTERM to SIGKILL; an await leaves within one
	maxOutput   = 16 << 10        // bytes that are kept of what a child prints
)

// child is a process that doctor started, leading a group of its own.
type child struct {
	cmd *exec.Cmd
	id  proc.ID
}

// start starts a command in a process group of its own.
func start(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Somebody who left the group may hold an output open.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd}
	var err error
	if c.id, err = proc.Find(cmd.Process.Pid); err != nil && !errors.Is(err, proc.ErrGone) {
		return nil, errors.Join(err, c.finish())
	}
	return c, nil
}

// ended reports whether the process has ended. It is not waited for yet.
func (c *child) ended() bool { return c.id.IsZero() || c.id.Status() == proc.Gone }

// await waits for the process's end until the time is up, and reports whether it came.
func (c *child) await(ctx context.Context, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); !c.ended(); time.Sleep(askInterval) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
	}
	return true
}

// finish ends what is left of the group, gently first, and waits for the process. As long as its leader was not waited
// for, its number is nobody else's, so the signals reach only what was started here.
func (c *child) finish() error {
	group := -c.cmd.Process.Pid
	if !c.ended() {
		syscall.Kill(group, syscall.SIGTERM)
		c.await(context.Background(), leaveWait)
	}
	syscall.Kill(group, syscall.SIGKILL)
	err := c.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok || errors.Is(err, exec.ErrWaitDelay) {
		return nil // the exit status is looked at by itself
	}
	return err
}

// head keeps the beginning of what is written to it.
type head struct{ kept bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := maxOutput - h.kept.Len(); room > 0 {
		h.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (h *head) String() string { return h.kept.String() }
