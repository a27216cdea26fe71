package settings

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// both adds our entry for both events, and checks that each is there once.
func both(t testing.TB, old []byte) (out []byte, stop, failure *Undo) {
	t.Helper()
	one, stop, err := Add(old, Stop)
	if err != nil {
		t.Fatal(err)
	}
	out, failure, err = Add(one, StopFailure)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Event{Stop, StopFailure} {
		if r, err := Inspect(out, e); err != nil || !r.Right() || !strings.HasPrefix(r.Own[0].Path, "hooks."+string(e)+"[") {
			t.Fatalf("%s after both were added: %v, %+v\n%s", e, err, r.Own, out)
		}
	}
	return out, stop, failure
}

func TestBothEventsCanBeAddedAndTakenOutToTheByte(t *testing.T) {
	for _, c := range testCases(t) {
		if c.expect != "add" {
			continue
		}
		old := readCase(t, c.name)
		out, stop, failure := both(t, old)
		back, err := Remove(out, StopFailure, failure)
		if err == nil {
			back, err = Remove(back, Stop, stop)
		}
		if err != nil || !bytes.Equal(back, old) {
			t.Errorf("%s: after both were taken out: %v\n%s", c.name, err, back)
		}
	}
}

func TestOneEventIsLeftAloneWhereTheOtherIsChanged(t *testing.T) {
	old := []byte(`{"hooks": {"StopFailure": [{"hooks": [{"type": "command", "command": "notify"}]}]}}`)
	out, stop, failure := both(t, old)
	if r, _ := Inspect(out, StopFailure); len(r.Others) != 1 || r.Others[0] != "notify" {
		t.Errorf("the user's own: %q", r.Others)
	}
	if undone, err := Remove(out, Stop, stop); err != nil || bytes.Contains(undone, []byte(`"Stop"`)) {
		t.Errorf("without the first: %v\n%s", err, undone)
	} else if r, err := Inspect(undone, StopFailure); err != nil || !r.Right() {
		t.Errorf("the other is gone too: %v\n%s", err, undone)
	}
	if undone, err := Remove(out, StopFailure, failure); err != nil || !bytes.Contains(undone, []byte("notify")) {
		t.Errorf("without the second: %v\n%s", err, undone)
	} else if r, err := Inspect(undone, Stop); err != nil || !r.Right() {
		t.Errorf("the other is gone too: %v\n%s", err, undone)
	}
}

func TestAnEventThatIsNotUnderstoodIsRefusedByItsName(t *testing.T) {
	b := []byte(`{"hooks": {"StopFailure": {}}}`)
	_, _, err := Add(b, StopFailure)
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok || refusal.Why != "hooks.StopFailure is an object, want an array" {
		t.Errorf("it is refused with %v", err)
	}
	if _, _, err := Add(b, Stop); err != nil {
		t.Errorf("the other event: %v", err)
	}
}
