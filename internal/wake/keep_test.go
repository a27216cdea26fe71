package wake

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/state"
)

// sibling is another project's queue in the same state directory.
func sibling(t *testing.T, q *Queue, root string) *Queue {
	t.Helper()
	other := Open(q.Project.State().Project(root))
	if err := other.Ensure(); err != nil {
		t.Fatal(err)
	}
	return other
}

// await is a live await of the project.
func await(t *testing.T, q *Queue) *awaiter.Awaiter {
	t.Helper()
	a, err := awaiter.Register(q.Project.State(), q.Project, awaiter.Record{Process: proc.Self(), Project: q.Project.Root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// onTheWay delivers what waits to a client that is gone, and leaves the delivery unsettled: its grace is not over.
func onTheWay(t *testing.T, q *Queue) {
	t.Helper()
	d := claim(t, q)
	if d == nil {
		t.Fatal("nothing to claim")
	}
	transcript := filepath.Join(t.TempDir(), "t.jsonl")
	if err := errors.Join(os.WriteFile(transcript, nil, 0o600), d.Note(Recipient{Transcript: transcript}), d.Emit(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// tree is every path below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, strings.TrimPrefix(path, dir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func refused(t *testing.T, err error, why string) {
	t.Helper()
	r, ok := errors.AsType[*Refusal](err)
	if !ok || !strings.Contains(r.Why, why) || r.Fix == "" {
		t.Errorf("got %v, want a refusal because %s", err, why)
	}
}

func TestHoldingsCountWhatMayNotBeLost(t *testing.T) {
	q := open(t)
	if h, err := q.Holdings(); err != nil || !h.Empty() || h.Undo {
		t.Errorf("of a fresh project: %+v, %v", h, err)
	}
	put(t, q, Wake{Key: "to", Title: "a"}) // its file is to.json, as the note's in a delivery
	put(t, q, Wake{Kind: KindForum, Title: "b"})
	onTheWay(t, q)
	put(t, q, Wake{Title: "c"})
	put(t, q, Wake{Kind: KindForum, Title: "d"})
	drop(t, q, ".bad/x.json", "{")
	for _, name := range []string{"install-local.json", "install.json.lock", "clients/1-2.json", "commanders/1-2.json", "later/1.json", "wakes/notes.txt", ".project.json123"} {
		path := q.Project.Join(name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("12345"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := q.Holdings()
	if err != nil {
		t.Fatal(err)
	}
	want(t, "unknown", h.Unknown, []string{"later", "wakes/notes.txt"})
	if h.Waiting != 2 || h.Unsettled != 2 || h.Bad != 1 || !h.Undo || h.Empty() || h.Bytes < 500 || time.Since(h.Changed) > time.Minute {
		t.Errorf("%+v", h)
	}
}

func TestForgetRemovesAllThatIsKeptOfAProject(t *testing.T) {
	q := open(t)
	other := sibling(t, q, "/home/u/other")
	put(t, other, Wake{Title: "stays"})
	if err := q.Forget(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(q.Project.State().Join("projects"))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(other.Project.Dir) {
		t.Errorf("left: %v, %v", entries, err)
	}
	want(t, "the other's wakes", titles(list(t, other).Waiting), []string{"stays"})
}

func TestForgetRefusesWhatWouldBeLost(t *testing.T) {
	for name, fill := range map[string]func(*Queue){
		"waiting 1, on their way 0": func(q *Queue) { put(t, q, Wake{Title: "a"}) },
		"waiting 0, on their way 1": func(q *Queue) { put(t, q, Wake{Title: "a"}); onTheWay(t, q) },
		"does not know (\"later\")": func(q *Queue) { os.MkdirAll(q.Project.Join("later/x"), 0o700) },
	} {
		q := open(t)
		fill(q)
		if l, err := q.hold(t.Context()); err != nil || l.Unlock() != nil { // makes the lock's file
			t.Fatal(err)
		}
		before := tree(t, q.Project.State().Path())
		refused(t, q.Forget(t.Context(), false), name)
		want(t, name, tree(t, q.Project.State().Path()), before)
		if err := q.Forget(t.Context(), true); err != nil || exists(q.Project.Dir) {
			t.Errorf("%s: forced: %v", name, err)
		}
	}
}

// A script takes no lock. Whatever it managed to drop is there after a Forget that therefore refuses.
func TestForgetLosesNothingThatIsDroppedMeanwhile(t *testing.T) {
	q := open(t)
	temp := t.TempDir()
	for i := range 300 {
		if err := errors.Join(q.Ensure(), os.WriteFile(temp+"/x", []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
		dropped := make(chan error)
		go func() {
			time.Sleep(time.Duration(i%30) * 20 * time.Microsecond)
			dropped <- os.Rename(temp+"/x", q.join("x.json"))
		}()
		forgotten := q.Forget(t.Context(), false)
		if err := <-dropped; err != nil {
			continue
		}
		if !exists(q.join("x.json")) {
			t.Fatalf("round %d: a wake was dropped, and is gone; Forget says %v", i, forgotten)
		}
		os.Remove(q.join("x.json"))
	}
}

func TestForgetNeverTakesTheStateFromUnderALiveAwaitOrDelivery(t *testing.T) {
	q := open(t)
	a := await(t, q)
	refused(t, q.Forget(t.Context(), true), "an await of this project is live")
	a.Close()
	put(t, q, Wake{Title: "a"})
	d := claim(t, q)
	refused(t, q.Forget(t.Context(), true), "a delivery is under way")
	d.Close()
	if err := q.Forget(t.Context(), true); err != nil {
		t.Error(err)
	}
}

func TestAMovedProjectKeepsItsState(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "on its way"})
	onTheWay(t, q)
	put(t, q, Wake{Title: "waits"})
	if err := q.Project.Update(func(c *state.Config) { c.Await = "always" }); err != nil {
		t.Fatal(err)
	}
	undo := `{"path":"/home/u/my shop/.claude/settings.local.json"}`
	if err := os.WriteFile(q.Project.Join("install-local.json"), []byte(undo), 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(events(t, q))
	m, err := Move(t.Context(), q.Project, "/srv/shop")
	want(t, "moved", m, Moved{From: q.Project.Root, To: "/srv/shop"})
	if err != nil {
		t.Fatal(err)
	}
	to := Open(q.Project.State().Project("/srv/shop"))
	l := list(t, to)
	want(t, "waiting", titles(l.Waiting), []string{"waits"})
	if len(l.Emitted) != 1 || l.Emitted[0].Wake.Title != "on its way" {
		t.Errorf("emitted: %+v", l.Emitted)
	}
	c, err := to.Project.Config()
	if err != nil || c.Await != "always" || c.Path != "/srv/shop" {
		t.Errorf("config: %+v, %v", c, err)
	}
	data, err := os.ReadFile(to.Project.Join("install-local.json"))
	if err != nil || !strings.Contains(string(data), `"/srv/shop/.claude/settings.local.json"`) {
		t.Errorf("the undo: %s, %v", data, err)
	}
	if exists(q.Project.Dir) || len(events(t, to)) != before {
		t.Errorf("the old directory is there: %v; %d events of %d", exists(q.Project.Dir), len(events(t, to)), before)
	}
}

func TestAMoveIntoAPlaceWithStateMergesBoth(t *testing.T) {
	q := open(t)
	to := sibling(t, q, "/srv/shop")
	t1 := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	mission := Wake{Key: "task-1", Kind: KindMission, TaskID: "1", OldStatus: "running", NewStatus: "blocked", Detected: t1}
	put(t, q, mission)
	mission.OldStatus, mission.NewStatus, mission.Detected = "blocked", "done", t1.Add(time.Hour)
	put(t, to, mission)
	put(t, q, Wake{Title: "from the old place"})
	put(t, q, Wake{Kind: KindForum, Key: "s", Title: "feedback"})
	put(t, to, Wake{Title: "from the new place"})
	drop(t, q, "torn.json", `{"title":`)
	drop(t, q, ".bad/x.json", "{")
	drop(t, to, ".bad/x.json", "[")
	drop(t, q, "notes.txt", "a stranger's")
	d := claim(t, sibling(t, q, "/elsewhere"))
	if d != nil {
		t.Fatal("claimed from an empty queue")
	}
	undo := q.Project.Join("install.json")
	if err := os.WriteFile(undo, []byte(`{"path":"/home/u/my shop/.claude/settings.json","made":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := q.Project.Update(func(c *state.Config) { c.Await = "always" }); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*state.Project{q.Project, to.Project} { // who is to be woken in one place is not in another
		if err := errors.Join(os.Mkdir(p.Join("commanders"), 0o700), os.WriteFile(p.Join("commanders", "1-2.json"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	had := len(events(t, q)) + len(events(t, to))
	m, err := Move(t.Context(), q.Project, "/srv/shop")
	if err != nil {
		t.Fatal(err)
	}
	if !m.Merged || m.Wakes != 4 {
		t.Errorf("%+v, want 4 wakes merged", m)
	}
	l := list(t, to)
	got := titles(l.Waiting)
	slices.Sort(got)
	want(t, "waiting", got, []string{"", "feedback", "from the new place", "from the old place"})
	for _, w := range l.Waiting {
		if w.Key == "task-1" && w.OldStatus+" -> "+w.NewStatus != "running -> done" {
			t.Errorf("folded into %s -> %s", w.OldStatus, w.NewStatus)
		}
	}
	if len(l.Bad) != 2 || !exists(to.join("torn.json")) || !exists(to.join("notes.txt")) {
		t.Errorf("bad: %v; torn file: %v, stranger's: %v", l.Bad, exists(to.join("torn.json")), exists(to.join("notes.txt")))
	}
	data, err := os.ReadFile(to.Project.Join("install.json"))
	if err != nil {
		t.Error(err)
	}
	if c, err := to.Project.Config(); err != nil || c.Await != "always" || c.Path != "/srv/shop" {
		t.Errorf("config: %+v, %v", c, err)
	}
	want(t, "the undo", string(data), "{\n  \"made\": true,\n  \"path\": \"/srv/shop/.claude/settings.json\"\n}\n")
	if exists(q.Project.Dir) {
		t.Errorf("left: %q", tree(t, q.Project.Dir))
	}
	if n := len(events(t, to)); n < had {
		t.Errorf("%d events in the history, had %d", n, had)
	}
}

func TestADeliveryThatHasNotEndedMovesToo(t *testing.T) {
	q := open(t)
	to := sibling(t, q, "/srv/shop")
	put(t, q, Wake{Title: "on its way"})
	onTheWay(t, q)
	put(t, q, Wake{Title: "claimed"})
	d := claim(t, q)
	d.Close() // its owner died
	if _, err := Move(t.Context(), q.Project, "/srv/shop"); err != nil {
		t.Fatal(err)
	}
	l := list(t, to)
	if len(l.Emitted) != 1 || len(l.Claimed) != 1 {
		t.Fatalf("%d emitted, %d claimed; want one each", len(l.Emitted), len(l.Claimed))
	}
	if err := to.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "after settling", titles(list(t, to).Waiting), []string{"claimed"})
}

func TestAMoveThatCannotBeWholeChangesNothing(t *testing.T) {
	for why, fill := range map[string]func(q, to *Queue) error{
		"installed in both": func(q, to *Queue) error {
			return errors.Join(os.WriteFile(q.Project.Join("install-local.json"), nil, 0o600), os.WriteFile(to.Project.Join("install-local.json"), nil, 0o600))
		},
		`have "later"`: func(q, to *Queue) error {
			return errors.Join(os.Mkdir(q.Project.Join("later"), 0o700), os.Mkdir(to.Project.Join("later"), 0o700))
		},
		"await of this project is live": func(q, _ *Queue) error { await(t, q); return nil },
		"delivery is under way":         func(q, _ *Queue) error { claim(t, q); return nil },
	} {
		q := open(t)
		to := sibling(t, q, "/srv/shop")
		put(t, q, Wake{Title: "a"})
		if err := fill(q, to); err != nil {
			t.Fatal(err)
		}
		before := tree(t, q.Project.State().Path())
		_, err := Move(t.Context(), q.Project, "/srv/shop")
		refused(t, err, why)
		want(t, why, tree(t, q.Project.State().Path()), before)
	}
	q := open(t)
	_, err := Move(t.Context(), q.Project, q.Project.Root)
	refused(t, err, "it is there already")
}

func TestAMoveThatFailedOnTheWayIsCompletedByTheNext(t *testing.T) {
	for n := range 4 {
		q := open(t)
		to := sibling(t, q, "/srv/shop")
		for _, title := range []string{"a", "b", "c"} {
			put(t, q, Wake{Title: title})
		}
		left := n
		fail := Open(to.Project)
		fail.Before = func(s Step) error {
			if left--; s == Releasing && left < 0 {
				return fs.ErrPermission
			}
			return nil
		}
		if _, err := fail.takeOver(t.Context(), q); (err == nil) != (n == 3) {
			t.Fatalf("failing at the wake number %d: %v", n, err)
		}
		if n < 3 {
			if _, err := Move(t.Context(), q.Project, "/srv/shop"); err != nil {
				t.Fatal(err)
			}
		}
		got := titles(list(t, to).Waiting)
		slices.Sort(got)
		want(t, "waiting", got, []string{"a", "b", "c"})
		if exists(q.Project.Dir) {
			t.Errorf("left: %q", tree(t, q.Project.Dir))
		}
	}
}

// collect is Collect of this queue's state directory; what is named is relative to it.
func collect(t *testing.T, q *Queue, older time.Duration, dry bool) []string {
	t.Helper()
	all, err := Collect(t.Context(), q.Project.State(), older, dry)
	if err != nil {
		t.Error(err)
	}
	var names []string
	for _, g := range all {
		rel, err := filepath.Rel(q.Project.State().Path(), g.Path)
		if err != nil || g.What == "" {
			t.Errorf("%+v: %v", g, err)
		}
		names = append(names, rel)
	}
	slices.Sort(names)
	return names
}

func TestGarbageIsCollectedAndNothingElse(t *testing.T) {
	root := t.TempDir()
	q := open(t)
	q = sibling(t, q, root)
	put(t, q, Wake{Title: "on its way"})
	onTheWay(t, q)
	put(t, q, Wake{Title: "waits"})
	put(t, q, Wake{Kind: KindForum, Title: "waits too"})
	drop(t, q, ".bad/x.json", "{")
	drop(t, q, ".tmp/fresh.json", "{}")
	// Quarantined just now, although it was written long ago.
	long := time.Now().Add(-1000 * time.Hour)
	if err := os.Chtimes(q.join(".bad/x.json"), long, long); err != nil {
		t.Fatal(err)
	}
	stands := sibling(t, q, t.TempDir())
	if err := os.WriteFile(q.historyFile()+".1", []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(q.Project.State().Join("hook.log.1"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := sibling(t, q, "/nowhere/quiet")
	waits := sibling(t, q, "/nowhere/waits")
	put(t, waits, Wake{Title: "a"})
	strange := sibling(t, q, "/nowhere/strange")
	if err := os.Mkdir(strange.Project.Join("later"), 0o700); err != nil {
		t.Fatal(err)
	}
	projects := "projects/" + filepath.Base(q.Project.Dir)
	garbage := []string{"hook.log.1", projects + "/history.jsonl.1", projects + "/wakes/.bad/x.json", "projects/" + filepath.Base(gone.Project.Dir), "projects/my-shop-" + q.Project.State().Project("/home/u/my shop").ID()}
	slices.Sort(garbage)

	before := tree(t, q.Project.State().Path())
	want(t, "younger than a day", collect(t, q, 24*time.Hour, false), nil)
	want(t, "dry", collect(t, q, 0, true), garbage)
	want(t, "after a dry run", tree(t, q.Project.State().Path()), before)
	want(t, "collected", collect(t, q, 0, false), garbage)
	l := list(t, q)
	if len(l.Waiting) != 2 || len(l.Emitted) != 1 || !exists(q.join(".tmp", "fresh.json")) {
		t.Errorf("left: %+v", l)
	}
	if !exists(stands.Project.Dir) || !exists(waits.Project.Dir) || !exists(strange.Project.Dir) || exists(gone.Project.Dir) {
		t.Error("the wrong project went")
	}
	want(t, "the second time", collect(t, q, 0, false), nil)
}

func TestWhatCrashesLeftGoesOnceNobodyCanBeAtIt(t *testing.T) {
	q := open(t)
	q = sibling(t, q, t.TempDir())
	c := &collector{ctx: t.Context(), now: time.Now().Add(interrupted + time.Hour), older: 1000 * time.Hour}
	d := q.Project.State()
	for _, name := range []string{".state.json42", ".sentinel.json7", "projects/.forgotten-1/wakes/.lock", "projects/.forgotten-2/wakes/a.json", "projects/.shop-12345678.0badcafe/history.jsonl"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(d.Join(name)), 0o700), os.WriteFile(d.Join(name), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	drop(t, q, ".tmp/torn.json", "{")
	drop(t, q, "../.project.json7", "{")
	made, err := q.newDelivery() // another is being made
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	if err := os.Rename(made.dir, q.join(".tmp", made.Token)); err != nil {
		t.Fatal(err)
	}
	c.collect(d)
	var got []string
	for _, g := range c.found {
		got = append(got, filepath.Base(g.Path))
	}
	slices.Sort(got)
	want(t, "removed", got, []string{".forgotten-1", ".project.json7", ".sentinel.json7", ".shop-12345678.0badcafe", ".state.json42", "torn.json"})
	if len(c.errs) != 1 || !strings.Contains(c.errs[0].Error(), ".forgotten-2: holds wakes") {
		t.Errorf("errors: %v", c.errs)
	}
	if !exists(d.Join("projects/.forgotten-2/wakes/a.json")) || !exists(q.join(".tmp", made.Token)) {
		t.Error("a wake, or a delivery in the making, went")
	}
}
