package wake

import (
	"os"
	"testing"
	"time"
)

func TestADeliveryIsOutstandingUntilItHasEnded(t *testing.T) {
	q := open(t)
	var o Outstanding
	look := func(when string, want bool) {
		t.Helper()
		// Also when the directories have been left alone for long, as an await finds them.
		for _, age := range []time.Duration{0, time.Hour} {
			at := time.Now().Add(-age)
			for _, stage := range []string{".claimed", ".emitted"} {
				if err := os.Chtimes(q.join(stage), at, at); err != nil {
					t.Fatal(err)
				}
			}
			if got := o.Look(q); got != want {
				t.Errorf("%s, %v old: outstanding is %v", when, age, got)
			}
		}
	}
	look("at first", false)
	put(t, q, Wake{Title: "one"})
	d := claim(t, q)
	look("claimed", true)
	look("claimed still", true)
	if err := d.Note(Recipient{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Emit(); err != nil {
		t.Fatal(err)
	}
	look("emitted", true)
}

func TestAnEmptyStageIsNotReadAgainWhileItIsUnchanged(t *testing.T) {
	q := open(t)
	long := time.Now().Add(-time.Hour)
	age := func() {
		t.Helper()
		for _, stage := range []string{".claimed", ".emitted"} {
			if err := os.Chtimes(q.join(stage), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	age()
	var o Outstanding
	if o.Look(q) {
		t.Fatal("an empty queue has something outstanding")
	}
	if err := os.Mkdir(q.join(".claimed", "token"), 0o700); err != nil {
		t.Fatal(err)
	}
	age()
	if o.Look(q) {
		t.Error("it was read though its time had not changed")
	}
	for i := range o.stages {
		o.stages[i].last.at = time.Now().Add(-2 * lookAgain)
	}
	if !o.Look(q) {
		t.Error("it was not read again after a minute")
	}
}
