package wake

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
)

// open is a queue of its own in a scratch state directory.
func open(t *testing.T) *Queue {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("VEXILLUM_HOME", filepath.Join(t.TempDir(), "a state"))
	d, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	q := Open(d.Project("/home/u/my shop"))
	if err := q.Ensure(); err != nil {
		t.Fatal(err)
	}
	return q
}

func put(t *testing.T, q *Queue, w Wake) Wake {
	t.Helper()
	placed, err := q.Put(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return placed
}

func drop(t *testing.T, q *Queue, name, content string) {
	t.Helper()
	temp := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(temp, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, q.join(name)); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, q *Queue) *Delivery {
	t.Helper()
	d, err := q.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d != nil {
		t.Cleanup(func() { d.Close() })
	}
	return d
}

func list(t *testing.T, q *Queue) Listing {
	t.Helper()
	l, err := q.List(0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// titles are the titles of wakes, in their order.
func titles(ws []Wake) []string {
	all := []string{}
	for _, w := range ws {
		all = append(all, w.Title)
	}
	return all
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// events are the history's events, as "event title".
func events(t *testing.T, q *Queue) []string {
	t.Helper()
	all, err := q.History(0)
	if err != nil {
		t.Fatal(err)
	}
	var short []string
	for _, e := range all {
		short = append(short, strings.TrimSpace(e.Event+" "+e.Title+" "+e.Proof))
	}
	return short
}

func TestTwoSendsWithoutAKeyAreTwoWakes(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "a"})
	put(t, q, Wake{Title: "a"})
	if n := len(list(t, q).Waiting); n != 2 {
		t.Fatalf("%d wakes wait, want 2", n)
	}
}

func TestWakesOfOneKeyFoldIntoOneLine(t *testing.T) {
	q := open(t)
	t1 := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	mission := func(old, now string, at time.Time) Wake {
		return Wake{Key: "task-1", Kind: KindMission, TaskID: "1", OldStatus: old, NewStatus: now, Detected: at}
	}
	put(t, q, mission("running", "blocked", t1))
	last := put(t, q, mission("blocked", "done", t1.Add(time.Minute)))
	w := list(t, q).Waiting
	if len(w) != 1 {
		t.Fatalf("%d wakes wait, want 1", len(w))
	}
	want(t, "change", w[0].OldStatus+" -> "+w[0].NewStatus, "running -> done")
	want(t, "id", w[0].ID, last.ID)
	want(t, "first detected", w[0].FirstDetected, t1)
	want(t, "detected", w[0].Detected, t1.Add(time.Minute))
}

func TestAnOlderProducerNeverHidesANewerOne(t *testing.T) {
	q := open(t)
	t1 := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	put(t, q, Wake{Key: "k", Title: "first", OldStatus: "a", Detected: t1})
	put(t, q, Wake{Key: "k", Title: "third", OldStatus: "c", Detected: t1.Add(2 * time.Hour)})
	late := put(t, q, Wake{Key: "k", Title: "second", OldStatus: "b", Detected: t1.Add(time.Hour)})
	want(t, "what waits", titles(list(t, q).Waiting), []string{"third"})
	want(t, "what Put returns", late.Title, "third")
	want(t, "old status", late.OldStatus, "a")
}

func TestUnknownFieldsSurviveEveryRewrite(t *testing.T) {
	q := open(t)
	drop(t, q, "k.json", `{"title":"by hand","x-mine":{"n":12345678901234567890,"s":"<&>"},"schema":1}`)
	put(t, q, Wake{Key: "k", Title: "by vx"})
	data, err := os.ReadFile(q.join("k.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(fields["x-mine"])
	if err != nil || !strings.Contains(string(got), "12345678901234567890") {
		t.Errorf("x-mine = %s, %v", got, err)
	}
	want(t, "titles", titles(list(t, q).Waiting), []string{"by vx"})
}

func TestAFileDroppedByHandIsAWakeNamedAfterItsFile(t *testing.T) {
	q := open(t)
	drop(t, q, "deploy.json", `{"title":"deploy finished"}`)
	w := list(t, q).Waiting
	if len(w) != 1 {
		t.Fatalf("%d wakes, want 1", len(w))
	}
	want(t, "key, id, kind", []string{w[0].Key, w[0].ID, string(w[0].Kind)}, []string{"deploy", "deploy", "message"})
	d := claim(t, q)
	if d == nil || !strings.Contains(d.Text, "- message deploy: deploy finished\n") {
		t.Fatalf("delivery: %+v", d)
	}
}

func TestKeysBecomeSafeDistinctNames(t *testing.T) {
	long := strings.Repeat("k", 300)
	keys := []string{"a", "A", "a/b", "a\\b", "../etc", "..", "", "é", "e\u0301", long, long + "x", "to", ".hidden", "a b", "a\nb", "con.json"}
	seen := map[string]string{}
	for _, k := range keys {
		name := FileName(k)
		if len(name) > maxName || name == "" || strings.ContainsAny(name, "/\\ \n") || strings.HasPrefix(name, ".") {
			t.Errorf("FileName(%.20q) = %q", k, name)
		}
		if other, ok := seen[strings.ToLower(name)]; ok {
			t.Errorf("%.20q and %.20q share the name %q", k, other, name)
		}
		seen[strings.ToLower(name)] = k
	}
	want(t, "a safe key's name", FileName("task-1f_2.3"), "task-1f_2.3")
}

func TestEveryOddKeyIsDelivered(t *testing.T) {
	q := open(t)
	keys := []string{"to", "to.json", "owner", "deploy", "Deploy", "DEPLOY", strings.Repeat("x", 300), "../../up", "a\x00b", "forum"}
	for _, k := range keys {
		put(t, q, Wake{Key: k, Title: fmt.Sprintf("%.10q", k)})
	}
	drop(t, q, "to.json", `{"title":"dropped to.json"}`)
	d := claim(t, q)
	if d == nil {
		t.Fatal("nothing was claimed")
	}
	if err := d.Note(Recipient{}); err != nil {
		t.Fatal(err)
	}
	if len(d.Wakes) != len(keys) { // "to" was folded with the dropped one
		t.Fatalf("%d wakes, want %d: %q", len(d.Wakes), len(keys), titles(d.Wakes))
	}
	if err := d.Release(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if n := len(list(t, q).Waiting); n != len(keys) {
		t.Fatalf("%d wakes wait after the release, want %d", n, len(keys))
	}
}

func TestIDsSortByTimeAndAreUnique(t *testing.T) {
	now := time.Now()
	var ids []string
	for i := range 1000 {
		ids = append(ids, NewID(now.Add(time.Duration(i)*time.Millisecond)))
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort by time")
	}
	if len(slices.Compact(slices.Clone(ids))) != len(ids) || len(ids[0]) != 18 {
		t.Errorf("ids such as %q", ids[0])
	}
	same := map[string]bool{}
	for range 10000 {
		same[NewID(now)] = true
	}
	if len(same) != 10000 {
		t.Errorf("%d of 10000 ids of one millisecond are distinct", len(same))
	}
}

func TestAPutFailsWholeAtEveryStep(t *testing.T) {
	for _, step := range []Step{Staging, Staged} {
		t.Run(string(step), func(t *testing.T) {
			q := open(t)
			put(t, q, Wake{Key: "k", Title: "old"})
			full := errors.New("no space left on device")
			q.Before = func(s Step) error {
				if s == step {
					return full
				}
				return nil
			}
			if _, err := q.Put(t.Context(), Wake{Key: "k", Title: "new"}); !errors.Is(err, full) {
				t.Fatalf("Put: %v", err)
			}
			q.Before = nil
			want(t, "what waits", titles(list(t, q).Waiting), []string{"old"})
			if left, _ := atomicfile.Names(q.join(".tmp")); len(left) > 0 {
				t.Errorf("left in .tmp: %q", left)
			}
		})
	}
}

func TestAPutBehindAClaimDoesNotBringTheOldNewsBack(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Key: "k", Title: "one", OldStatus: "running"})
	var d *Delivery
	q.Before = func(s Step) error {
		if s == Staged { // the old wake was read, and now it is claimed
			q.Before = nil
			d = claim(t, q)
		}
		return nil
	}
	put(t, q, Wake{Key: "k", Title: "two", OldStatus: "blocked"})
	if d == nil || !slices.Equal(titles(d.Wakes), []string{"one"}) {
		t.Fatalf("claimed: %+v", d)
	}
	w := list(t, q).Waiting
	want(t, "what waits", titles(w), []string{"two"})
	want(t, "its old status", w[0].OldStatus, "blocked")
}

func TestAFileDroppedDuringAPutIsFoldedIn(t *testing.T) {
	for _, waits := range []bool{false, true} {
		q := open(t)
		if waits {
			put(t, q, Wake{Key: "k", Title: "waiting"})
		}
		q.Before = func(s Step) error {
			if s == Staged {
				q.Before = nil
				drop(t, q, "k.json", `{"title":"dropped","x-seen":true,"detected_at":"2020-01-01T00:00:00Z"}`)
			}
			return nil
		}
		put(t, q, Wake{Key: "k", Title: "put"})
		w := list(t, q).Waiting
		want(t, "what waits", titles(w), []string{"put"})
		want(t, "the dropped wake's field", string(w[0].extra["x-seen"]), "true")
	}
}

func TestAFrozenPutDoesNotHangTheNextForEver(t *testing.T) {
	q := open(t)
	l, err := lock.Try(q.join(".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	ctx, cancel := contextOf(t, 50*time.Millisecond)
	defer cancel()
	if _, err := q.Put(ctx, Wake{Title: "x"}); !errors.Is(err, lock.ErrHeld) {
		t.Fatalf("Put: %v, want ErrHeld", err)
	}
}

func TestWhatIsUnreadableUnderItsNameDoesNotStopAPut(t *testing.T) {
	q := open(t)
	drop(t, q, "k.json", "not json")
	put(t, q, Wake{Key: "k", Title: "news"})
	l := list(t, q)
	want(t, "what waits", titles(l.Waiting), []string{"news"})
	if len(l.Bad) != 1 {
		t.Errorf("bad: %v, want the unreadable file", l.Bad)
	}
}

func TestHistoryIsRotatedAndOneLineIsAtMost4KB(t *testing.T) {
	q := open(t)
	long := strings.Repeat("<\x1b[31m\u00e9\n\"", 50000)
	for range 900 {
		e := eventOf("put", Wake{ID: long, Key: long, Title: long})
		e.Why = long
		q.record(e, e)
	}
	for _, f := range []string{"history.jsonl", "history.jsonl.1"} {
		data, err := os.ReadFile(q.Project.Join(f))
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > historySize+2*maxLine {
			t.Errorf("%s has %d bytes", f, len(data))
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if len(line) > maxLine || strings.Contains(line, "\x1b") {
				t.Fatalf("a line of %d bytes: %.100q", len(line), line)
			}
		}
	}
	if es, err := q.History(10); err != nil || len(es) != 10 {
		t.Errorf("History(10): %d, %v", len(es), err)
	}
}

func TestBadIsBounded(t *testing.T) {
	q := open(t)
	for i := range maxBad + 20 {
		path := q.join(".tmp", fmt.Sprint(i))
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := q.quarantine(path, "test"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(list(t, q).Bad); n != maxBad {
		t.Errorf("%d bad wakes are kept, want %d", n, maxBad)
	}
}

// reopen is the queue of open, in another process.
func reopen(t *testing.T) *Queue {
	t.Helper()
	d, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	return Open(d.Project("/home/u/my shop"))
}
