package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
	"vx/internal/wake"
)

const (
	printWait = 10 * time.Second // for room in a full pipe
	drainWait = 2 * time.Second  // for the reader to take in what was printed, where no transcript will show it
	chunk     = 4096             // bytes; what poll says there is room for
)

// courier carries wakes from a project's queue to one client.
type courier struct {
	*call
	client  proc.ID
	queue   *wake.Queue
	out     streams
	before  func(wake.Step) error
	printed *bool // set once the text is out whole: from then on the exit is 2, come what may
	log     *slog.Logger
}

// outcome is what became of the wakes that were claimed.
type outcome int

const (
	nothing   outcome = iota // none were claimed
	delivered                // printed whole, and the reader stood
	kept                     // put back before a byte was printed
	refused                  // put back because the reader is gone, or did not take them
)

// carry prints a delivery, and puts it back if the client does not take it. Whoever dies in the middle leaves it to
// Settle, which knows from the note whether it may have been read.
func (k *courier) carry(ctx context.Context, d *wake.Delivery, w *watch) outcome {
	if err := d.Note(k.recipient()); err != nil {
		k.release(ctx, d, "it could not be noted whom they go to", err)
		return kept
	}
	if err := k.step(wake.Printing); err != nil {
		k.release(ctx, d, "they could not be printed", err)
		return kept
	}
	if err := k.print(d.Text); err != nil {
		k.release(ctx, d, "they could not be printed whole", err)
		return refused
	}
	if err := k.taken(w); err != nil {
		k.release(ctx, d, err.Error(), nil)
		return refused
	}
	*k.printed = true
	if err := d.Emit(); err != nil {
		// The text is out: the client is to have it. The delivery is judged by its receipt all the same.
		k.log.Error("emit", "err", err)
	}
	return delivered
}

func (k *courier) recipient() wake.Recipient {
	to := wake.Recipient{Client: k.client, Harness: k.harness, Session: k.Session, Pane: k.pane, Transcript: k.Transcript}
	if k.claude {
		to.Harness = "claude"
	}
	return to
}

func (k *courier) step(s wake.Step) error {
	if k.before == nil {
		return nil
	}
	return k.before(s)
}

func (k *courier) release(ctx context.Context, d *wake.Delivery, why string, err error) {
	k.log.Warn("wakes go back", "why", why, "err", err)
	if err := d.Release(ctx, why); err != nil {
		k.log.Error("release", "err", err)
	}
}

// print writes the text to stderr, which the client shows the model after an exit with 2, and then as a decision to
// stdout. In this order a failure in between leaves nothing that an exit with 0 would deliver.
func (k *courier) print(text string) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}{"block", text})
	if err != nil {
		return err
	}
	deadline := time.Now().Add(printWait)
	if k.out.stderr >= 0 {
		if err := writeWhole(k.out.stderr, []byte(text), deadline); err != nil {
			return fmt.Errorf("stderr: %w", err)
		}
	}
	if err := writeWhole(k.out.stdout, line.Bytes(), deadline); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	return nil
}

// writeWhole writes all of data before the deadline. It never blocks on a pipe that nobody empties.
func writeWhole(fd int, data []byte, deadline time.Time) error {
	for len(data) > 0 {
		wait := time.Until(deadline).Milliseconds()
		if wait <= 0 {
			return os.ErrDeadlineExceeded
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, int(wait))
		switch {
		case err == unix.EINTR, err == nil && n == 0:
			continue
		case err != nil:
			return err
		case fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
			return unix.EPIPE
		}
		n, err = unix.Write(fd, data[:min(len(data), chunk)])
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return err
		}
		data = data[max(n, 0):]
	}
	return nil
}

// taken reports an error unless the reader still stands after everything was printed. Where no transcript will show what
// it got, it must also have read it all.
func (k *courier) taken(w *watch) error {
	proven := k.Transcript != ""
	if proven {
		_, err := os.Stat(k.Transcript)
		proven = err == nil
	}
	deadline := time.Now().Add(drainWait)
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		seen, err := w.wait(0)
		switch {
		case err != nil:
			return fmt.Errorf("streams: %w", err)
		case seen.hungUp:
			return errors.New("the reader hung up")
		case proven:
			return nil
		case seen.ended:
			return errors.New("the client ended")
		case drained(k.out.stderr) && drained(k.out.stdout):
			if k.client.Status() == proc.Gone {
				return errors.New("the client is gone")
			}
			return nil
		case time.Now().After(deadline):
			return errors.New("the reader did not take them in")
		}
		time.Sleep(pause)
	}
}

// drain delivers once what is there now, as a decision on stdout alone.
func (k *courier) drain(ctx context.Context) {
	signals, err := catchSignals()
	var w *watch
	if err == nil {
		k.out.stderr = -1
		w, err = newWatch(watched{bell: -1, client: -1, signals: signals.fd, orders: -1, out: k.out})
	}
	if err != nil {
		k.log.Error("streams", "err", err)
		return
	}
	if err := k.queue.Settle(ctx); err != nil {
		k.log.Warn("settle", "err", err)
	}
	if muted(k.project, k.log) {
		return
	}
	if seen, err := w.wait(0); err != nil || seen.hungUp || seen.asked {
		return
	}
	d, err := k.queue.Claim(ctx)
	if err != nil {
		k.log.Error("queue", "err", err)
	}
	if d != nil {
		k.carry(ctx, d, w)
	}
}
