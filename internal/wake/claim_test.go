package wake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func contextOf(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func TestOfManyClaimersExactlyOneGetsEachWake(t *testing.T) {
	q := open(t)
	const n = 300
	for i := range n {
		drop(t, q, fmt.Sprintf("w%03d.json", i), fmt.Sprintf(`{"title":"%d"}`, i))
	}
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				d, err := q.Claim(t.Context())
				if err != nil {
					t.Error(err)
				}
				if d == nil {
					return
				}
				mu.Lock()
				for _, w := range d.Wakes {
					got[w.Title]++
				}
				mu.Unlock()
				if err := errors.Join(d.Note(Recipient{}), d.Emit(), d.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range n {
		if got[fmt.Sprint(i)] != 1 {
			t.Errorf("wake %d was claimed %d times", i, got[fmt.Sprint(i)])
		}
	}
}

func TestAClaimTakesAtMost50AndCountsTheRest(t *testing.T) {
	q := open(t)
	for i := range 60 {
		drop(t, q, fmt.Sprintf("w%d.json", i), `{"title":"x"}`)
	}
	d := claim(t, q)
	if len(d.Wakes)+d.More != 60 || len(d.Wakes) > 50 {
		t.Fatalf("%d claimed, %d more", len(d.Wakes), d.More)
	}
	if !strings.Contains(d.Text, fmt.Sprintf("%d more wakes wait", d.More)) {
		t.Errorf("the text does not tell of the rest:\n%s", d.Text)
	}
	if n, err := q.Count(); err != nil || n != d.More {
		t.Errorf("%d wait (%v), want %d", n, err, d.More)
	}
}

func TestAClaimTakesFewWakesOfManyMegabytes(t *testing.T) {
	q := open(t)
	for i := range 12 {
		drop(t, q, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"title":"t%d","detail":%q}`, i, strings.Repeat("d", maxSize/4)))
	}
	got := 0
	for d := claim(t, q); d != nil; d = claim(t, q) {
		if len(d.Wakes) > 4 {
			t.Errorf("%d wakes of %d bytes each in one delivery", len(d.Wakes), maxSize/4)
		}
		got += len(d.Wakes)
		if want := 12 - got; d.More != want {
			t.Errorf("after %d wakes %d more are said to wait", got, d.More)
		}
		if err := errors.Join(d.Note(Recipient{}), d.Emit(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "wakes", got, 12)
}

func TestAMessageIsOldestFirstAndHoldsOnlyWholeWakes(t *testing.T) {
	q := open(t)
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 40 {
		put(t, q, Wake{Title: fmt.Sprintf("wake %02d", i), Detail: strings.Repeat("detail ", 100), Detected: t0.Add(time.Duration(40-i) * time.Minute)})
	}
	seen := 0
	for {
		d := claim(t, q)
		if d == nil {
			break
		}
		if len(d.Text) >= 10000 {
			t.Fatalf("a text of %d bytes", len(d.Text))
		}
		if !slices.IsSortedFunc(d.Wakes, older) {
			t.Errorf("not the oldest first: %q", titles(d.Wakes))
		}
		for _, w := range d.Wakes {
			if strings.Count(d.Text, w.Title) != 1 {
				t.Errorf("%q is not in the text once", w.Title)
			}
		}
		seen += len(d.Wakes)
		if err := errors.Join(d.Note(Recipient{}), d.Emit(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if seen != 40 {
		t.Errorf("%d wakes were delivered, want 40", seen)
	}
}

func TestNothingIsClaimedWhereNothingWaits(t *testing.T) {
	q := open(t)
	if d := claim(t, q); d != nil {
		t.Fatalf("claimed %v", d.Wakes)
	}
	other := Open(q.Project.State().Project("/never/seen"))
	if d := claim(t, other); d != nil {
		t.Fatalf("claimed %v", d.Wakes)
	}
	if exists(other.Project.Dir) {
		t.Error("looking made a project's directory")
	}
}

func TestAHalfWrittenFileIsLeftForTheNextLook(t *testing.T) {
	q := open(t)
	drop(t, q, "half.json", `{"title":"ha`)
	put(t, q, Wake{Title: "whole"})
	d := claim(t, q)
	want(t, "claimed", titles(d.Wakes), []string{"whole"})
	if !exists(q.join("half.json")) {
		t.Fatal("the half-written file is gone")
	}
	if d := claim(t, q); d != nil {
		t.Fatalf("claimed %v", d.Wakes)
	}
	old := time.Now().Add(-3 * time.Second)
	if err := os.Chtimes(q.join("half.json"), old, old); err != nil {
		t.Fatal(err)
	}
	if d := claim(t, q); d != nil {
		t.Fatalf("claimed %v", d.Wakes)
	}
	if l := list(t, q); len(l.Bad) != 1 || exists(q.join("half.json")) {
		t.Errorf("bad: %v, want the file that stayed half-written", l.Bad)
	}
}

func TestTrapsInTheQueueGoToBadAndTheOthersGetThrough(t *testing.T) {
	q := open(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`{"title":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(
		os.Symlink(secret, q.join("link.json")),
		syscall.Mkfifo(q.join("fifo.json"), 0o600),
		os.Mkdir(q.join("dir.json"), 0o700),
		os.Truncate(big, maxSize+1),
		os.Rename(big, q.join("big.json")),
	)
	if err != nil {
		t.Fatal(err)
	}
	drop(t, q, "null.json", "null")
	drop(t, q, "array.json", "[1]")
	for _, name := range []string{"null.json", "array.json", "big.json", "dir.json"} {
		old := time.Now().Add(-time.Minute)
		if err := os.Chtimes(q.join(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	want(t, "claimed", titles(d.Wakes), []string{"news"})
	// What came behind the big one in the directory was left to the next claim.
	if next := claim(t, q); next != nil {
		t.Errorf("claimed next: %q", titles(next.Wakes))
	}
	if n := len(list(t, q).Bad); n != 6 {
		t.Errorf("%d files in .bad, want 6", n)
	}
}

func TestAPoisonWakeGoesToBadAndTheOthersGetThrough(t *testing.T) {
	q := open(t)
	defer func() { rendering = render }()
	rendering = func(w Wake) string {
		if w.Title == "poison" {
			panic("cannot render this")
		}
		return render(w)
	}
	put(t, q, Wake{Title: "before"})
	p := put(t, q, Wake{Title: "poison"})
	put(t, q, Wake{Title: "after"})
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(q.join(p.ID+".json"), old, old); err != nil {
		t.Fatal(err)
	}
	d := claim(t, q)
	want(t, "claimed", titles(d.Wakes), []string{"before", "after"})
	if l := list(t, q); len(l.Bad) != 1 || len(l.Waiting) != 0 {
		t.Errorf("bad %v, waiting %v", l.Bad, l.Waiting)
	}
}

func TestAnExpiredWakeIsDroppedWithItsReason(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "stale", Expires: time.Now().Add(-time.Second)})
	put(t, q, Wake{Title: "fresh", Expires: time.Now().Add(time.Hour)})
	d := claim(t, q)
	want(t, "claimed", titles(d.Wakes), []string{"fresh"})
	if es := events(t, q); !slices.Contains(es, "dropped stale") {
		t.Errorf("history: %q", es)
	}
	if l := list(t, q); len(l.Waiting) != 0 {
		t.Errorf("waiting: %v", l.Waiting)
	}
}

func TestReleasePutsBackOrFoldsIntoNewerNews(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Key: "k", Title: "older", OldStatus: "running"})
	put(t, q, Wake{Key: "other", Title: "other"})
	d := claim(t, q)
	if err := d.Note(Recipient{Harness: "claude"}); err != nil {
		t.Fatal(err)
	}
	put(t, q, Wake{Key: "k", Title: "newer", OldStatus: "blocked"})
	if err := d.Release(t.Context(), "the client is gone"); err != nil {
		t.Fatal(err)
	}
	l := list(t, q)
	want(t, "waiting", titles(l.Waiting), []string{"newer", "other"})
	want(t, "old status", l.Waiting[0].OldStatus, "running")
	if len(l.Claimed) != 0 || exists(d.dir) {
		t.Errorf("claimed still: %v", l.Claimed)
	}
	if es := events(t, q); !slices.Contains(es, "released other") {
		t.Errorf("history: %q", es)
	}
}

func TestAClaimThatFailsAtAnyStepLosesNothing(t *testing.T) {
	for _, step := range []Step{Making, Made, Claimed} {
		t.Run(string(step), func(t *testing.T) {
			q := open(t)
			for i := range 3 {
				put(t, q, Wake{Title: fmt.Sprint(i)})
			}
			broken := errors.New("broken")
			q.Before = func(s Step) error {
				if s == step {
					return broken
				}
				return nil
			}
			if _, err := q.Claim(t.Context()); !errors.Is(err, broken) {
				t.Fatalf("Claim: %v", err)
			}
			q.Before = nil
			if err := q.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(t, "waiting", titles(list(t, q).Waiting), []string{"0", "1", "2"})
		})
	}
}

func TestAFailedReleaseIsMadeGoodBySettle(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "a"})
	put(t, q, Wake{Title: "b"})
	d := claim(t, q)
	if err := d.Note(Recipient{}); err != nil {
		t.Fatal(err)
	}
	n := 0
	q.Before = func(s Step) error {
		if s == Releasing {
			if n++; n == 2 {
				return syscall.EIO
			}
		}
		return nil
	}
	if err := d.Release(t.Context(), "test"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Release: %v", err)
	}
	q.Before = nil
	if err := q.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "waiting", titles(list(t, q).Waiting), []string{"a", "b"})
}

func TestWithoutDescriptorsAClaimLosesNothing(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "a"})
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	q.Before = func(s Step) error {
		if s == Claimed {
			return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max})
		}
		return nil
	}
	_, err := q.Claim(t.Context())
	if rerr := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("Claim: %v, want EMFILE", err)
	}
	q.Before = nil
	if err := q.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "waiting", titles(list(t, q).Waiting), []string{"a"})
	if l := list(t, q); len(l.Bad) != 0 {
		t.Errorf("bad: %v", l.Bad)
	}
}

func TestTheScannerSaysNoOnlyWhileNothingChanges(t *testing.T) {
	q := open(t)
	var s Scanner
	if !s.Look(q) {
		t.Error("the first look says no")
	}
	if !s.Look(q) {
		t.Error("a directory that changed a moment ago may hide a second change: the look says no")
	}
	old := time.Now().Add(-10 * time.Second)
	age := func() {
		for _, box := range boxes {
			if err := os.Chtimes(q.join(box), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	age()
	s.Look(q)
	if s.Look(q) {
		t.Error("nothing changed, and the look says yes")
	}
	put(t, q, Wake{Title: "x"})
	if !s.Look(q) {
		t.Error("a wake came, and the look says no")
	}
	age()
	s.Look(q)
	put(t, q, Wake{Key: "session", Kind: KindForum})
	if !s.Look(q) {
		t.Error("a wake came into forum/, and the look says no")
	}
	age()
	s.Look(q)
	for i := range s.boxes {
		s.boxes[i].at = s.boxes[i].at.Add(-lookAgain)
	}
	if !s.Look(q) {
		t.Error("after a minute the look says no")
	}
}

func TestAForumWakeWaitsInItsOwnDirectoryAndReturnsThere(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Key: "session-1", Kind: KindForum, Title: "notes.md"})
	if !exists(q.join("forum", "session-1.json")) {
		t.Fatal("no wakes/forum/session-1.json")
	}
	put(t, q, Wake{Key: "session-1", Title: "another kind, the same key"})
	d := claim(t, q)
	if d == nil || len(d.Wakes) != 2 {
		t.Fatalf("claimed: %+v", d)
	}
	if err := d.Release(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if !exists(q.join("forum", "session-1.json")) || !exists(q.join("session-1.json")) {
		t.Error("not both are back in their places")
	}
}

func TestWhatIsToldIsBroughtUpToDateAndWhatWaitsStaysAsItIs(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Key: "s", Kind: KindForum, Forum: &Forum{File: "notes.md", Messages: 1}})
	q.News = func(w *Wake) (string, error) {
		w.Forum = &Forum{File: "notes.md", Messages: 5}
		return "", nil
	}
	d := claim(t, q)
	if d == nil || !strings.Contains(d.Text, "notes.md: 5 new messages") {
		t.Fatalf("claimed %+v", d)
	}
	if err := d.Release(t.Context(), "tried"); err != nil {
		t.Fatal(err)
	}
	if l := list(t, q); len(l.Waiting) != 1 || l.Waiting[0].Forum.Messages != 1 {
		t.Errorf("waiting %+v", l.Waiting)
	}
	q.News = func(w *Wake) (string, error) {
		w.Forum = nil
		return "", errors.New("the inbox cannot be read")
	}
	if d := claim(t, q); d == nil || !strings.Contains(d.Text, "notes.md: 1 new message ") {
		t.Errorf("in doubt: %+v", d)
	}
}
