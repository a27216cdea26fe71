package hook

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/pace"
	"vx/internal/proc"
)

// brake puts the client on the brake.
func (w *world) brake(client proc.ID) {
	w.t.Helper()
	p := pace.Pace{Client: client, Boot: proc.BootID()}
	for range 21 {
		p.Note(proc.SinceBoot())
	}
	if err := w.project.Ensure(); err != nil {
		w.t.Fatal(err)
	}
	if err := p.Write(w.project); err != nil {
		w.t.Fatal(err)
	}
}

func self(t *testing.T) proc.ID {
	t.Helper()
	id, err := proc.Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestABrakedClientIsNotWokenUntilItsPersonIsBack(t *testing.T) {
	w := newWorld(t)
	w.brake(self(t))
	w.put("slowly")
	braked := w.start("await", stop("s1", true))
	e := w.waitFor(1)[0]
	eventually(t, "the bell is answered", func() bool { return !w.ringing(e) })
	w.holds(1, 0, 0)
	brakes, err := pace.Brakes(w.project)
	if err != nil || len(brakes) != 1 || brakes[0].Client != self(t) || brakes[0].Interval != 30*time.Second || brakes[0].Next.Before(time.Now()) {
		t.Errorf("the brakes: %v, %v", brakes, err)
	}
	// Drain is asked for: it has no brake.
	if r := w.start("drain", stop("s1", true)).wait(); r.Stdout == "" {
		t.Error("drain is braked")
	}
	w.put("again")
	w.holds(1, 0, 0)
	w.terminate()
	quiet(t, braked.wait())
	delivers(t, w.start("await", stop("s1", false)).wait(), "again")
	if brakes, err := pace.Brakes(w.project); err != nil || len(brakes) != 0 {
		t.Errorf("the brakes: %v, %v", brakes, err)
	}
}

func TestAnAwaitCountsItsDelivery(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 3; i++ {
		w.put("one")
		delivers(t, w.start("await", stop("s1", true)).wait(), "one")
		p, err := pace.Read(w.project, self(t))
		if err != nil || len(p.Delivered) != i {
			t.Errorf("%d counted, want %d, %v", len(p.Delivered), i, err)
		}
	}
}

func TestAPaceThatCannotBeReadHoldsUpNothing(t *testing.T) {
	w := newWorld(t)
	w.brake(self(t))
	files, _ := filepath.Glob(w.project.Join("clients", "*.json"))
	if len(files) != 1 {
		t.Fatalf("kept: %v", files)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.put("all the same")
	delivers(t, w.start("await", stop("s1", true)).wait(), "all the same")
}
