package dispatch

import (
	"os"
	"testing"

	"vx/internal/herdr/herdrtest"
	"vx/internal/task"
)

// killed gives an order, and is the task as the order's end by a SIGKILL would have left it when its agent starts.
func (w *world) killed(order func() (Result, error)) (t task.Task, pane string) {
	w.Helper()
	var record []byte
	path := ""
	w.herdr.OnLaunch("claude", func(p *herdrtest.Pane, l herdrtest.Launch) []herdrtest.Step {
		path = w.Project.Join("tasks", l.Env["VX_TASK"]+".json")
		var err error
		if record, err = os.ReadFile(path); err != nil {
			w.Error(err)
		}
		return []herdrtest.Step{{State: herdrtest.Idle, Screen: idleScreen}}
	})
	r, err := order()
	if err != nil {
		w.Fatal(err)
	}
	p := w.herdr.Pane(r.Task.Herdr.Pane)
	w.until("the prompt arrives", func() bool { return len(p.Prompts()) > 0 })
	p.Idle()
	w.write(path, string(record))
	return w.get(r.Task.ID), r.Task.Herdr.Pane
}

func TestADispatchThatWasKilledIsStruckWithItsPane(t *testing.T) {
	w := newWorld(t)
	was, pane := w.killed(func() (Result, error) { return w.Dispatch(t.Context(), Order{Prompt: "x"}) })
	if was.Status != task.Pending || was.Herdr == nil || was.Herdr.Pane != pane {
		t.Fatalf("it left %+v in %+v", was, was.Herdr)
	}
	if _, err := w.Strike(t.Context(), was.ID, false); err != nil {
		t.Fatal(err)
	}
	w.struckAway(was)
}

func TestARedispatchThatWasKilledIsNotForgotten(t *testing.T) {
	w := newWorld(t)
	was, old := w.dispatched(Order{})
	old.Gone()
	w.become(was, task.Interrupted)
	was, pane := w.killed(func() (Result, error) { return w.Redispatch(t.Context(), was.ID, nil) })
	if was.Status != task.Interrupted || was.Herdr.Pane != pane || len(was.Redispatches) != 0 {
		t.Fatalf("it left %+v in %+v", was, was.Herdr)
	}
	_, err := w.Redispatch(t.Context(), was.ID, nil)
	w.refused(err, "still, in pane "+pane, "close that pane")
	w.herdr.Pane(pane).Close()
	if _, err := w.Redispatch(t.Context(), was.ID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Strike(t.Context(), was.ID, true); err != nil {
		t.Fatal(err)
	}
}

func TestAPaneThatIsClosedDuringADispatchIsNotMissedInTheUndoing(t *testing.T) {
	w := newWorld(t)
	if err := w.Project.Ensure(); err != nil {
		t.Fatal(err)
	}
	before := w.everything()
	w.herdr.OnLaunch("claude", func(p *herdrtest.Pane, _ herdrtest.Launch) []herdrtest.Step {
		return []herdrtest.Step{{Do: (*herdrtest.Pane).Close}}
	})
	_, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
	w.refused(err, "it ended at once")
	if after := w.everything(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
