//go:build !windows

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/state"
	"vx/internal/wake"
)

// The consumers, producers and clients are this test binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2]))
	}
	os.Exit(m.Run())
}

func openState(t *testing.T) *state.Dir {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("VEXILLUM_HOME", filepath.Join(t.TempDir(), "state"))
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAFailureOfAnyStepLosesNothing(t *testing.T) {
	r := injected(openState(t), t.TempDir(), plan{short: true})
	for _, wrong := range r.Wrong {
		t.Error(wrong)
	}
	if r.Trials < 100 || r.Failed < r.Trials/2 {
		t.Errorf("%d trials, in %d the operation failed: the faults do not reach it", r.Trials, r.Failed)
	}
}

// text is a message as the queue makes it.
func text(lines ...string) string {
	return fmt.Sprintf("vx: news, not an error: %d wakes for this project (delivery 0123456789abcdef). And so on.\n%s\nNext: %s",
		strings.Count(strings.Join(lines, ""), "- m"), strings.Join(lines, "\n"), lastLine)
}

func TestTheLedgerSeesWhatMustNotBe(t *testing.T) {
	message := wake.Wake{ID: "a", Title: "a ended"}
	first := wake.Wake{ID: "b", Title: "b ended", Kind: wake.KindMission, TaskID: "m", OldStatus: "s0", NewStatus: "s1"}
	second := wake.Wake{ID: "c", Title: "c ended", Kind: wake.KindMission, TaskID: "m", OldStatus: "s1", NewStatus: "s2"}
	const a, bc = "- message a: a ended", "- mission m: s0 -> s2\n    > c ended"
	for _, tt := range []struct {
		name    string
		told    []string
		excused bool
		want    string // in a complaint; "" for none
	}{
		{"all told", []string{text(a), text(bc)}, false, ""},
		{"all told in one text", []string{text(a, bc)}, false, ""},
		{"one never told", []string{text(bc)}, false, "lost: a"},
		{"the beginning of a mission's way never told", []string{text(a, "- mission m: s1 -> s2\n    > c ended")}, false, "lost: b"},
		{"told twice", []string{text(a, bc), text(a)}, false, "twice: a"},
		{"a mission's end told twice", []string{text(a, bc), text(bc)}, false, "twice: c"},
		{"told twice, with an excuse", []string{text(a, bc), text(a)}, true, ""},
		{"nobody put it", []string{text(a, bc, "- message x: x ended")}, false, "invented: - message x"},
		{"another title", []string{text("- message a: a en", bc)}, false, "torn"},
		{"another mission's title", []string{text(a, "- mission m: s0 -> s2\n    > b ended")}, false, "torn"},
		{"the end is missing", []string{strings.TrimSuffix(text(a, bc), lastLine)}, false, "torn"},
		{"a line is missing", []string{strings.Replace(text(a, bc), a+"\n", "", 1), text(a)}, false, "torn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLedger()
			for _, w := range []wake.Wake{message, first, second} {
				l.place(l.open(w))
			}
			for _, told := range tt.told {
				l.tell(told, tt.excused)
			}
			l.close()
			got := strings.Join(l.wrong, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("complaints %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnOperationThatLosesIsFoundOut(t *testing.T) {
	dir, scratch := openState(t), t.TempDir()
	nofault := fault{"nothing", func(*scene) error { return nil }, func(*scene) error { return nil }}
	for _, tt := range []struct {
		name string
		do   func(*scene) error
		want string
	}{
		{"a waiting wake is removed", func(s *scene) error { return s.each(os.Remove) }, "lost"},
		{"a waiting wake is torn", func(s *scene) error {
			return s.each(func(path string) error { return os.Truncate(path, 9) })
		}, "torn"},
		{"a wake is copied", func(s *scene) error {
			return s.each(func(path string) error {
				data, err := os.ReadFile(path)
				return errors.Join(err, os.WriteFile(strings.TrimSuffix(path, ".json")+"-2.json", data, 0o600))
			})
		}, "twice"},
		{"settings are half written", func(s *scene) error {
			return errors.Join(s.writeSettings(theirs), s.apply(initPlan), os.Truncate(s.settingsFile(), 100))
		}, "settings hold 100 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r result
			trial{operation{tt.name, func(s *scene) error { return s.put(wake.KindMessage) }, tt.do}, nofault}.run(dir, scratch, &r)
			if got := strings.Join(r.Wrong, "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("complaints %q, want %q", got, tt.want)
			}
		})
	}
}

// each does something to each waiting wake's file.
func (s *scene) each(do func(path string) error) error {
	paths, err := filepath.Glob(filepath.Join(s.queue.Dir(), "*.json"))
	for _, path := range paths {
		err = errors.Join(err, do(path))
	}
	return err
}

func TestAKilledConsumerIsCountedAtItsStepAndItsWakeComesAgain(t *testing.T) {
	dir := openState(t)
	p, err := newProject(newTally(plan{}), dir, t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{project: p}
	if w.client, err = newClient("", "s"); err != nil {
		t.Fatal(err)
	}
	defer w.client.kill()
	p.ledger.place(p.ledger.open(wake.Wake{ID: "hand", Title: "dropped"}))
	if err := os.WriteFile(filepath.Join(p.queue.Dir(), "hand.json"), []byte(`{"title":"dropped"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []order{{Die: wake.Noted}, {Die: wake.Printed}, {}} {
		o.Task, o.Root, o.Nth, o.PID = asAwait, p.queue.Project.Root, 1, true
		e := w.client.perform(o)
		if e.Killed != (o.Die != "") || e.Killed && e.last() != o.Die {
			t.Fatalf("ordered to die at %q, the consumer ended at %v with %d: %s", o.Die, e.Steps, e.Status, e.Trouble)
		}
		w.note(consumer, o, e)
		w.read(o, e)
		if err := p.queue.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	o := p.ledger.close()
	if p.at[consumer][wake.Noted] != 1 || p.at[consumer][wake.Printed] != 1 || o.told != 1 || o.excused != 1 || len(p.ledger.wrong) > 0 {
		t.Errorf("outcome %+v, killed %v, complaints %q", o, p.at, p.ledger.wrong)
	}
}
