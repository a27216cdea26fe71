package hook

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vx/internal/proc"
)

// gaps plays deliveries to a client for whom something always waits (or comes every so often) and returns how long it
// had to wait before each.
func gaps(p *pace, now *time.Duration, n int, every time.Duration) []time.Duration {
	var all []time.Duration
	for range n {
		*now += every
		rest := p.rest(*now)
		*now += rest
		all = append(all, rest)
		p.note(*now)
	}
	return all
}

func TestTheBrakeDoublesFromTheTwentyFirstDeliveryOn(t *testing.T) {
	var p pace
	now := time.Hour
	for i, rest := range gaps(&p, &now, 21, time.Second) {
		if rest != 0 {
			t.Errorf("delivery %d waits %v", i+1, rest)
		}
	}
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute,
		30 * time.Minute, 30 * time.Minute}
	if got := gaps(&p, &now, len(want), 0); !slices.Equal(got, want) {
		t.Errorf("then they wait %v, want %v", got, want)
	}
}

func TestTwentyInTenMinutesAreNotBraked(t *testing.T) {
	var p pace
	now := time.Hour
	for i, rest := range gaps(&p, &now, 500, 31*time.Second) {
		if rest != 0 {
			t.Fatalf("delivery %d waits %v", i+1, rest)
		}
	}
}

func TestCalmEndsTheBrake(t *testing.T) {
	var p pace
	now := time.Hour
	gaps(&p, &now, 25, 0)
	now += p.interval() + paceWindow + time.Second
	if got := gaps(&p, &now, 2, 0); !slices.Equal(got, []time.Duration{0, 0}) {
		t.Errorf("after the calm they wait %v", got)
	}
	gaps(&p, &now, 25, 0)
	now += p.interval() + paceWindow - time.Minute
	if got := gaps(&p, &now, 2, 0); got[0] != 0 || got[1] == 0 {
		t.Errorf("without calm they wait %v", got)
	}
}

// brake puts the client on the brake.
func (w *world) brake(client proc.ID) {
	w.t.Helper()
	p := pace{Client: client, Boot: proc.BootID()}
	for range paceMany + 1 {
		p.note(proc.SinceBoot())
	}
	if err := w.project.Ensure(); err != nil {
		w.t.Fatal(err)
	}
	if err := p.write(w.project); err != nil {
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
	brakes, err := Brakes(w.project)
	if err != nil || len(brakes) != 1 || brakes[0].Client != self(t) || brakes[0].Interval != paceFirst || brakes[0].Next.Before(time.Now()) {
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
	if brakes, err := Brakes(w.project); err != nil || len(brakes) != 0 {
		t.Errorf("the brakes: %v, %v", brakes, err)
	}
}

func TestAnAwaitCountsItsDelivery(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 3; i++ {
		w.put("one")
		delivers(t, w.start("await", stop("s1", true)).wait(), "one")
		p, err := readPace(w.project, self(t))
		if err != nil || len(p.Delivered) != i {
			t.Errorf("%d counted, want %d, %v", len(p.Delivered), i, err)
		}
	}
}

func TestThePaceOfClientsThatAreGoneIsForgotten(t *testing.T) {
	w := newWorld(t)
	dead := self(t)
	dead.Start++
	w.brake(dead)
	w.brake(self(t))
	stray := w.project.Join("clients", "notes.txt")
	half := paceFile(w.project, dead) + ".4711"
	for _, file := range []string{stray, half} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.start("await", stop("s1", true))
	eventually(t, "it is forgotten", func() bool {
		_, err1 := os.Lstat(paceFile(w.project, dead))
		_, err2 := os.Lstat(half)
		return os.IsNotExist(err1) && os.IsNotExist(err2)
	})
	for _, file := range []string{stray, paceFile(w.project, self(t))} {
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("%s is gone", filepath.Base(file))
		}
	}
}

func TestAPaceOfAnotherBootOrAnUnreadableOneIsNone(t *testing.T) {
	w := newWorld(t)
	w.brake(self(t))
	p, err := readPace(w.project, self(t))
	if err != nil || p.Doubled != 1 {
		t.Fatal(p, err)
	}
	p.Boot = "another"
	if err := p.write(w.project); err != nil {
		t.Fatal(err)
	}
	if p, err := readPace(w.project, self(t)); err != nil || p.Doubled != 0 {
		t.Error(p, err)
	}
	if err := os.WriteFile(paceFile(w.project, self(t)), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := readPace(w.project, self(t)); err == nil || p.rest(proc.SinceBoot()) != 0 {
		t.Error(p, err)
	}
	w.put("all the same")
	delivers(t, w.start("await", stop("s1", true)).wait(), "all the same")
}
