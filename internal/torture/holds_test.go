//go:build !windows

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/wake"
)

func TestEachStepOfAHoldIsKilledAtAndNothingIsLost(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	t.Setenv("PATH", "/usr/bin:/bin")
	openState(t)
	h := newHoldTally(plan{seed: 1})
	h.each, h.random = 1, 1
	_, wrong := h.run(t.TempDir())
	for _, line := range wrong {
		t.Error(line)
	}
}

func TestWhatAClientSaidAndShowedIsComparedWithWhatItsAwaitHeard(t *testing.T) {
	for _, tt := range []struct {
		name  string
		o     order
		steps []wake.Step
		told  int
		want  string // in a complaint; "" for none
	}{
		{"heard", order{}, []wake.Step{woken, showing, shown, said, wake.Accepting, wake.Accepted, awaitEnded}, 1, ""},
		{"not heard", order{}, []wake.Step{woken, showing, shown, said, wake.Releasing, awaitEnded}, 1, "an ack was not heard"},
		{"not heard of a client that was killed", order{Die: said}, []wake.Step{woken, showing, shown, said, wake.Releasing}, 1, "an ack was not heard"},
		{"the await died before", order{Die: wake.Accepting}, []wake.Step{woken, showing, shown, said, wake.Accepting, awaitKilled}, 1, ""},
		{"it died with the client", order{AwaitAfter: 1}, []wake.Step{woken, showing, shown, said}, 1, ""},
		{"two texts", order{}, []wake.Step{woken, showing, shown, said, wake.Accepted, awaitEnded}, 2, "2 texts"},
	} {
		c := &holdClient{worker: &worker{project: &project{ledger: newLedger()}}, harness: "pi"}
		c.judge(tt.o, ending{Steps: tt.steps}, tt.told)
		got := strings.Join(c.ledger.wrong, "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: complaints %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestASessionIsReadFromWhereItWasReadTo(t *testing.T) {
	c := &holdClient{worker: &worker{project: &project{ledger: newLedger()}}, session: filepath.Join(t.TempDir(), "s.jsonl")}
	if got := c.look(); len(got) != 0 {
		t.Errorf("before the first message it has %q", got)
	}
	for _, text := range []string{"one", "two"} {
		if err := show(c.session, text); err != nil {
			t.Fatal(err)
		}
		if got := c.look(); len(got) != 1 || got[0] != text {
			t.Errorf("after %q it has %q", text, got)
		}
	}
	if len(c.ledger.wrong) > 0 {
		t.Error(c.ledger.wrong)
	}
}
