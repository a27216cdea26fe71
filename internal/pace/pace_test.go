package pace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"vx/internal/proc"
	"vx/internal/state"
)

// gaps plays deliveries to a client for whom something always waits (or comes every so often) and returns how long it
// had to wait before each.
func gaps(p *Pace, now *time.Duration, n int, every time.Duration) []time.Duration {
	var all []time.Duration
	for range n {
		*now += every
		rest := p.Rest(*now)
		*now += rest
		all = append(all, rest)
		p.Note(*now)
	}
	return all
}

func TestTheBrakeDoublesFromTheTwentyFirstDeliveryOn(t *testing.T) {
	var p Pace
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
	var p Pace
	now := time.Hour
	for i, rest := range gaps(&p, &now, 500, 31*time.Second) {
		if rest != 0 {
			t.Fatalf("delivery %d waits %v", i+1, rest)
		}
	}
}

func TestCalmEndsTheBrake(t *testing.T) {
	var p Pace
	now := time.Hour
	gaps(&p, &now, 25, 0)
	now += p.Interval() + window + time.Second
	if got := gaps(&p, &now, 2, 0); !slices.Equal(got, []time.Duration{0, 0}) {
		t.Errorf("after the calm they wait %v", got)
	}
	gaps(&p, &now, 25, 0)
	now += p.Interval() + window - time.Minute
	if got := gaps(&p, &now, 2, 0); got[0] != 0 || got[1] == 0 {
		t.Errorf("without calm they wait %v", got)
	}
}

// project is one of its own, with a state directory.
func project(t *testing.T) *state.Project {
	t.Helper()
	t.Setenv("VEXILLUM_HOME", t.TempDir()+"/state")
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	p := dir.Project(t.TempDir())
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	return p
}

func self(t *testing.T) proc.ID {
	t.Helper()
	id, err := proc.Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// brake puts a client on the brake.
func brake(t *testing.T, project *state.Project, client proc.ID) {
	t.Helper()
	p := Pace{Client: client, Boot: proc.BootID()}
	for range many + 1 {
		p.Note(proc.SinceBoot())
	}
	if err := p.Write(project); err != nil {
		t.Fatal(err)
	}
}

func TestClientsThatAreGoneAreForgottenAndNothingElse(t *testing.T) {
	project, here := project(t), self(t)
	dead := here
	dead.Start++
	brake(t, project, dead)
	brake(t, project, here)
	stray, half := project.Join("clients", "notes.txt"), file(project, dead)+".4711"
	for _, path := range []string{stray, half} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Forget(project, proc.ID{}); err != nil {
		t.Fatal(err)
	}
	for path, kept := range map[string]bool{stray: true, file(project, here): true, half: false, file(project, dead): false} {
		if _, err := os.Lstat(path); os.IsNotExist(err) == kept {
			t.Errorf("%s: kept is to be %v", filepath.Base(path), kept)
		}
	}
	brakes, err := Brakes(project)
	if err != nil || len(brakes) != 1 || brakes[0].Client != here || brakes[0].Interval != first || brakes[0].Next.Before(time.Now()) {
		t.Errorf("the brakes: %v, %v", brakes, err)
	}
	if err := Forget(project, here); err != nil {
		t.Fatal(err)
	}
	if brakes, err := Brakes(project); err != nil || len(brakes) != 0 {
		t.Errorf("after its person is back: %v, %v", brakes, err)
	}
}

func TestAPaceOfAnotherBootOrAnUnreadableOneIsNone(t *testing.T) {
	project, here := project(t), self(t)
	brake(t, project, here)
	p, err := Read(project, here)
	if err != nil || p.Doubled != 1 {
		t.Fatal(p, err)
	}
	p.Boot = "another"
	if err := p.Write(project); err != nil {
		t.Fatal(err)
	}
	if p, err := Read(project, here); err != nil || p.Doubled != 0 {
		t.Error(p, err)
	}
	if err := os.WriteFile(file(project, here), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := Read(project, here); err == nil || p.Rest(proc.SinceBoot()) != 0 {
		t.Error(p, err)
	}
}

func TestAfterFailedTurnsWakesWaitOneTwoFiveAndTenMinutes(t *testing.T) {
	for _, c := range []struct {
		n         int
		ago, want time.Duration
	}{
		{0, 0, 0},
		{1, 0, time.Minute},
		{1, 59 * time.Second, time.Second},
		{1, time.Minute, 0},
		{2, 0, 2 * time.Minute},
		{3, time.Minute, 4 * time.Minute},
		{4, 0, 10 * time.Minute},
		{40, 0, 10 * time.Minute},
		{40, time.Hour, 0},
		{1, -time.Hour, time.Minute}, // the clock was set back
	} {
		if got := AfterFailure(c.n, c.ago); got != c.want {
			t.Errorf("after %d, %v ago: %v, want %v", c.n, c.ago, got, c.want)
		}
	}
}
