package awaiter

import (
	"testing"
	"time"

	"vx/internal/state"
)

func TestTheLastAwaitsEndIsKnown(t *testing.T) {
	dir := open(t)
	p := dir.Project("/p")
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	a := register(t, dir, "/p", 1)
	if at := Ended(p); !at.IsZero() {
		t.Errorf("before any ended: %v", at)
	}
	began := time.Now().Add(-time.Second)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	first := Ended(p)
	if first.Before(began) || first.After(time.Now().Add(time.Second)) {
		t.Errorf("ended at %v, want now", first)
	}
	for name, find := range map[string]func(*state.Dir) error{
		"List":      func(d *state.Dir) error { _, err := List(d, nil); return err },
		"Newcomers": func(d *state.Dir) error { _, err := register(t, d, "/p", 2).Newcomers(); return err },
	} {
		dead := start(t, "/p", "sentinel", "await")
		dead.Process.Kill()
		dead.Wait()
		if err := find(dir); err != nil {
			t.Fatal(err)
		}
		if at := Ended(p); !at.After(first) {
			t.Errorf("%s found a killed one, and the end is still %v", name, at)
		}
		first = Ended(p)
	}
}
