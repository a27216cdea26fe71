package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
	"vx/internal/wake"
)

// The processes that crash are this test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == crashArg {
		os.Exit(crash(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func open(t *testing.T) *Store {
	t.Helper()
	d, err := state.OpenAt(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return Open(d.Project("/home/u/shop"))
}

func add(t *testing.T, s *Store, task Task) Task {
	t.Helper()
	if task.Kind == "" {
		task.Kind = wake.KindMission
	}
	task, err := s.Add(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// move gives a task its next status.
func move(to Status) func(*Task) error {
	return func(t *Task) error {
		t.Status = to
		return nil
	}
}

func get(t *testing.T, s *Store, id string) Task {
	t.Helper()
	got, err := s.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheTableOfMoves(t *testing.T) {
	all := []Status{Pending, Running, Done, Blocked, Unconfirmed, Interrupted, Shipped, Landed, Struck}
	table := map[Status]string{
		Pending:     "running struck",
		Running:     "done blocked unconfirmed interrupted",
		Blocked:     "running struck",
		Done:        "running shipped landed struck",
		Shipped:     "running landed struck",
		Unconfirmed: "running landed struck",
		Interrupted: "running struck",
		Landed:      "struck",
		Struck:      "",
	}
	for _, from := range all {
		for _, to := range all {
			want := strings.Contains(" "+table[from]+" ", " "+string(to)+" ")
			if got := from.May(to); got != want {
				t.Errorf("%s -> %s: %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestATaskIsKeptAsItWasAdded(t *testing.T) {
	s := open(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	full := Task{
		Kind: wake.KindScout, Prompt: "look </b> & see\n", Title: "Look", PromptedAt: at,
		FormerPanes: []string{"w1:p1"},
		Camp:        &Camp{"/c", "vx/x", "main"}, Dir: "/d", Herdr: &Herdr{"/s", "w1", "w1:t1", "w1:p2", "name", "term_1", 1 << 60}, Head: "abc",
		Model: "m", Effort: "high", Agent: "claude", Args: []string{"--permission-mode", "plan"}, ReportPath: "/r.md", Output: "o", Note: "n", Session: &Session{1, 1 << 62, "/rec"},
		AgentNotFoundSince: at, IdleUnconfirmedSince: at, BackgroundSince: at, PauseSeenAt: at, DialogSince: at,
		Decision: &Decision{"q", []string{"a", "b"}, at, "a", at, true}, Amendments: []Amendment{{at, "more"}}, Redispatches: []time.Time{at},
		CommanderProject: "/home/u/notes", CommanderPane: "w1:p1", Evidence: &Evidence{"idle", "title", []string{"screen: idle"}, at},
	}
	for f := range reflect.TypeFor[Task]().Fields() {
		switch f.Name {
		case "ID", "Status", "CreatedAt", "UpdatedAt", "WakeID", "WakeProject":
		default:
			if reflect.ValueOf(full).FieldByIndex(f.Index).IsZero() {
				t.Errorf("the test leaves %s out", f.Name)
			}
		}
	}
	added := add(t, s, full)
	if !isID(added.ID) || added.Status != Pending || added.CreatedAt.IsZero() || !added.UpdatedAt.Equal(added.CreatedAt) {
		t.Errorf("added %+v", added)
	}
	if diff := cmp.Diff(added, get(t, s, added.ID)); diff != "" {
		t.Error(diff)
	}
	fi, err := os.Stat(s.path(added.ID))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

func TestAnIDMayBeShortenedWhileItIsUnambiguous(t *testing.T) {
	s := open(t)
	for _, id := range []string{"aa00000000000000", "ab00000000000000", "b000000000000000"} {
		write(t, s.path(id), `{"id":"`+id+`","status":"running"}`)
	}
	for prefix, want := range map[string]string{
		"aa": "aa00000000000000", "b": "b000000000000000", "B0": "b000000000000000", "ab00000000000000": "ab00000000000000",
	} {
		if got := get(t, s, prefix); got.ID != want {
			t.Errorf("%s is %s", prefix, got.ID)
		}
	}
	_, err := s.Get("a")
	if e, ok := errors.AsType[*Ambiguous](err); !ok || !cmp.Equal(e.IDs, []string{"aa00000000000000", "ab00000000000000"}) {
		t.Errorf("a: %v", err)
	}
	for _, none := range []string{"", "c", "aa000000000000001", "ffffffffffffffff", "../tasks/aa", "aa00000000000000.json"} {
		if _, err := s.Get(none); !isNotFound(err) {
			t.Errorf("%q: %v", none, err)
		}
	}
	if _, err := Open(s.Project.State().Project("/home/u/none")).Get("a"); !isNotFound(err) {
		t.Errorf("without tasks: %v", err)
	}
}

func isNotFound(err error) bool { _, ok := errors.AsType[*NotFound](err); return ok }

func TestWhoeverSavesMustHaveSeenTheStatus(t *testing.T) {
	s := open(t)
	task := add(t, s, Task{Status: Done})
	if _, err := s.Update(t.Context(), task.ID, Done, move(Landed)); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(s.path(task.ID))
	_, err := s.Update(t.Context(), task.ID, Done, move(Running))
	if e, ok := errors.AsType[*Conflict](err); !ok || e.Seen != Done || e.Is != Landed {
		t.Errorf("a conflict: %v", err)
	}
	q := wake.Open(s.Project)
	_, err = s.Transition(t.Context(), task.ID, Running, q, finish(Done))
	if _, ok := errors.AsType[*Conflict](err); !ok {
		t.Errorf("a conflict: %v", err)
	}
	_, err = s.Update(t.Context(), task.ID, Landed, move(Running))
	if e, ok := errors.AsType[*BadMove](err); !ok || e.From != Landed || e.To != Running {
		t.Errorf("a bad move: %v", err)
	}
	_, err = s.Transition(t.Context(), task.ID, Landed, q, finish(Done))
	if _, ok := errors.AsType[*BadMove](err); !ok {
		t.Errorf("a bad move: %v", err)
	}
	own := errors.New("the writer's own")
	_, err = s.Update(t.Context(), task.ID, Landed, func(task *Task) error { task.Title = "x"; return own })
	if err != own {
		t.Errorf("the change's error: %v", err)
	}
	if after, _ := os.ReadFile(s.path(task.ID)); !bytes.Equal(before, after) {
		t.Errorf("it was saved all the same:\n%s", after)
	}
	if n := told(t, q); len(n) != 0 {
		t.Errorf("told %v", n)
	}
	if _, err := s.Update(t.Context(), "0000000000000000", Done, move(Running)); !isNotFound(err) {
		t.Errorf("no such task: %v", err)
	}
}

func TestWhatTheStoreKeepsCannotBeChanged(t *testing.T) {
	s := open(t)
	task := add(t, s, Task{Status: Running})
	got, err := s.Update(t.Context(), task.ID, Running, func(t *Task) error {
		t.ID, t.WakeID, t.WakeProject, t.CreatedAt, t.Title = "x", "x", "/x", time.Now().Add(time.Hour), "new"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := task
	want.Title, want.UpdatedAt = "new", got.UpdatedAt
	if diff := cmp.Diff(want, got); diff != "" || !got.UpdatedAt.After(task.UpdatedAt) {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, get(t, s, task.ID)); diff != "" {
		t.Error(diff)
	}
}

func TestAChangeThatChangesNothingWritesNothing(t *testing.T) {
	s := open(t)
	task := add(t, s, Task{Status: Running, Decision: &Decision{Options: []string{"a"}}})
	old, err := os.Stat(s.path(task.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), task.ID, Running, move(Running)); err != nil {
		t.Fatal(err)
	}
	now, err := os.Stat(s.path(task.ID))
	if err != nil || !os.SameFile(old, now) {
		t.Errorf("it was written, %v", err)
	}
	// A change in place is one, too.
	got, err := s.Update(t.Context(), task.ID, Running, func(t *Task) error { t.Decision.Options[0] = "b"; return nil })
	if err != nil || get(t, s, task.ID).Decision.Options[0] != "b" || got.Decision.Options[0] != "b" {
		t.Errorf("%+v, %v", got.Decision, err)
	}
}

func TestTimesNeverRunBackwards(t *testing.T) {
	s := open(t)
	ahead := time.Now().Add(time.Hour).UTC().Round(0)
	task := add(t, s, Task{Status: Done})
	prompted, err := s.Update(t.Context(), task.ID, Done, func(t *Task) error { t.Status, t.PromptedAt = Running, ahead; return nil })
	if err != nil || !prompted.UpdatedAt.After(ahead) {
		t.Fatalf("updated at %v, prompted at %v, %v", prompted.UpdatedAt, ahead, err)
	}
	q := wake.Open(s.Project)
	done, err := s.Transition(t.Context(), task.ID, Running, q, finish(Done))
	if err != nil || !done.UpdatedAt.After(prompted.UpdatedAt) {
		t.Errorf("updated at %v, %v", done.UpdatedAt, err)
	}
	// The clock has gone back since the prompt: the wake is news for all that.
	q.News = News(s.Project.State(), s.Project)
	if got := told(t, q); len(got) != 1 {
		t.Errorf("told %v", got)
	}
}

func TestUpdatesAtOnceAreAllKept(t *testing.T) {
	s := open(t)
	task := add(t, s, Task{Status: Running})
	const n = 20
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if _, err := Open(s.Project).Update(context.Background(), task.ID, Running, func(t *Task) error { t.Note += "x"; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := get(t, s, task.ID); len(got.Note) != n {
		t.Errorf("%d updates of %d are left", len(got.Note), n)
	}
}

func TestALockThatIsHeldIsWaitedForNoLongerThanAsked(t *testing.T) {
	s := open(t)
	task := add(t, s, Task{Status: Running})
	l, err := lock.Try(s.Project.Join("tasks", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Update(ctx, task.ID, Running, move(Done)); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("%v", err)
	}
	if got := get(t, s, task.ID); got.Status != Running {
		t.Errorf("it is %s", got.Status)
	}
}

func TestOneBadFileIsSaidAndStopsNobody(t *testing.T) {
	s := open(t)
	good := add(t, s, Task{Status: Running, Title: "good"})
	bad := map[string]string{
		"0000000000000001": `{"id":`,
		"0000000000000002": `[]`,
		"0000000000000003": `null`,
		"0000000000000004": `{"id":"0000000000000005","status":"running"}`,
		"0000000000000006": `{"id":"0000000000000006","status":7}`,
		"0000000000000007": `{}`,
		"0000000000000008": ``,
	}
	for id, data := range bad {
		write(t, s.path(id), data)
	}
	if err := errors.Join(syscall.Mkfifo(s.path("0000000000000009"), 0o600), os.Symlink(s.path(good.ID), s.path("000000000000000a")),
		os.Mkdir(s.path("000000000000000b"), 0o700)); err != nil {
		t.Fatal(err)
	}
	write(t, s.Project.Join("tasks", "notes.json"), "{}")
	write(t, s.Project.Join("tasks", ".hidden.json"), "{}")
	for range 2 {
		tasks, errs := s.List()
		if len(tasks) != 1 || tasks[0].Title != "good" {
			t.Errorf("tasks %+v", tasks)
		}
		if len(errs) != len(bad)+4 {
			t.Errorf("%d errors: %v", len(errs), errs)
		}
	}
	for id := range bad {
		if _, err := s.Update(t.Context(), id, Running, move(Done)); err == nil {
			t.Errorf("%s was updated", id)
		}
		if data, _ := os.ReadFile(s.path(id)); string(data) != bad[id] {
			t.Errorf("%s became %q", id, data)
		}
	}
	write(t, s.path("0000000000000001"), `{"id":"0000000000000001","status":"done"}`)
	if tasks, errs := s.List(); len(tasks) != 2 || len(errs) != len(bad)+3 {
		t.Errorf("once it is mended: %d tasks, %d errors", len(tasks), len(errs))
	}
}

// settle makes the stamps of a store's files old enough to be believed.
func settle(t *testing.T, s *Store) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	names, err := atomicfile.Names(s.dir())
	for _, name := range names {
		err = errors.Join(err, os.Chtimes(filepath.Join(s.dir(), name), old, old))
	}
	if err = errors.Join(err, os.Chtimes(s.dir(), old, old)); err != nil {
		t.Fatal(err)
	}
}

func TestAnUnchangedDirectoryIsNotReadAgain(t *testing.T) {
	s := open(t)
	a, b := add(t, s, Task{Status: Running, Title: "a"}), add(t, s, Task{Status: Running, Title: "b"})
	settle(t, s)
	first, _ := s.List()
	if len(first) != 2 || first[0].ID != a.ID || first[1].ID != b.ID {
		t.Fatalf("listed %+v", first)
	}
	// Nobody could know of this: a file that changes in place, in a directory that does not.
	write(t, s.path(a.ID), strings.Replace(string(must(os.ReadFile(s.path(a.ID)))), `"a"`, `"A"`, 1))
	if again, _ := s.List(); again[0].Title != "a" {
		t.Errorf("it was read again: %+v", again)
	}
	if n := testing.AllocsPerRun(100, func() { s.List() }); n > 5 {
		t.Errorf("a look at an unchanged directory allocates %v times", n)
	}
	if _, err := s.Update(t.Context(), b.ID, Running, move(Done)); err != nil {
		t.Fatal(err)
	}
	now, _ := s.List()
	if now[0].Title != "A" || now[1].Status != Done || first[1].Status != Running {
		t.Errorf("after an update: %+v", now)
	}
	if err := s.Remove(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if now, _ = s.List(); len(now) != 1 || now[0].ID != b.ID {
		t.Errorf("after a removal: %+v", now)
	}
	if err := s.Remove(t.Context(), a.ID); !isNotFound(err) {
		t.Errorf("removed twice: %v", err)
	}
	s.seen.at = s.seen.at.Add(-2 * lookAgain)
	settle(t, s)
	s.List()
	write(t, s.path(b.ID), strings.Replace(string(must(os.ReadFile(s.path(b.ID)))), `"b"`, `"B"`, 1))
	s.seen.at = s.seen.at.Add(-2 * lookAgain)
	if now, _ = s.List(); now[0].Title != "B" {
		t.Errorf("a minute later: %+v", now)
	}
}

// A stamp that is young may hide a second change in the same instant.
func TestAYoungStampIsNotBelieved(t *testing.T) {
	s := open(t)
	a := add(t, s, Task{Status: Running, Title: "a"})
	old, err := os.Stat(s.dir())
	if err != nil {
		t.Fatal(err)
	}
	s.List()
	if _, err := s.Update(t.Context(), a.ID, Running, move(Done)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(s.dir(), old.ModTime(), old.ModTime()); err != nil {
		t.Fatal(err)
	}
	if now, _ := s.List(); now[0].Status != Done {
		t.Errorf("listed %+v", now)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestFieldsThatThisBuildDoesNotKnowSurviveAtEveryLevel(t *testing.T) {
	s := open(t)
	const id = "00000000000000aa"
	write(t, s.path(id), `{
  "later": {"big": 12345678901234567890, "s": "<&>"},
  "id": "00000000000000aa", "status": "running", "kind": "mission", "TITLE": "as it was read",
  "camp": {"path": "/c", "branch": "b", "lock": [1, {"x": null}]},
  "herdr": {"pane": "w1:p1", "state_change_seq": 18446744073709551615, "epoch": 7},
  "decision": {"question": "q", "options": ["a"], "asked_by": {"who": "me"}},
  "session": {"pid": 1, "start": 2, "host": "h"},
  "evidence": {"state": "idle", "weight": 0.10},
  "amendments": [{"text": "one", "by": "x"}, {"text": "two", "by": "y"}, {"text": "two", "by": "z"}]
}`)
	_, err := s.Update(t.Context(), id, Running, func(t *Task) error {
		t.Status, t.Title, t.Decision, t.Evidence = Blocked, "new", nil, &Evidence{State: "working"}
		t.Camp.Branch = "other"
		t.Amendments = append(t.Amendments[1:], Amendment{Text: "three"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	data := must(os.ReadFile(s.path(id)))
	var got map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(got["updated_at"])); err != nil {
		t.Error(err)
	}
	delete(got, "updated_at")
	num := func(s string) json.Number { return json.Number(s) }
	want := map[string]any{
		"later": map[string]any{"big": num("12345678901234567890"), "s": "<&>"},
		"id":    id, "status": "blocked", "kind": "mission", "title": "new",
		"camp":       map[string]any{"path": "/c", "branch": "other", "lock": []any{num("1"), map[string]any{"x": nil}}},
		"herdr":      map[string]any{"pane": "w1:p1", "state_change_seq": num("18446744073709551615"), "epoch": num("7")},
		"session":    map[string]any{"pid": num("1"), "start": num("2"), "host": "h"},
		"evidence":   map[string]any{"state": "working", "weight": num("0.10")},
		"amendments": []any{map[string]any{"text": "two", "by": "y"}, map[string]any{"text": "two", "by": "z"}, map[string]any{"text": "three"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, data)
	}
	if again := get(t, s, id); again.Title != "new" || again.Camp.Branch != "other" || len(again.Amendments) != 3 {
		t.Errorf("read back %+v", again)
	}
}

func TestAStatusOfANewerVersionIsKept(t *testing.T) {
	s := open(t)
	const id = "00000000000000aa"
	write(t, s.path(id), `{"id":"00000000000000aa","status":"parked"}`)
	if _, err := s.Update(t.Context(), id, "parked", func(t *Task) error { t.Title = "x"; return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := s.Update(t.Context(), id, "parked", move(Running))
	if _, ok := errors.AsType[*BadMove](err); !ok || get(t, s, id).Status != "parked" {
		t.Errorf("%v", err)
	}
}

func TestARefusedPromptIsTakenBack(t *testing.T) {
	s := open(t)
	before := add(t, s, Task{Status: Shipped, Head: "old", Herdr: &Herdr{StateChangeSeq: 3}, Note: "its last words"})
	prompt := func() Task {
		changed, err := s.Update(t.Context(), before.ID, get(t, s, before.ID).Status, func(t *Task) error {
			t.Status, t.Head, t.PromptedAt, t.Herdr.StateChangeSeq, t.Note = Running, "new", time.Now(), 4, ""
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	changed := prompt()
	// The sentinel may have looked meanwhile.
	if _, err := s.Update(t.Context(), before.ID, Running, func(t *Task) error { t.DialogSince = time.Now(); return nil }); err != nil {
		t.Fatal(err)
	}
	got, err := s.Restore(t.Context(), changed, before)
	if err != nil {
		t.Fatal(err)
	}
	want := before
	want.UpdatedAt = got.UpdatedAt
	if diff := cmp.Diff(want, get(t, s, before.ID)); diff != "" || !got.UpdatedAt.After(changed.UpdatedAt) {
		t.Error(diff)
	}
	// What has come to its end since stays at it, and so does what was prompted once more.
	for _, since := range []func(){
		func() { must(s.Update(t.Context(), before.ID, Running, move(Done))) },
		func() { must(s.Update(t.Context(), before.ID, Running, move(Done))); prompt() },
	} {
		changed = prompt()
		since()
		is := get(t, s, before.ID)
		_, err := s.Restore(t.Context(), changed, before)
		if _, ok := errors.AsType[*Conflict](err); !ok || get(t, s, before.ID).Status != is.Status || get(t, s, before.ID).PromptedAt != is.PromptedAt {
			t.Errorf("restored over %s: %v", is.Status, err)
		}
	}
}

func TestARecordThatCannotBeReadSaysWhatHelps(t *testing.T) {
	s := open(t)
	id := "0123456789abcdef"
	path := s.path(id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for want, put := range map[string]func() error{
		"unexpected end of JSON input":  func() error { return os.WriteFile(path, []byte("{"), 0o600) },
		"a link, which is not followed": func() error { return os.Symlink("/etc/passwd", path) },
		"not a regular file":            func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Get(id)
		bad, ok := errors.AsType[*Unreadable](err)
		if !ok || err.Error() != "task "+id+": "+want || !strings.Contains(bad.Hint(), path) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnIDIsQuotedUnlessItIsOne(t *testing.T) {
	for id, want := range map[string]string{
		"01": `task 01: there is none`, "": `task "": there is none`, "a\x1b[2J": `task "a\x1b[2J": there is none`,
		strings.Repeat("x", 5000): `task "` + strings.Repeat("x", 40) + `": there is none`,
	} {
		if got := (&NotFound{id}).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
