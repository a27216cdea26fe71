package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// finish is a change that ends a turn.
func finish(as Status) func(*Task) (wake.Wake, error) {
	return func(t *Task) (wake.Wake, error) {
		t.Status = as
		return wake.Wake{}, nil
	}
}

// told drains a queue: what its commander is told, as "old -> new".
func told(t *testing.T, q *wake.Queue) (all []string) {
	t.Helper()
	for {
		d, err := q.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d == nil {
			return all
		}
		for _, w := range d.Wakes {
			all = append(all, w.OldStatus+" -> "+w.NewStatus)
		}
		if err := errors.Join(d.Note(wake.Recipient{}), d.Emit(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATransitionTellsTheCommander(t *testing.T) {
	s := open(t)
	dir := s.Project.State()
	notes := wake.Open(dir.Project("/home/u/notes"))
	task := add(t, s, Task{
		Kind: wake.KindScout, Status: Running, Title: "Look", ReportPath: "/r.md", Camp: &Camp{Path: "/c"},
		CommanderProject: "/home/u/notes", CommanderPane: "w1:p1",
	})
	done, err := s.Transition(t.Context(), task.ID, Running, notes, func(t *Task) (wake.Wake, error) {
		t.Status, t.Output = Done, "all of it"
		return wake.Wake{Detail: "it is well"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if saved := get(t, s, task.ID); done.Status != Done || saved.Status != Done || saved.WakeID != done.WakeID || saved.WakeProject != "/home/u/notes" {
		t.Errorf("saved %+v, returned %+v", saved, done)
	}
	d, err := notes.Claim(t.Context())
	if err != nil || d == nil || len(d.Wakes) != 1 {
		t.Fatalf("claimed %+v, %v", d, err)
	}
	defer d.Close()
	if w := d.Wakes[0]; w.ID != done.WakeID || w.Key != task.ID || w.To == nil || w.To.Pane != "w1:p1" || w.Detected.IsZero() {
		t.Errorf("the wake is %+v", w)
	}
	want := "\n- scout " + task.ID + ": running -> done\n    > Look\n    project: /home/u/shop\n    > it is well\n    see: /r.md\n    see: /c\n"
	if !strings.Contains(d.Text, want) {
		t.Errorf("told\n%s", d.Text)
	}
}

func TestADialogIsToldOfATaskThatGoesOn(t *testing.T) {
	s := open(t)
	q := wake.Open(s.Project)
	q.News = News(s.Project.State(), s.Project)
	task := add(t, s, Task{Status: Running})
	dialog := func(task *Task) (wake.Wake, error) {
		task.DialogSince = time.Now()
		return wake.Wake{Dialog: "pane w1:p2"}, nil
	}
	if _, err := s.Transition(t.Context(), task.ID, Running, q, dialog); err != nil {
		t.Fatal(err)
	}
	d, err := q.Claim(t.Context())
	if err != nil || d == nil || !strings.Contains(d.Text, "\n- mission "+task.ID+": waits at a dialog in pane w1:p2\n") || strings.Contains(d.Text, "->") {
		t.Fatalf("told %+v, %v", d, err)
	}
	if err := d.Release(t.Context(), "tried"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), task.ID, Running, func(t *Task) error { t.DialogSince = time.Time{}; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := told(t, q); len(got) != 0 {
		t.Errorf("told of a dialog that is gone: %v", got)
	}
}

// What has happened to a task since its wake was written.
func TestOnlyNewsIsTold(t *testing.T) {
	again := func(t *Task) { t.Status, t.PromptedAt = Running, time.Now() }
	for _, c := range []struct {
		name string
		end  Status
		then []func(*Task)
		why  string // "" for news
	}{
		{"nothing", Done, nil, ""},
		{"a note", Unconfirmed, []func(*Task){func(t *Task) { t.Note = "x" }}, ""},
		{"prompted", Done, []func(*Task){again}, "prompted since"},
		{"answered", Blocked, []func(*Task){func(t *Task) { again(t); t.Decision = &Decision{AnsweredAt: time.Now()} }}, "answered since"},
		{"dismissed", Blocked, []func(*Task){func(t *Task) { again(t); t.Decision = &Decision{Dismissed: true} }}, "dismissed since"},
		{"redispatched", Interrupted, []func(*Task){again}, "redispatched since"},
		{"seen working", Unconfirmed, []func(*Task){func(t *Task) { t.Status = Running }}, "at work again"},
		{"struck", Blocked, []func(*Task){func(t *Task) { t.Status = Struck }}, "camp struck"},
		{"landed", Done, []func(*Task){func(t *Task) { t.Status = Landed }}, "landed since"},
		{"shipped", Done, []func(*Task){func(t *Task) { t.Status = Shipped }}, "shipped since"},
		{"prompted, and at the same end by a hand", Done, []func(*Task){again, func(t *Task) { t.Status = Done }}, ""},
		{"at another end", Unconfirmed, []func(*Task){again, func(t *Task) { t.Status = Done }}, "done since"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			q := wake.Open(s.Project)
			q.News = News(s.Project.State(), s.Project)
			task := add(t, s, Task{Status: Running})
			now := must(s.Transition(t.Context(), task.ID, Running, q, finish(c.end)))
			for _, then := range c.then {
				now = must(s.Update(t.Context(), task.ID, now.Status, func(t *Task) error { then(t); return nil }))
			}
			got := told(t, q)
			if (len(got) == 1) != (c.why == "") {
				t.Errorf("told %v", got)
			}
			events := must(q.History(0))
			i := slices.IndexFunc(events, func(e wake.Event) bool { return e.Event == "dropped" })
			if c.why != "" && (i < 0 || events[i].Why != c.why) || c.why == "" && i >= 0 {
				t.Errorf("the history says %+v", events)
			}
		})
	}
}

func TestAnOldBellIsNotRungForTheNextRound(t *testing.T) {
	s := open(t)
	q := wake.Open(s.Project)
	task := add(t, s, Task{Status: Running})
	must(s.Transition(t.Context(), task.ID, Running, q, finish(Done)))
	d, err := q.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := d.Wakes[0]
	must(s.Update(t.Context(), task.ID, Done, func(t *Task) error { t.Status, t.PromptedAt = Running, time.Now(); return nil }))
	done := must(s.Transition(t.Context(), task.ID, Running, q, finish(Done)))
	news := News(s.Project.State(), s.Project)
	if why, err := news(&old); why != "prompted since" || err != nil {
		t.Errorf("the old one: %q, %v", why, err)
	}
	if err := d.Release(t.Context(), "tried"); err != nil {
		t.Fatal(err)
	}
	q.News = news
	if got := told(t, q); len(got) != 1 || done.WakeID == old.ID {
		t.Errorf("told %v", got)
	}
}

func TestWhatIsNotKnownIsNews(t *testing.T) {
	s := open(t)
	news := News(s.Project.State(), s.Project)
	const id = "00000000000000aa"
	w := wake.Wake{Kind: wake.KindMission, TaskID: id, NewStatus: "done"}
	for _, at := range []string{"", "/home/u/none"} {
		w.Origin = at
		if why, err := news(&w); why != "" || err != nil {
			t.Errorf("from %q: %q, %v", at, why, err)
		}
	}
	w.Origin = ""
	write(t, s.path(id), "{")
	if why, err := news(&w); why != "" || err == nil {
		t.Errorf("unreadable: %q, %v", why, err)
	}
	write(t, s.path(id), `{"id":"`+id+`","status":"struck"}`)
	if why, err := news(&w); why != "camp struck" || err != nil {
		t.Errorf("struck: %q, %v", why, err)
	}
	for _, w := range []wake.Wake{
		{Kind: wake.KindMessage, TaskID: id, NewStatus: "done"}, {Kind: wake.KindMission, TaskID: "../tasks/" + id, NewStatus: "done"},
		{Kind: wake.KindRun, TaskID: id, NewStatus: "failed"},
	} {
		if why, err := news(&w); why != "" || err != nil {
			t.Errorf("%+v: %q, %v", w, why, err)
		}
	}
}

func TestASoldiersPaneIsKnown(t *testing.T) {
	s := open(t)
	p := s.Project.State().Project("/home/u/notes")
	task := add(t, s, Task{Status: Running, FormerPanes: []string{"w2:p7"}, Herdr: &Herdr{Pane: "w1:p2", Socket: "/run/herdr.sock"}})
	for _, c := range []struct {
		pane, socket string
		want         bool
	}{
		{"w1:p2", "/run/herdr.sock", true}, {"w1:p2", "/run/./herdr.sock", true}, {"w1:p2", "", true},
		{"w2:p7", "/run/herdr.sock", true}, // as it was called before it was moved: its environment is of then
		{"w1:p2", "/run/other.sock", false}, {"w1:p3", "/run/herdr.sock", false}, {"", "", false},
	} {
		if got := Soldier(p, c.pane, c.socket); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, c := range []struct {
		status Status
		want   bool
	}{{Pending, true}, {Blocked, true}, {Done, true}, {Interrupted, false}, {Landed, false}, {Struck, false}} {
		write(t, s.path(task.ID), `{"id":"`+task.ID+`","status":"`+string(c.status)+`","herdr":{"pane":"w1:p2"}}`)
		if got := Soldier(p, "w1:p2", "/s"); got != c.want {
			t.Errorf("%s: %v", c.status, got)
		}
	}
}

func TestAWatchedClientIsKnown(t *testing.T) {
	s := open(t)
	p := s.Project.State().Project("/home/u/notes")
	task := add(t, s, Task{Status: Running, Session: &Session{PID: 7, Start: 70}})
	for client, want := range map[proc.ID]bool{{PID: 7, Start: 70}: true, {PID: 7, Start: 71}: false, {PID: 8, Start: 70}: false, {}: false} {
		if got := Watched(p, client); got != want {
			t.Errorf("%+v: %v", client, got)
		}
	}
	for status, want := range map[Status]bool{Blocked: true, Done: true, Unconfirmed: true, Interrupted: false, Struck: false} {
		write(t, s.path(task.ID), `{"id":"`+task.ID+`","status":"`+string(status)+`","session":{"pid":7,"start":70}}`)
		if got := Watched(p, proc.ID{PID: 7, Start: 70}); got != want {
			t.Errorf("%s: %v", status, got)
		}
	}
}

// A transition comes while the wake of the one before is still beside the queue, as a crash leaves it.
func TestTheWakeOfAnEarlierTransitionIsNotOvertaken(t *testing.T) {
	for _, where := range []string{"/home/u/shop", "/home/u/notes"} {
		s := open(t)
		task := add(t, s, Task{Status: Running})
		first := wake.Open(s.Project.State().Project(where))
		first.Before = func(at wake.Step) error {
			if at == wake.Entering {
				return errors.New("died")
			}
			return nil
		}
		saved, err := s.Transition(t.Context(), task.ID, Running, first, finish(Blocked))
		if err == nil || saved.Status != Blocked {
			t.Fatalf("%v, saved %+v", err, saved)
		}
		first.Before = nil
		must(s.Update(t.Context(), task.ID, Blocked, move(Running)))
		q := wake.Open(s.Project)
		must(s.Transition(t.Context(), task.ID, Running, q, finish(Done)))
		want := []string{"running -> done"}
		if where != "/home/u/shop" {
			if got := told(t, first); !slices.Equal(got, []string{"running -> blocked"}) {
				t.Errorf("the other project was told %v", got)
			}
		}
		if got := told(t, q); !slices.Equal(got, want) {
			t.Errorf("told %v", got)
		}
		if err := errors.Join(Recover(t.Context(), q, s.Project.State()), Recover(t.Context(), first, s.Project.State())); err != nil {
			t.Error(err)
		}
		if got := append(told(t, q), told(t, first)...); len(got) != 0 {
			t.Errorf("told once more: %v", got)
		}
	}
}

func TestWhatCannotBeJudgedStaysBesideTheQueue(t *testing.T) {
	s := open(t)
	q := wake.Open(s.Project)
	dir := s.Project.State()
	const id = "00000000000000aa"
	put := func(w wake.Wake) {
		w.ID, w.Key, w.TaskID, w.Kind = "w1", id, id, wake.KindScout
		if _, err := q.Aside(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	beside := func() int { return len(must(q.Asides())) }
	put(wake.Wake{Origin: "/home/u/none"})
	if err := Recover(t.Context(), q, dir); err == nil || beside() != 1 {
		t.Errorf("of a project that is gone: %v, %d beside", err, beside())
	}
	put(wake.Wake{})
	write(t, s.path(id), "{")
	if err := Recover(t.Context(), q, dir); err == nil || beside() != 1 {
		t.Errorf("of a task that cannot be read: %v, %d beside", err, beside())
	}
	if err := os.Remove(s.path(id)); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), q, dir); err != nil || beside() != 0 || len(told(t, q)) != 0 {
		t.Errorf("of a task that is not there: %v, %d beside", err, beside())
	}
	// What is not of a task is others' to judge.
	if _, err := q.Aside(t.Context(), wake.Wake{ID: "w1", Key: "s", TaskID: "s", Kind: wake.KindForum}); err != nil {
		t.Fatal(err)
	}
	if err := Recover(t.Context(), q, dir); err != nil || beside() != 1 {
		t.Errorf("of no task: %v, %d beside", err, beside())
	}
}

// What a failing disk does to a transition: it happened and is told, or it did not and is not.
func TestAFailureOfAnyStepLosesAndInventsNothing(t *testing.T) {
	for _, folding := range []bool{false, true} {
		for nth, count := 1, 1; nth <= count; nth++ {
			sc := newScene(t, folding, "")
			count = 0
			step := func(name string) error {
				if count++; count == nth {
					return &os.PathError{Op: name, Path: "x", Err: syscall.ENOSPC}
				}
				return nil
			}
			sc.q.Before = func(s wake.Step) error { return step(string(s)) }
			atomicfile.Before = func(s, path string) error { return step(s) }
			_, err := sc.s.Transition(t.Context(), sc.id, Running, sc.q, finish(Done))
			sc.q.Before, atomicfile.Before = nil, nil
			sc.judge(t, fmt.Sprintf("failed at step %d (%v)", nth, err))
			count++
		}
	}
}

// scene is a task at work, in a project whose commander waits in another one or in its own.
type scene struct {
	dir     *state.Dir
	s       *Store
	q       *wake.Queue
	id      string
	folding bool // a wake of the same task waits
}

func newScene(t *testing.T, folding bool, commander string) scene {
	t.Helper()
	s := open(t)
	sc := scene{s.Project.State(), s, wake.Open(s.Project), "", folding}
	if commander != "" {
		sc.q = wake.Open(sc.dir.Project(commander))
	}
	sc.id = add(t, s, Task{Status: Running, Title: "work"}).ID
	if folding {
		must(s.Transition(t.Context(), sc.id, Running, sc.q, finish(Blocked)))
		must(s.Update(t.Context(), sc.id, Blocked, move(Running)))
	}
	return sc
}

// judge recovers and counts.
func (sc scene) judge(t *testing.T, what string) {
	t.Helper()
	if err := Recover(t.Context(), sc.q, sc.dir); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var want []string
	if sc.folding {
		want = []string{"running -> blocked"}
	}
	is := get(t, sc.s, sc.id)
	if is.Status == Done {
		want = []string{"running -> done"}
	}
	if got := told(t, sc.q); !slices.Equal(got, want) {
		t.Errorf("%s: told %q, want %q", what, got, want)
	}
	if left := must(sc.q.Asides()); len(left) != 0 {
		t.Errorf("%s: %d are left beside the queue", what, len(left))
	}
}

// crashArg is the first argument of this binary as a process that crashes: what it does, the state directory, the project
// of the task and of the queue, the task, and how many steps it lives.
const crashArg = "crash"

func crash(args []string) int {
	dir, err := state.OpenAt(args[1])
	if err != nil {
		return 1
	}
	lives, _ := strconv.Atoi(args[5])
	step := func(name string) error {
		fmt.Println(name)
		if lives--; lives == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	q := wake.Open(dir.Project(args[3]))
	q.Before = func(s wake.Step) error { return step(string(s)) }
	atomicfile.Before = func(s, _ string) error { return step("file: " + s) }
	if args[0] == "recover" {
		err = Recover(context.Background(), q, dir)
	} else {
		_, err = Open(dir.Project(args[2])).Transition(context.Background(), args[4], Running, q, finish(Done))
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// die has a process do its work up to the nth step. It returns the step that it died at, "" if it lived.
func (sc scene) die(t *testing.T, what string, nth int) (step string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], crashArg, what, sc.dir.Path(), sc.s.Project.Root, sc.q.Project.Root, sc.id, strconv.Itoa(nth))
	out, err := cmd.Output()
	if err == nil {
		return ""
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("%s at step %d: %v: %s", what, nth, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func TestACrashAtAnyStepLosesAndInventsNothing(t *testing.T) {
	for _, c := range []struct {
		name      string
		folding   bool
		commander string
	}{{"alone", false, ""}, {"folding", true, ""}, {"in another project", true, "/home/u/notes"}} {
		t.Run(c.name, func(t *testing.T) {
			hit := map[string]int{}
			outcomes := map[Status]int{}
			for nth := 1; ; nth++ {
				sc := newScene(t, c.folding, c.commander)
				step := sc.die(t, "transition", nth)
				if step == "" {
					break
				}
				hit[step]++
				outcomes[get(t, sc.s, sc.id).Status]++
				// The one that mends it may die as well.
				if step == string(wake.Entering) || step == string(wake.SetAside) || step == string(wake.Folding) {
					for m := 1; ; m++ {
						sc := newScene(t, c.folding, c.commander)
						sc.die(t, "transition", nth)
						again := sc.die(t, "recover", m)
						if again == "" {
							break
						}
						sc.judge(t, fmt.Sprintf("died at %s (%d), and in the recovery at %s (%d)", step, nth, again, m))
					}
				}
				sc.judge(t, fmt.Sprintf("died at %s (%d)", step, nth))
			}
			want := []wake.Step{wake.Asiding, wake.Staging, wake.Staged, wake.SetAside, wake.Entering, wake.Put}
			if c.folding {
				want = append(want, wake.Folding)
			}
			for _, step := range want {
				if hit[string(step)] == 0 {
					t.Errorf("no process died at %s: %v", step, hit)
				}
			}
			if outcomes[Running] < 5 || outcomes[Done] < 3 {
				t.Errorf("outcomes %v", outcomes)
			}
		})
	}
}
