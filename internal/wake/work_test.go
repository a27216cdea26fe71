package wake

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vx/internal/state"
)

// work gives a project a task and a report.
func work(t *testing.T, q *Queue, id string) {
	t.Helper()
	for _, path := range []string{"tasks/" + id + ".json", "tasks/.lock", "tasks/." + id + ".json123", "reports/" + id + ".md"} {
		at := q.Project.Join(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(id), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProjectWithTasksIsNotRemovedUnlessForced(t *testing.T) {
	q := open(t)
	work(t, q, "a")
	if h, err := q.Holdings(); err != nil || h.Tasks != 1 || h.Empty() || len(h.Unknown) != 0 {
		t.Errorf("holdings %+v, %v", h, err)
	}
	var r *Refusal
	if err := q.Forget(t.Context(), false); !errors.As(err, &r) || !strings.Contains(r.Why, "tasks: 1") {
		t.Errorf("%v", err)
	}
	if err := q.Forget(t.Context(), true); err != nil || exists(q.Project.Dir) {
		t.Errorf("forced: %v", err)
	}
}

func TestACampIsNeverRemovedOrMovedWithItsProject(t *testing.T) {
	q := open(t)
	camp := q.Project.Join("camps", "a", "wakes", ".claimed", "t")
	if err := errors.Join(os.MkdirAll(camp, 0o700), os.WriteFile(filepath.Join(camp, "x.json"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if h, err := q.Holdings(); err != nil || h.Camps != 1 || h.Unsettled != 0 || h.Empty() {
		t.Errorf("holdings %+v, %v", h, err)
	}
	var r *Refusal
	if err := q.Forget(t.Context(), true); !errors.As(err, &r) || !strings.Contains(r.Why, "camps") {
		t.Errorf("forced: %v", err)
	}
	if !strings.Contains(r.Hint(), "move the repository back to "+state.Quote(q.Project.Root)) {
		t.Errorf("the project is gone, and the hint is %q", r.Hint())
	}
	here := inhabited(q.Project.State().Project(t.TempDir()), 1)
	if strings.Contains(here.Hint(), "move") || !strings.Contains(here.Hint(), "vx strike") {
		t.Errorf("the project is there, and the hint is %q", here.Hint())
	}
	r = nil
	if _, err := Move(t.Context(), q.Project, "/home/u/store"); !errors.As(err, &r) || !strings.Contains(r.Why, "camps") {
		t.Errorf("moved: %v", err)
	}
	if !exists(filepath.Join(camp, "x.json")) {
		t.Error("the camp is gone")
	}
}

func TestAMoveIntoAProjectTakesTasksAlong(t *testing.T) {
	q := open(t)
	to := sibling(t, q, "/home/u/store")
	work(t, q, "a")
	work(t, to, "b")
	if _, err := Move(t.Context(), q.Project, to.Project.Root); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"tasks/a.json", "tasks/b.json", "reports/a.md", "reports/b.md"} {
		if !exists(to.Project.Join(path)) {
			t.Errorf("%s is gone", path)
		}
	}
	if exists(q.Project.Dir) {
		t.Error("the old directory stands")
	}
}

// message gives a project one that waits and one that was acknowledged.
func message(t *testing.T, q *Queue, name string) {
	t.Helper()
	for _, path := range []string{"forum-inbox/.lock", "forum-inbox/" + name + ".json", "forum-inbox/acknowledged/" + name + ".json"} {
		at := q.Project.Join(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(q.Project.Root), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProjectWithFeedbackIsNotRemovedUnlessForced(t *testing.T) {
	q := open(t)
	message(t, q, "a")
	if h, err := q.Holdings(); err != nil || h.Messages != 1 || h.Empty() || len(h.Unknown) != 0 {
		t.Errorf("holdings %+v, %v", h, err)
	}
	var r *Refusal
	if err := q.Forget(t.Context(), false); !errors.As(err, &r) || !strings.Contains(r.Why, "messages that nobody has acknowledged: 1") {
		t.Errorf("%v", err)
	}
	if err := q.Forget(t.Context(), true); err != nil || exists(q.Project.Dir) {
		t.Errorf("forced: %v", err)
	}
}

func TestAMoveIntoAProjectTakesFeedbackAlong(t *testing.T) {
	q := open(t)
	to := sibling(t, q, "/home/u/store")
	message(t, q, "a")
	message(t, to, "a")
	if _, err := Move(t.Context(), q.Project, to.Project.Root); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"forum-inbox", oldMessages} {
		all, err := filepath.Glob(to.Project.Join(dir, "*.json"))
		if err != nil || len(all) != 2 {
			t.Errorf("%s holds %q, %v", dir, all, err)
		}
	}
	if exists(q.Project.Dir) {
		t.Error("the old directory stands")
	}
}

func TestOnlyAcknowledgedFeedbackIsRemovedForItsAge(t *testing.T) {
	q := open(t)
	message(t, q, "a")
	if err := q.Project.Ensure(); err != nil {
		t.Fatal(err)
	}
	if _, err := Collect(t.Context(), q.Project.State(), time.Hour, false); err != nil || !exists(q.Project.Join(oldMessages, "a.json")) {
		t.Errorf("young: %v", err)
	}
	if _, err := Collect(t.Context(), q.Project.State(), 0, false); err != nil {
		t.Fatal(err)
	}
	if exists(q.Project.Join(oldMessages, "a.json")) || !exists(q.Project.Join("forum-inbox", "a.json")) {
		t.Error("what was acknowledged is there, or what waits is not")
	}
}

func TestARecordThatWasLeftHalfWrittenIsCollected(t *testing.T) {
	q := open(t)
	message(t, q, "a")
	if err := q.Project.Ensure(); err != nil {
		t.Fatal(err)
	}
	tasks := q.Project.Join("tasks")
	left, kept := ".0123456789abcdef.json123456", []string{".lock", ".land.lock", "0123456789abcdef.json"}
	for _, name := range append(kept, left) {
		if err := errors.Join(os.MkdirAll(tasks, 0o700), os.WriteFile(filepath.Join(tasks, name), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c := &collector{ctx: t.Context(), now: time.Now().Add(interrupted - time.Hour), older: time.Hour}
	if c.collect(q.Project.State()); !exists(filepath.Join(tasks, left)) {
		t.Error("somebody may be at it still")
	}
	c.now = time.Now().Add(interrupted + time.Hour)
	if c.collect(q.Project.State()); exists(filepath.Join(tasks, left)) {
		t.Error("it is there still")
	}
	for _, name := range kept {
		if !exists(filepath.Join(tasks, name)) {
			t.Errorf("%s is gone", name)
		}
	}
}
