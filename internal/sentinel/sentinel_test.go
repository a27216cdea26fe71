package sentinel

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/herdr/herdrtest"
	"vx/internal/soldier"
	"vx/internal/task"
)

func client(srv *herdrtest.Server) *herdr.Client { return &herdr.Client{Socket: srv.Socket} }

func TestTheCommanderIsToldOfAnEndWithAProof(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	a.stays(task.Running, 15*time.Second)
	a.finish("All is well.")
	got := a.becomes(task.Done)
	told := w.told("running -> done")
	if told[0].TaskID != a.id || told[0].Title != "Task a" || told[0].Detail != "" {
		t.Errorf("told %+v", told[0])
	}
	if !strings.Contains(got.Output, "All is well.") {
		t.Errorf("output %q", got.Output)
	}
	if e := got.Evidence; e == nil || e.State != "idle" || e.By != "own line" || len(e.Says) != 2 {
		t.Errorf("evidence %+v", e)
	}
	for _, r := range w.herdr.Requests("pane.read") {
		if r.Param("source") != "detection" {
			t.Errorf("read %s", r.Params)
		}
	}
}

func TestAReportIsAScoutsProof(t *testing.T) {
	w := newWorld(t)
	report := t.TempDir() + "/report.md"
	a := w.dispatch("a", func(t *task.Task) { t.Kind, t.ReportPath = "scout", report })
	w.start()
	w.passes(10 * time.Second)
	if err := os.WriteFile(report, []byte("found it"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.rest("See the report.")
	a.becomes(task.Done)
	if told := w.told("running -> done"); told[0].Refs[0] != report {
		t.Errorf("refs %q", told[0].Refs)
	}
}

func TestAnEndWithoutProofIsUnconfirmedAndSaysWhy(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	a.rest("I am stuck.")
	a.stays(task.Running, 15*time.Second)
	a.becomes(task.Unconfirmed)
	told := w.told("running -> unconfirmed")
	for _, want := range []string{"pane is idle", "no commit nor report", "I am stuck."} {
		if !strings.Contains(told[0].Detail, want) {
			t.Errorf("detail %q lacks %q", told[0].Detail, want)
		}
	}
}

func TestAQuestionIsToldWithItsWords(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	a.Show(" work\n\n" + screen("needs-decision: Postgres or SQLite?"))
	a.Idle()
	a.becomes(task.Blocked)
	if told := w.told("running -> blocked"); !strings.Contains(told[0].Detail, "Postgres or SQLite?") {
		t.Errorf("detail %q", told[0].Detail)
	}
}

func TestADialogIsToldOnceAndTheTaskRunsOn(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	a.Show("May I run rm?\n")
	a.Blocked()
	told := w.told("dialog")
	if told[0].Dialog != "pane "+a.ID || !strings.Contains(told[0].Detail, "May I run rm?") {
		t.Errorf("told %+v", told[0])
	}
	a.stays(task.Running, 20*time.Second)
	a.Working()
	w.until("the stamp is cleared", func() bool { return a.task().DialogSince.IsZero() })
	a.finish("Done.")
	a.becomes(task.Done)
	w.told("dialog", "running -> done")
}

func TestAnAgentThatIsGoneIsInterrupted(t *testing.T) {
	for name, end := range map[string]func(*herdrtest.Pane){"it exits": (*herdrtest.Pane).Exit, "its pane is closed": (*herdrtest.Pane).Close} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.dispatch("a")
			w.start()
			w.passes(12 * time.Second)
			end(a.Pane)
			a.becomes(task.Interrupted)
			if told := w.told("running -> interrupted"); told[0].Detail == "" {
				t.Error("no word why")
			}
		})
	}
}

func TestAFinishedSoldierThatWorksAgainRunsWithoutAWake(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	a.finish("Done.")
	a.becomes(task.Done)
	w.told("running -> done")
	a.Working()
	a.becomes(task.Running)
	a.rest("I added nothing.")
	a.becomes(task.Unconfirmed)
	w.told("running -> done", "running -> unconfirmed")
	a.Working()
	a.becomes(task.Running)
	a.finish("Done again.")
	a.becomes(task.Done)
	w.told("running -> done", "running -> unconfirmed", "running -> done")
}

func TestAStruckTaskIsNotTakenUp(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	a.finish("Done.")
	a.becomes(task.Done)
	if err := os.RemoveAll(a.camp); err != nil {
		t.Fatal(err)
	}
	a.Working()
	a.stays(task.Done, 20*time.Second)
}

func TestOneRequestASweepHoweverManyTasks(t *testing.T) {
	w := newWorld(t)
	w.dispatch("a")
	w.dispatch("b")
	c := w.dispatch("c")
	w.start()
	w.passes(15 * time.Second)
	before, all := len(w.herdr.Requests("agent.list")), len(w.herdr.Requests(""))
	info, err := os.Stat(w.shop.Join("tasks", c.id+".json"))
	if err != nil {
		t.Fatal(err)
	}
	sweeps := w.sweeps.Load()
	w.until("ten sweeps", func() bool { return w.sweeps.Load() >= sweeps+10 })
	lists, others := len(w.herdr.Requests("agent.list"))-before, len(w.herdr.Requests(""))-all
	if lists < 3 || lists > 12 || others != lists {
		t.Errorf("%d lists and %d requests in ten sweeps", lists, others)
	}
	if now, err := os.Stat(w.shop.Join("tasks", c.id+".json")); err != nil || !now.ModTime().Equal(info.ModTime()) {
		t.Errorf("a task in which nothing changed was written: %v", err)
	}
}

func TestAHungSocketDelaysOnlyItsOwnTasks(t *testing.T) {
	w := newWorld(t)
	other := herdrtest.New(t, herdrtest.Options{Speed: speed})
	a := w.dispatch("a")
	b := w.dispatchIn(other, w.shop, "b")
	w.start()
	w.passes(12 * time.Second)
	other.Freeze()
	b.finish("Done.")
	a.finish("Done.")
	a.becomes(task.Done)
	if got := b.task(); got.Status != task.Running {
		t.Errorf("the frozen one is %s", got.Status)
	}
	other.Thaw()
	b.becomes(task.Done)
	w.told("running -> done", "running -> done")
}

func TestTheCommanderMayBeInAnotherProject(t *testing.T) {
	w := newWorld(t)
	notes := w.project("notes")
	a := w.dispatch("a", func(t *task.Task) { t.CommanderProject, t.CommanderPane = notes.Root, "w1:p9" })
	w.start()
	w.passes(10 * time.Second)
	a.finish("Done.")
	a.becomes(task.Done)
	w.until("the wake", func() bool { return len(w.listen(notes)) > 0 })
	if told := w.listen(notes)[0]; told.Origin != w.shop.Root || told.To == nil || told.To.Pane != "w1:p9" {
		t.Errorf("told %+v", told)
	}
	if own := w.listen(w.shop); len(own) != 1 {
		t.Errorf("told here too: %+v", own)
	}
}

func TestWhereDetectionIsRefusedTheVisiblePartIsReadAndTheNoteSaysSo(t *testing.T) {
	w := newWorld(t)
	lift := w.herdr.Inject(herdrtest.Fault{
		Method: "pane.read", Error: &herdrtest.Error{Code: "invalid_params", Message: "unknown source"},
		When: func(r herdrtest.Request) bool { return r.Param("source") == "detection" },
	})
	defer lift()
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	a.finish("Done.")
	got := a.becomes(task.Done)
	if !strings.Contains(got.Output, "Done.") || !strings.Contains(got.Output, "the visible part") {
		t.Errorf("output %q", got.Output)
	}
}

func TestAPaneThatNeverRestsIsDecidedAllTheSame(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	ticks, stop := time.NewTicker(10*time.Millisecond), make(chan struct{})
	defer close(stop)
	a.commit(a.camp)
	a.rest("0")
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case at := <-ticks.C:
				a.Show(screen("It is " + at.String()))
			}
		}
	}()
	got := a.becomes(task.Done)
	if !strings.Contains(got.Output, "had not come to rest") {
		t.Errorf("output %q", got.Output)
	}
}

func TestAPauseHoldsAndItsEndIsTold(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	if err := os.MkdirAll(w.shop.Join("pauses"), 0o700); err != nil {
		t.Fatal(err)
	}
	pause := w.shop.Join("pauses", a.id)
	if err := os.WriteFile(pause, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.rest("I wait for the build.")
	w.until("the pause is seen", func() bool { return !a.task().PauseSeenAt.IsZero() })
	a.stays(task.Running, 40*time.Second)
	if err := os.Remove(pause); err != nil {
		t.Fatal(err)
	}
	a.becomes(task.Unconfirmed)
	if told := w.told("running -> unconfirmed"); !strings.Contains(told[0].Detail, "declared a pause that is gone") {
		t.Errorf("detail %q", told[0].Detail)
	}
}

func TestAPaneThatWasMovedIsFollowed(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a", func(t *task.Task) { t.Herdr.Pane = "w1:p77" }) // as it was called before
	w.start()
	w.until("the task knows the new id", func() bool { return a.task().Herdr.Pane == a.ID })
	if !task.Soldier(w.shop, "w1:p77", w.herdr.Socket) {
		t.Error("what was started in it before the move is no soldier's any more")
	}
	w.passes(10 * time.Second)
	a.finish("Done.")
	a.becomes(task.Done)
}

func TestAnEndDuringTheSentinelsAbsenceIsFound(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(10 * time.Second)
	w.end()
	a.finish("Done.")
	w.start()
	a.becomes(task.Done)
	w.told("running -> done")
}

func TestAWholeTurnThatNobodySawIsFound(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	a.finish("Done.")
	w.start()
	a.becomes(task.Done)
	w.told("running -> done")
}

func TestATaskThatWasPromptedMeanwhileIsNotDecided(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	judged := a.task()
	_, err := w.tasks.Update(context.Background(), a.id, task.Running, func(t *task.Task) error {
		t.PromptedAt = t.PromptedAt.Add(time.Minute)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSentinel(Config{Dir: w.dir, Log: nullLog()}, 1)
	l := &look{sentinel: s, watch: &watch{project: &project{Project: w.shop, tasks: w.tasks}, task: &judged}}
	l.apply(context.Background(), &soldier.Verdict{To: task.Done})
	if got := a.task(); got.Status != task.Running || len(w.listen(w.shop)) > 0 {
		t.Errorf("%s", got.Status)
	}
}

func TestTheSentinelEndsAtOnceThoughALookIsUnderWay(t *testing.T) {
	w := newWorld(t)
	a := w.dispatch("a")
	w.start()
	w.passes(12 * time.Second)
	lift := w.herdr.Inject(herdrtest.Fault{Method: "pane.read", Hang: true})
	defer lift()
	a.finish("Done.")
	w.until("the pane is read", func() bool { return len(w.herdr.Requests("pane.read")) > 0 })
	ended := make(chan struct{})
	go func() { w.end(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(soon):
		t.Fatal("it goes on")
	}
	if got := a.task(); got.Status != task.Running {
		t.Errorf("%s by half a look", got.Status)
	}
}

func TestOverEndsTheSentinelAfterASweep(t *testing.T) {
	w := newWorld(t)
	n := 0
	s := newSentinel(Config{Dir: w.dir, Log: nullLog(), Over: func() string { n++; return map[bool]string{true: "replaced"}[n == 3] }}, 100)
	if err := s.run(context.Background()); err != nil || n != 3 {
		t.Errorf("%v after %d sweeps", err, n)
	}
}
