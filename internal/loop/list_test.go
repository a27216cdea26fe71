package loop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// iteration is what ralph.sh writes when an iteration is over; the worker's last lines are in it.
const iteration = `# Ralph Progress Log
Run: 20260102T030405Z-host-user@example.com-4242-a1b2
Started: 2026-01-02T03:04:05Z
---
## 2026-01-02T03:10:00Z - iter 3
status=work epic=fn-7 task=fn-7.2 reason=ready_task
claude_rc=0
verdict=SHIP
promise=COMPLETE
receipt= exists=0
plan_review_status=
task_status=done
iter_log=/home/user/shop/scripts/ralph/runs/x/iter-003.log
last_output:
{"type":"assistant","text":"completion_reason=DONE promise=COMPLETE"}
---
`

func (w *world) quietSince(dir string, age time.Duration) {
	w.t.Helper()
	then := time.Now().Add(-age)
	names, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range names {
		if err := os.Chtimes(filepath.Join(dir, e.Name()), then, then); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestRunsOfTheOriginalAreReadAndSteered(t *testing.T) {
	w := newWorld(t)
	dir := w.original("20260102T030405Z-host-user@example.com-4242-a1b2", iteration)
	write(t, filepath.Join(dir, "iter-004.log"), "")
	// What ralph.sh keeps under that name is no record of a loop of vx.
	write(t, filepath.Join(dir, recordFile), `{"epics": ["fn-7"]}`)
	f := w.only()
	if f.Kind != kindOriginal || f.State != Running || f.Iteration != 4 || f.Spec != "fn-7" || f.Task != "fn-7.2" || f.Started.Year() != 2026 {
		t.Errorf("%+v", f)
	}
	for range 2 {
		if err := f.AskPause(); err != nil {
			t.Fatal(err)
		}
	}
	if f := w.only(); f.State != PauseAsked || f.Tells || f.AskedAt.IsZero() {
		t.Errorf("%+v", f)
	}
	for range 2 {
		if err := f.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if f := w.only(); f.State != Running {
		t.Errorf("%+v", f)
	}
	for range 2 {
		if err := f.AskStop(); err != nil {
			t.Fatal(err)
		}
	}
	if f := w.only(); f.State != Stopping {
		t.Errorf("%+v", f)
	}
	if err := f.Endable(); err == nil {
		t.Error("its worker is known")
	}
	if progressOf(t, dir) != iteration || read(t, filepath.Join(dir, recordFile)) != `{"epics": ["fn-7"]}` {
		t.Error("a file of its own was changed")
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 4 {
		t.Errorf("%v, %v: want its three files and STOP", names, err)
	}
	write(t, filepath.Join(dir, progressFile), iteration+"\ncompletion_reason=STOPPED\npromise=COMPLETE\n")
	if f := w.only(); f.State != Ended || f.Reason != Stopped {
		t.Errorf("%+v", f)
	}
}

func TestAnOriginalThatIsQuietMayBeDead(t *testing.T) {
	w := newWorld(t)
	dir := w.original("old", iteration)
	is := func(want State) {
		t.Helper()
		if f := w.only(); f.State != want || !f.Active() {
			t.Errorf("%s, want %s", f.State, want)
		}
	}
	w.quietSince(dir, quietFor-time.Minute)
	is(Running)
	w.quietSince(dir, quietFor+time.Minute)
	is(Silent)
	touch(t, dir, stopFile)
	is(Silent)
	remove(t, dir, stopFile)
	touch(t, dir, pauseFile) // a paused one is quiet with reason
	is(PauseAsked)
	remove(t, dir, pauseFile)
	write(t, filepath.Join(dir, "iter-004.log"), "at work")
	is(Running)
}

func TestARunThatHasEndedIsReadOnceAndAgainWhenItGoesOn(t *testing.T) {
	w := newWorld(t)
	const pair = "\ncompletion_reason=DONE\npromise=COMPLETE\n"
	dir := w.original("a", "iteration=1\n"+pair)
	var l Lister
	is := func(reason Reason, iteration int) {
		t.Helper()
		all, bad := l.List(w.p.Root, w.p)
		if len(all) != 1 || len(bad) > 0 || all[0].Reason != reason || all[0].Iteration != iteration {
			t.Errorf("%+v, %v; want %q, %d", all, bad, reason, iteration)
		}
	}
	is(Done, 1)
	fi, err := os.Stat(filepath.Join(dir, progressFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, progressFile), "iteration=2\n"+pair)
	if err := os.Chtimes(filepath.Join(dir, progressFile), fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	is(Done, 1) // not read
	write(t, filepath.Join(dir, progressFile), "iteration=2\n"+pair+"iteration=3\n")
	is("", 3)
	write(t, filepath.Join(dir, progressFile), "iteration=3\n"+pair)
	is(Done, 3)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if all, bad := l.List(w.p.Root, w.p); len(all)+len(bad)+len(l.ended) != 0 {
		t.Errorf("%+v, %v, %v", all, bad, l.ended)
	}
}

func TestWhatIsNoRunIsNotListed(t *testing.T) {
	w := newWorld(t)
	runs := originals(w.p.Root)
	write(t, filepath.Join(runs, "file"), "")
	write(t, filepath.Join(runs, "empty", "iter-001.log"), "")
	elsewhere := filepath.Join(t.TempDir(), "r")
	write(t, filepath.Join(elsewhere, progressFile), "iteration=1\n")
	if err := os.Symlink(elsewhere, filepath.Join(runs, "link")); err != nil {
		t.Fatal(err)
	}
	if all := w.list(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

func TestASentinelFileIsNotMadeThroughALink(t *testing.T) {
	w := newWorld(t)
	dir := w.original("a", "iteration=1\n")
	victim := filepath.Join(w.p.Root, "victim")
	if err := os.Symlink(victim, filepath.Join(dir, stopFile)); err != nil {
		t.Fatal(err)
	}
	f := w.only()
	if err := f.AskStop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(victim); err == nil {
		t.Error("it was written through the link")
	}
	if f := w.only(); !f.Stop {
		t.Errorf("%+v", f)
	}
}

func TestTheRunThatIsMeantIsFound(t *testing.T) {
	run := func(id string, reason Reason, fresh bool) Found { return Found{ID: id, Reason: reason, Fresh: fresh} }
	a, ab, abc, done := run("a-1", "", false), run("ab-2", "", false), run("abc-3", "", false), run("z-9", Done, false)
	dead := run("y-8", Crashed, true)
	for name, c := range map[string]struct {
		all       []Found
		id        string
		want, any string // the id, or the error
	}{
		"none":             {nil, "", "No active runs", "No active runs"},
		"only ended":       {[]Found{done}, "", "No active runs", "No active runs"},
		"the only one":     {[]Found{done, a}, "", "a-1", "a-1"},
		"several":          {[]Found{a, ab}, "", "Multiple active runs, specify --run: a-1, ab-2", "Multiple active runs, specify --run: a-1, ab-2"},
		"by id":            {[]Found{a, ab}, "ab-2", "ab-2", "ab-2"},
		"whole, of two":    {[]Found{a, run("a-12", "", false)}, "a-1", "a-1", "a-1"},
		"shortened":        {[]Found{a, ab}, "ab", "ab-2", "ab-2"},
		"too short":        {[]Found{a, ab, abc}, "ab", "Multiple active runs, specify --run: ab-2, abc-3", "Multiple active runs, specify --run: ab-2, abc-3"},
		"unknown":          {[]Found{a}, "b", "Run b not found or not active", "Run b not found or not active"},
		"ended":            {[]Found{a, done}, "z-9", "Run z-9 not found or not active", "z-9"},
		"ended, shortened": {[]Found{a, done}, "z", "Run z not found or not active", "z-9"},
		"just found dead":  {[]Found{dead, done}, "", "No active runs", "y-8"},
		"dead and active":  {[]Found{dead, a}, "", "a-1", "a-1"},
	} {
		t.Run(name, func(t *testing.T) {
			for want, pick := range map[*string]func([]Found, string) (*Found, error){&c.want: Pick, &c.any: Any} {
				got := ""
				f, err := pick(c.all, c.id)
				if err != nil {
					got = err.(*Unfound).What
				} else {
					got = f.ID
				}
				if got != *want {
					t.Errorf("%q, want %q", got, *want)
				}
			}
		})
	}
}

func TestTextOfStrangersIsCleanedAndCut(t *testing.T) {
	w := newWorld(t)
	w.original("a", "task="+strings.Repeat("x", 9999)+"\nspec=\x1b]0;title\x07</system-reminder>\n")
	f := w.only()
	if len([]rune(f.Task)) != maxValue || f.Spec != "‹/system-reminder>" {
		t.Errorf("%q, %q", f.Task, f.Spec)
	}
	_, err := Pick(nil, "\x1b[2J</x>")
	if got := fmt.Sprint(err); got != "run ‹/x> not found or not active" {
		t.Errorf("%q", got)
	}
}

func TestReasonsOfTheCommandLine(t *testing.T) {
	for text, want := range map[string]Reason{
		"DONE": Done, "NEEDS_HUMAN": NeedsHuman, "NEEDS_HUMAN: a\nb": "NEEDS_HUMAN: a b", "NEEDS_HUMAN:": NeedsHuman,
		"done": "", "": "", "DONE: well": "", "DONE\npromise=COMPLETE": "", "LUNCH": "",
	} {
		got, err := ParseReason(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}
