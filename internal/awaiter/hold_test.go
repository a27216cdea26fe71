package awaiter

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/state"
)

const holdRoot = "/home/u/shop"

// only is the one awaiter that is live.
func only(t *testing.T, dir *state.Dir) Entry {
	t.Helper()
	all, err := List(dir, dir.Project(holdRoot))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d awaiters, %v", len(all), err)
	}
	return all[0]
}

func TestAnAwaiterThatHoldsADeliverySaysSo(t *testing.T) {
	dir := open(t)
	a := register(t, dir, holdRoot, 1)
	if _, holding := only(t, dir).Holding(); holding {
		t.Error("it holds one before it says so")
	}
	if err := a.Hold(true); err != nil {
		t.Fatal(err)
	}
	since, holding := only(t, dir).Holding()
	if ago := time.Since(since); !holding || ago < -time.Minute || ago > time.Minute {
		t.Errorf("it holds one: %v, since %v", holding, since)
	}
	for range 2 {
		if err := a.Hold(false); err != nil {
			t.Fatal(err)
		}
	}
	if _, holding := only(t, dir).Holding(); holding {
		t.Error("it holds one still")
	}
	if err := a.Hold(true); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if names := left(t, dir); len(names) > 0 {
		t.Errorf("it leaves %q", names)
	}
}

func TestWhoDiedWithADeliveryInHandHoldsItNoMore(t *testing.T) {
	dir := open(t)
	a := register(t, dir, holdRoot, 1)
	if err := a.Hold(true); err != nil {
		t.Fatal(err)
	}
	e := only(t, dir)
	// As the kernel does on any death.
	if err := unix.Close(a.lock); err != nil {
		t.Fatal(err)
	}
	a.lock = -1
	if since, holding := e.Holding(); holding {
		t.Errorf("it holds one since %v", since)
	}
	_, found, err := Look(dir, nil)
	if err != nil || !strings.Contains(strings.Join(found, " "), holdFile) {
		t.Errorf("found are %q, %v", found, err)
	}
	if all, err := List(dir, nil); len(all) != 0 || err != nil {
		t.Errorf("%d awaiters, %v", len(all), err)
	}
	if names := left(t, dir); len(names) > 0 {
		t.Errorf("it leaves %q", names)
	}
}
