package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// heed calls Check in a goroutine of its own.
func heed(ctx context.Context, r *Run) chan error {
	done := make(chan error, 1)
	go func() { done <- r.Check(ctx) }()
	return done
}

func touch(t *testing.T, dir, name string) {
	t.Helper()
	write(t, filepath.Join(dir, name), "")
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// said is what of a run's progress are log lines.
func said(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	for l := range strings.Lines(progressOf(t, dir)) {
		l = strings.TrimSpace(l)
		if l == sayPaused || l == sayResumed || l == sayStop {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "|")
}

// waits reports whether the run says that it is paused.
func waits(w *world, id string) func() bool {
	return func() bool {
		for _, f := range w.list() {
			if f.ID == id {
				return f.State == Paused
			}
		}
		return false
	}
}

func TestWithoutFilesARunGoesOn(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	if err := r.Check(t.Context()); err != nil || said(t, r.Dir) != "" {
		t.Errorf("%v, %q", err, said(t, r.Dir))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestStopComesBeforePauseAndStays(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	touch(t, r.Dir, stopFile)
	touch(t, r.Dir, pauseFile)
	if f := w.only(); f.State != Stopping {
		t.Errorf("%s", f.State)
	}
	for range 2 {
		if err := r.Check(t.Context()); !errors.Is(err, ErrStopped) {
			t.Fatalf("%v", err)
		}
	}
	if got := said(t, r.Dir); got != sayStop {
		t.Errorf("it says %q", got)
	}
	if f := w.only(); f.Reason != Stopped || !f.Stop || !f.Pause {
		t.Errorf("%+v", f)
	}
	w.create(w.plan()) // the tree is free
}

func TestAPauseIsSaidOnceAndResumed(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	if f := w.only(); f.State != Running {
		t.Errorf("%s", f.State)
	}
	touch(t, r.Dir, pauseFile)
	if f := w.only(); f.State != PauseAsked || !f.Tells || f.AskedAt.IsZero() {
		t.Errorf("%+v", f)
	}
	done := heed(t.Context(), r)
	eventually(t, "the pause", waits(w, r.ID))
	// Others come and go meanwhile.
	touch(t, r.Dir, "iter-001.log")
	remove(t, r.Dir, "iter-001.log")
	remove(t, r.Dir, pauseFile)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := said(t, r.Dir); got != sayPaused+"|"+sayResumed {
		t.Errorf("it says %q", got)
	}
	if f := w.only(); f.State != Running || !f.PausedAt.IsZero() {
		t.Errorf("%+v", f)
	}
	// Asked for again, it has not taken effect.
	touch(t, r.Dir, pauseFile)
	if f := w.only(); f.State != PauseAsked {
		t.Errorf("%s", f.State)
	}
}

func TestStopIsSeenWhilePaused(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	touch(t, r.Dir, pauseFile)
	done := heed(t.Context(), r)
	eventually(t, "the pause", waits(w, r.ID))
	touch(t, r.Dir, stopFile)
	if err := <-done; !errors.Is(err, ErrStopped) {
		t.Fatal(err)
	}
	if got := said(t, r.Dir); got != sayPaused+"|"+sayStop {
		t.Errorf("it says %q", got)
	}
	if f := w.only(); f.Reason != Stopped || !f.Pause {
		t.Errorf("%+v", f)
	}
}

func TestAPausedRunCanBeInterrupted(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	touch(t, r.Dir, pauseFile)
	ctx, cancel := context.WithCancel(t.Context())
	done := heed(ctx, r)
	eventually(t, "the pause", waits(w, r.ID))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if f := w.only(); !f.Active() {
		t.Errorf("%+v", f)
	}
}

// In the bubble the clock stands still as long as anybody waits for the kernel, so that the ticks would never come.
func TestTheEndOfAPauseIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.create(w.plan())
		began := time.Now()
		touch(t, r.Dir, pauseFile)
		r.Say = func(line string) {
			if line == sayPaused {
				remove(t, r.Dir, pauseFile)
			}
		}
		if err := r.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d >= poll {
			t.Errorf("it took %v", d)
		}
		r.Finish(Done, "")
	})
}

func TestWhereNothingTellsItIsNoticedAfterFiveSeconds(t *testing.T) {
	tell = func(string) (*changes, error) { return nil, errors.ErrUnsupported }
	defer func() { tell = watch }()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.create(w.plan())
		touch(t, r.Dir, pauseFile)
		done := heed(t.Context(), r)
		synctest.Wait()
		began := time.Now()
		remove(t, r.Dir, pauseFile)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > poll {
			t.Errorf("it took %v", d)
		}
		r.Finish(Done, "")
	})
}

func TestAShellLoopHasTheSameManners(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "night")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	join := func() *Run {
		r, err := Join(dir)
		if err == nil {
			err = r.Register(w.p)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := join().Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := w.only()
	if f.ID != "night" || f.Kind != kindShell || f.State != Running {
		t.Errorf("%+v", f)
	}
	// Killed while it waits, it says at its next check that it waits no more.
	if err := f.AskPause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := heed(ctx, join())
	eventually(t, "the pause", waits(w, "night"))
	cancel()
	<-done
	if err := f.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := join().Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.AskPause(); err != nil {
		t.Fatal(err)
	}
	if f := w.only(); f.State != PauseAsked {
		t.Errorf("%s", f.State)
	}
	if err := f.AskStop(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := join().Check(t.Context()); !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
	}
	if err := join().Finish(Failed, ""); err != nil {
		t.Fatal(err)
	}
	if f := w.only(); f.Reason != Stopped || strings.Count(progressOf(t, dir), complete) != 1 {
		t.Errorf("%+v", f)
	}
}

func TestMarkersOfSeveralHandsAreOne(t *testing.T) {
	dir := t.TempDir()
	var hands []*Run
	for range Reasons {
		r, err := Join(dir)
		if err != nil {
			t.Fatal(err)
		}
		hands = append(hands, r)
	}
	done := make(chan error)
	for i, reason := range Reasons {
		go func() { done <- hands[i].Finish(reason, "") }()
	}
	for range Reasons {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if text := progressOf(t, dir); strings.Count(text, complete) != 1 {
		t.Errorf("%s", text)
	}
}

func TestTheRunOfALoopThatLivesIsItsOwn(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	_, err := Join(r.Dir)
	if owned, ok := errors.AsType[*Owned](err); !ok || owned.PID != os.Getpid() {
		t.Errorf("%v", err)
	}
}
