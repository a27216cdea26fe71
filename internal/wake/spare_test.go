package wake

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/atomicfile"
)

// prepare is a queue of its own process, as far as the disk can tell, with a prepared delivery.
func prepare(t *testing.T, q *Queue) *Queue {
	t.Helper()
	own := Open(q.Project)
	if err := own.Prepare(); err != nil {
		t.Fatal(err)
	}
	return own
}

func temps(t *testing.T, q *Queue) []string {
	t.Helper()
	names, err := atomicfile.Names(q.join(".tmp"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAPreparedDeliveryTakesTheNextWakesAndNoFurtherOnes(t *testing.T) {
	q := prepare(t, open(t))
	token := q.spare.Token
	if err := q.Prepare(); err != nil {
		t.Fatal(err)
	}
	want(t, "prepared", temps(t, q), []string{token})
	put(t, q, Wake{Title: "first"})
	d := claim(t, q)
	want(t, "the first delivery's token", d.Token, token)
	want(t, "prepared after the claim", len(temps(t, q)), 0)
	if err := d.Note(Recipient{Harness: "pi", Session: "one"}); err != nil {
		t.Fatal(err)
	}
	if n, err := readNote(d.dir); err != nil || n == nil || n.Session != "one" {
		t.Fatalf("the note is %v, %v", n, err)
	}
	if err := d.Emit(); err != nil {
		t.Fatal(err)
	}
	put(t, q, Wake{Title: "second"})
	second := claim(t, q)
	if second == nil || second.Token == token {
		t.Fatal("the second delivery is in the first one's directory")
	}
	want(t, "claimed", titles(second.Wakes), []string{"second"})
	d.Close()
	second.Close()
}

func TestAPreparedDeliveryWhoseOwnerDiesBeforeItsNoteGoesBack(t *testing.T) {
	q := prepare(t, open(t))
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	if n, err := readNote(d.dir); n != nil || err != nil {
		t.Fatalf("before anything is noted the note is %v, %v", n, err)
	}
	want(t, "the wake while its owner lives", where(t, q), "claimed")
	d.Close()
	want(t, "the wake", where(t, q), "waiting")
	want(t, "last event", lastEvent(t, q), "reaped news")
}

func TestWhatWasPreparedInVainIsTakenBack(t *testing.T) {
	q := prepare(t, open(t))
	if err := q.Unprepare(); err != nil {
		t.Fatal(err)
	}
	want(t, "prepared", len(temps(t, q)), 0)
	if err := q.Unprepare(); err != nil {
		t.Fatalf("nothing to take back: %v", err)
	}
}

func TestAPreparedDeliveryThatSomebodyRemovedIsMadeAnew(t *testing.T) {
	q := prepare(t, open(t))
	if err := os.RemoveAll(q.join(".tmp")); err != nil {
		t.Fatal(err)
	}
	put(t, q, Wake{Title: "news"})
	want(t, "claimed", titles(claim(t, q).Wakes), []string{"news"})
}

func TestAPreparedDeliveryIsAsOldAsItsClaim(t *testing.T) {
	q := prepare(t, open(t))
	age(t, q.spare.dir)
	d, err := q.newDelivery()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if fi, err := os.Stat(d.dir); err != nil || time.Since(fi.ModTime()) > lockless {
		t.Errorf("another machine takes it for an abandoned one: %v, %v", fi.ModTime(), err)
	}
}

func TestWhatAKilledProcessHadPreparedIsRemovedByTheNext(t *testing.T) {
	tests := map[string]struct {
		set  func(t *testing.T, q *Queue, dir string)
		kept bool
	}{
		"killed": {func(t *testing.T, q *Queue, dir string) {
			q.spare.Close()
			age(t, dir)
		}, false},
		"living": {func(t *testing.T, q *Queue, dir string) { age(t, dir) }, true},
		"in the making": {func(t *testing.T, q *Queue, dir string) {
			q.spare.Close()
			if err := os.Remove(filepath.Join(dir, "owner")); err != nil {
				t.Fatal(err)
			}
		}, true},
		"with a wake in it": {func(t *testing.T, q *Queue, dir string) {
			q.spare.Close()
			if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			age(t, dir)
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			q := prepare(t, open(t))
			dir := q.spare.dir
			test.set(t, q, dir)
			next := prepare(t, q)
			want(t, "kept", exists(dir), test.kept)
			want(t, "the next has its own", exists(next.spare.dir), true)
		})
	}
}

// age makes a directory look as if nothing had been done in it for long.
func age(t *testing.T, dir string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasPreparedIsTakenUpByTheProcessesNextProgram(t *testing.T) {
	q := open(t)
	before := prepare(t, q)
	spare := before.Spare()
	if before.spare.Close(); spare == "" { // as an exec does
		t.Fatal("nothing is prepared")
	}
	after := Open(q.Project)
	after.TakeUp(spare)
	put(t, q, Wake{Title: "first"})
	d := claim(t, after)
	want(t, "the delivery's token", d.Token, before.spare.Token)
	d.Close()
}

func TestWhatSomebodyHasIsNotTakenUp(t *testing.T) {
	q := open(t)
	other := prepare(t, q)
	mine := Open(q.Project)
	for _, spare := range []string{"", "/nowhere/owner", other.Spare()} {
		mine.TakeUp(spare)
		want(t, "taken up", mine.Spare(), "")
	}
	if err := other.Unprepare(); err != nil {
		t.Fatal(err)
	}
}
