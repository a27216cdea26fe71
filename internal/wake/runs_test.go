package wake

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vx/internal/lock"
)

func TestTheRunsOfAProjectGoWithItOnceNoneWorks(t *testing.T) {
	q := open(t)
	other := sibling(t, q, "/nowhere/other")
	run := q.Project.Join("runs", "20260101-000000-0000")
	theirs := other.Project.Join("runs", "20260101-000000-0000")
	if err := errors.Join(q.Ensure(), os.MkdirAll(run, 0o700), os.MkdirAll(theirs, 0o700)); err != nil {
		t.Fatal(err)
	}
	l, err := lock.Try(filepath.Join(run, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, q.Forget(t.Context(), true), "a loop works in it (run 20260101-000000-0000)")
	_, err = Move(t.Context(), q.Project, other.Project.Root)
	refused(t, err, "a loop works in it")
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	h, err := q.Holdings()
	if err != nil || h.Runs != 1 || !h.Empty() {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := Move(t.Context(), q.Project, other.Project.Root); err != nil {
		t.Fatal(err)
	}
	if h, err := other.Holdings(); err != nil || h.Runs != 2 {
		t.Errorf("after the move: %+v, %v", h, err)
	}
	if err := other.Forget(t.Context(), false); err != nil {
		t.Error(err)
	}
}
