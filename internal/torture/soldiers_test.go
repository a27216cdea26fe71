//go:build !windows

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"vx/internal/wake"
)

func TestTheCommanderIsHeldToWhatTheSoldiersDid(t *testing.T) {
	done := wake.Wake{ID: "1", TaskID: "a", OldStatus: "running", NewStatus: "done"}
	dialog := wake.Wake{ID: "2", TaskID: "a", OldStatus: "running", NewStatus: "running", Dialog: "pane 1"}
	again := done
	again.ID = "3"
	other := done
	other.ID, other.TaskID = "4", "b"
	for _, tt := range []struct {
		name   string
		expect []string
		told   []wake.Wake
		want   string // in an error; "" for none
		left   int
	}{
		{"what was to be told", []string{"running -> done"}, []wake.Wake{done}, "", 0},
		{"nothing yet", []string{"running -> done"}, nil, "", 1},
		{"both, in their order", []string{"dialog", "running -> done"}, []wake.Wake{dialog, done}, "", 0},
		{"the second alone", []string{"dialog", "running -> done"}, []wake.Wake{done}, "invented", 2},
		{"another end", []string{"running -> interrupted"}, []wake.Wake{done}, "invented", 1},
		{"an end of one that works", nil, []wake.Wake{done}, "invented", 0},
		{"one wake twice", []string{"running -> done"}, []wake.Wake{done, done}, "told twice", 0},
		{"one end twice", []string{"running -> done"}, []wake.Wake{done, again}, "invented", 0},
		{"of a task that nobody has", []string{"running -> done"}, []wake.Wake{other}, "nobody has", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &barracks{turns: map[string]int{}, worst: map[string]delay{}, seen: map[string]bool{}}
			s := &soldier{barracks: b, id: "a", name: "s", expect: tt.expect, since: time.Now()}
			b.soldiers = []*soldier{s}
			var complaints []string
			for _, w := range tt.told {
				if err := b.hear(w); err != nil {
					complaints = append(complaints, err.Error())
				}
			}
			got := strings.Join(complaints, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("complaints %q, want %q", got, tt.want)
			}
			if len(s.expect) != tt.left {
				t.Errorf("%q is still to be told, want %d", s.expect, tt.left)
			}
		})
	}
}

func TestWhatIsToldTooLateIsFoundAndTheMachineIsGivenWhatItTook(t *testing.T) {
	at := time.Now()
	bound := quick(bounds["running -> done"])
	for _, tt := range []struct {
		name   string
		ago    time.Duration // since it happened
		lifted time.Duration // since the herdr was in order
		probe  time.Duration // which takes 10 ms at its best
		late   bool
	}{
		{"in time", bound, time.Hour, 10 * time.Millisecond, false},
		{"too late", bound + 2*work, time.Hour, 10 * time.Millisecond, true},
		{"in time after the trouble", time.Minute, bound, 10 * time.Millisecond, false},
		{"as late, on a machine that is slow", bound + 2*work, time.Hour, 30 * time.Millisecond, false},
		{"too late for that as well", bound + 4*work, time.Hour, 30 * time.Millisecond, true},
	} {
		m := &machine{least: 10 * time.Millisecond, rounds: []round{{at.Add(-2 * time.Minute), time.Hour}, {at, tt.probe}}}
		b := &barracks{worst: map[string]delay{}, machine: m, lifted: at.Add(-tt.lifted)}
		err := b.inTime("running -> done", &soldier{barracks: b, since: at.Add(-tt.ago)})
		if (err != nil) != tt.late {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestASentinelThatIsKilledAtEachStepTellsEachEndOnce(t *testing.T) {
	openState(t)
	a := &assassin{random: 4, each: 1, deadline: time.Now().Add(siege), at: map[wake.Step]int{}}
	b, err := newBarracks(t.TempDir(), "garrison", garrison)
	t.Cleanup(b.end)
	if err == nil {
		b.enough = a.enough
		b.underFire(a, 1)
	}
	if err != nil {
		t.Error(err)
	}
	for _, wrong := range b.wrong {
		t.Error(wrong)
	}
	for _, s := range sentinelSteps {
		if a.at[s] == 0 {
			t.Errorf("never killed at %s", s)
		}
	}
}

func TestRestartsAndAnUpgradeOfHerdrAreNoEnd(t *testing.T) {
	openState(t)
	b, err := newBarracks(t.TempDir(), "troubled", 4)
	t.Cleanup(b.end)
	if err == nil {
		_, err = b.inTrouble(plan{seed: 1}, 3)
	}
	if err != nil {
		t.Error(err)
	}
	for _, wrong := range b.wrong {
		t.Error(wrong)
	}
	if len(b.turns) == 0 {
		t.Error("nothing was told")
	}
	if _, err := os.Stat(b.herdr.Socket); err != nil {
		t.Error(err)
	}
}
