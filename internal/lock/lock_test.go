package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOnlyOneHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("second Try: %v, want ErrHeld", err)
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	second, err := Try(path)
	if err != nil {
		t.Fatalf("Try after Unlock: %v", err)
	}
	defer second.Unlock()
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Fatalf("lock file: %v %v, want mode 0600", fi, err)
	}
}

func TestWaitGetsTheLockWhenItIsFreed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		l, err := Wait(t.Context(), path)
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}()
	first.Unlock()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Wait(ctx, path); !errors.Is(err, ErrHeld) {
		t.Fatalf("Wait: %v, want ErrHeld", err)
	}
}

func TestAMissingDirectoryIsAnErrorNotAHolder(t *testing.T) {
	if _, err := Try(filepath.Join(t.TempDir(), "no", "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Fatalf("Try: %v", err)
	}
}
