package sentinel

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/lock"
	"vx/internal/task"
)

// troubled are the soldiers of a herdr that something happens to: one that works on, one that ends meanwhile, and one
// that is gone meanwhile.
type troubled struct {
	*world
	works, ends, goes *worker
}

func inTrouble(t *testing.T) *troubled {
	w := newWorld(t)
	f := &troubled{w, w.dispatch("works"), w.dispatch("ends"), w.dispatch("goes")}
	f.works.commit(f.works.camp) // half of its work: a proof that proves no end
	w.start()
	w.passes(12 * time.Second)
	return f
}

// settles checks that what happened is told once the trouble is over, and that nothing else was.
func (f *troubled) settles(ended, gone task.Status) {
	f.t.Helper()
	f.ends.becomes(ended)
	f.goes.becomes(gone)
	if got := f.works.task(); got.Status != task.Running {
		f.t.Errorf("what works on is %s: %s", got.Status, got.Note)
	}
	f.works.finish("Done.")
	f.works.becomes(task.Done)
	told := map[string][]string{}
	f.until("three wakes", func() bool { return len(f.listen(f.shop)) >= 3 })
	for _, k := range f.listen(f.shop) {
		told[k.TaskID] = append(told[k.TaskID], k.OldStatus+" -> "+k.NewStatus)
	}
	for s, want := range map[*worker]task.Status{f.works: task.Done, f.ends: ended, f.goes: gone} {
		if got := strings.Join(told[s.id], ", "); got != "running -> "+string(want) {
			f.t.Errorf("told %q of one that became %s", got, want)
		}
	}
}

func TestAFrozenHerdrIsUnknownForAsLongAsItIsFrozen(t *testing.T) {
	f := inTrouble(t)
	f.herdr.Freeze()
	f.ends.finish("Done.")
	f.goes.Gone()
	f.works.stays(task.Running, 60*time.Second)
	for _, s := range []*worker{f.ends, f.goes} {
		if got := s.task(); got.Status != task.Running {
			t.Errorf("%s while it was frozen", got.Status)
		}
	}
	f.herdr.Thaw()
	f.settles(task.Done, task.Interrupted)
}

func TestAHerdrThatSpeaksGarbageIsUnknown(t *testing.T) {
	for name, fault := range map[string]herdrtest.Fault{
		"garbage":   {Line: []byte("\x00\xff%% not json\n")},
		"half":      {Half: true},
		"nothing":   {Drop: true},
		"no agents": {Line: []byte(`{"id":"agent.list","result":{"type":"agent_list"}}`)},
		"statuses":  {Status: "levitating"},
	} {
		t.Run(name, func(t *testing.T) {
			f := inTrouble(t)
			lift := f.herdr.Inject(fault)
			f.ends.finish("Done.")
			f.passes(30 * time.Second)
			for _, s := range []*worker{f.works, f.ends, f.goes} {
				if got := s.task(); got.Status != task.Running {
					t.Errorf("%s: %s", got.Status, got.Note)
				}
			}
			lift()
			f.goes.Gone()
			f.settles(task.Done, task.Interrupted)
		})
	}
}

func TestASocketThatIsGoneOrStaleIsUnknown(t *testing.T) {
	for name, stop := range map[string]func(*herdrtest.Server){"gone": (*herdrtest.Server).Stop, "stale": (*herdrtest.Server).Stale} {
		t.Run(name, func(t *testing.T) {
			f := inTrouble(t)
			stop(f.herdr)
			f.ends.finish("Done.")
			f.works.stays(task.Running, 60*time.Second)
			f.herdr.Start()
			f.ends.stays(task.Running, 13*time.Second) // another life of the socket
			f.goes.Gone()
			f.settles(task.Done, task.Interrupted)
		})
	}
}

func TestAHandoverDecidesNothing(t *testing.T) {
	f := inTrouble(t)
	f.herdr.SetProfile(22)
	f.herdr.Handoff(8 * time.Second)
	f.ends.finish("Done.")
	f.goes.Gone()
	f.works.stays(task.Running, 14*time.Second)
	f.settles(task.Done, task.Interrupted)
}

// What herdr makes of its agents after a restart, all of them cut off in the middle of their work with a commit made, must
// never look like an end.
func TestARestartIsNoEnd(t *testing.T) {
	for after, want := range map[herdrtest.After][]task.Status{
		herdrtest.Resumed:  {task.Unconfirmed},
		herdrtest.Nameless: {task.Unconfirmed},
		herdrtest.Shells:   {task.Interrupted},
		herdrtest.Names:    {task.Running},
		herdrtest.Ghosts:   {task.Unconfirmed, task.Interrupted},
	} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			w := newWorld(t)
			a := w.dispatch("a")
			a.commit(a.camp)
			w.start()
			w.passes(15 * time.Second)
			w.herdr.Restart(after)
			a.stays(task.Running, 14*time.Second)
			end := time.Now().Add(60 * time.Second / speed)
			for time.Now().Before(end) {
				if got := a.task(); got.Status == task.Done {
					t.Fatalf("done: %+v", got.Evidence)
				}
				time.Sleep(20 * time.Millisecond)
			}
			if len(want) == 1 {
				a.becomes(want[0])
			}
		})
	}
}

func TestAnAgentThatHerdrForgetsForAMomentIsNotGone(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(12 * time.Second)
	gone := herdrtest.Fault{Method: "pane.get", Error: &herdrtest.Error{Code: "pane_not_found", Message: "no such pane"}}
	for range 5 {
		a.Hide(true)
		lift := w.herdr.Inject(gone)
		w.until("it is missed", func() bool { return !a.task().AgentNotFoundSince.IsZero() })
		a.Hide(false)
		lift()
		w.until("it is not missed any more", func() bool { return a.task().AgentNotFoundSince.IsZero() })
	}
	if got := a.task(); got.Status != task.Running || !got.AgentNotFoundSince.IsZero() {
		t.Errorf("%s, %v", got.Status, got.AgentNotFoundSince)
	}
}

func TestAReadingThatNeverComesDoesNotHoldUpTheEndForEver(t *testing.T) {
	w := newWorld(t)
	a, b := w.dispatch("a"), w.dispatch("b")
	lift := w.herdr.Inject(herdrtest.Fault{
		Method: "pane.read", Drop: true, When: func(r herdrtest.Request) bool { return r.Param("pane_id") == a.ID },
	})
	defer lift()
	w.start()
	w.passes(12 * time.Second)
	a.finish("Done.")
	b.finish("Done.")
	b.becomes(task.Done)
	got := a.becomes(task.Done)
	if !strings.Contains(got.Output, "could not be read (no answer)") {
		t.Errorf("output %q", got.Output)
	}
}

func TestWhatLastedBeforeAHerdrFrozeDoesNotCountAfterwards(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(12 * time.Second)
	a.Hide(true)
	lift := w.herdr.Inject(herdrtest.Fault{Method: "pane.get", Error: &herdrtest.Error{Code: "pane_not_found", Message: "no such pane"}})
	defer lift()
	w.until("it is missed", func() bool { return !a.task().AgentNotFoundSince.IsZero() })
	w.herdr.Freeze()
	w.passes(60 * time.Second)
	w.herdr.Thaw()
	asked := len(w.herdr.Requests("pane.get"))
	w.until("it is missed again", func() bool { return len(w.herdr.Requests("pane.get")) > asked })
	a.Hide(false)
	a.stays(task.Running, 20*time.Second)
}

func TestASoldierThatGoesOnWhileItsPaneIsReadIsLetAlone(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(12 * time.Second)
	moved := make(chan struct{})
	var once sync.Once
	lift := w.herdr.Inject(herdrtest.Fault{Method: "pane.read", When: func(herdrtest.Request) bool {
		once.Do(func() {
			go func() {
				time.Sleep(between / speed / 3)
				a.Working()
				close(moved)
			}()
		})
		return false
	}})
	defer lift()
	a.finish("Nearly done.")
	<-moved
	a.stays(task.Running, 20*time.Second)
	if n := len(w.herdr.Requests("pane.read")); n != 1 {
		t.Errorf("read %d times", n)
	}
}

// After both, neither the pane's id nor the terminal's is what the task knows. The old id of a pane is an alias.
func TestAPaneThatWasMovedAfterARestartIsFollowed(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(12 * time.Second)
	w.herdr.Restart(herdrtest.Resumed)
	was := a.ID
	w.move(was)
	w.until("the task knows the new id", func() bool { return a.task().Herdr.Pane != was })
	a.Working()
	w.passes(10 * time.Second)
	a.finish("Done.")
	a.becomes(task.Done)
	w.told("running -> done")
}

// move moves a pane to a workspace of its own, as a user does.
func (w *world) move(pane string) {
	w.t.Helper()
	c, err := net.Dial("unix", w.herdr.Socket)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, `{"id":"m","method":"pane.move","params":{"pane_id":%q,"destination":{"type":"new_workspace","label":"other"}}}`+"\n", pane)
	if answer, err := io.ReadAll(c); err != nil || !strings.Contains(string(answer), `"changed":true`) {
		w.t.Fatalf("%s, %v", answer, err)
	}
}

// Whoever holds it is frozen, say; of all the tasks of that project only one is tried a sweep.
func TestALockThatIsHeldDelaysOnlyItsOwnProject(t *testing.T) {
	w := newWorld(t)
	other := w.project("other")
	var stuck []*worker
	for i := range 8 {
		stuck = append(stuck, w.dispatchIn(w.herdr, w.shop, fmt.Sprint("a", i)))
	}
	free := w.dispatchIn(w.herdr, other, "free")
	w.start()
	w.passes(12 * time.Second)
	l, err := lock.Try(w.shop.Join("tasks", ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stuck {
		s.Unknown() // which the sweep itself writes down
	}
	w.passes(20 * time.Second) // the first is being tried
	free.finish("Done.")
	w.until("the other project's task is done", func() bool {
		got, err := task.Open(other).Get(free.id)
		return err == nil && got.Status == task.Done
	})
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	for _, s := range stuck {
		s.finish("Done.")
		s.becomes(task.Done)
	}
}

func TestACommanderThatIsNoPlaceIsToldWhereTheTaskIs(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a", func(t *task.Task) { t.CommanderProject = "../elsewhere" })
	w.start()
	w.passes(12 * time.Second)
	a.finish("Done.")
	w.told("running -> done")
}
