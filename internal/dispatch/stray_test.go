package dispatch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/herdr/herdrtest"
	"vx/internal/task"
)

// tab makes a tab as a start does that is killed before it has written the pane down.
func (w *world) tab(label string) *herdrtest.Pane {
	w.Helper()
	p, err := (&herdr.Client{Socket: w.herdr.Socket}).CreateTab(w.Context(), herdr.Tab{Label: label, CWD: w.repo})
	if err != nil {
		w.Fatal(err)
	}
	pane := w.herdr.Pane(p.PaneID)
	pane.ShellPID(7)
	pane.Foreground(herdrtest.Process{PID: 7, Name: "bash"})
	return pane
}

// nextOf is what the tab of the task's next soldier is called.
func nextOf(t task.Task) string {
	t.Redispatches = append(slices.Clone(t.Redispatches), time.Now())
	return agentOf(t)
}

func TestAStrikeClosesThePaneOfAStartThatWasKilledBeforeItWasWrittenDown(t *testing.T) {
	w := newWorld(t)
	var back undoing
	was, err := w.enter(t.Context(), task.Task{Kind: "mission", Prompt: "x", Title: "x", Agent: "claude", Camp: &task.Camp{Base: "main"}}, &back)
	if err != nil {
		t.Fatal(err)
	}
	stray := w.tab(agentOf(was))
	for name, other := range map[string]*herdrtest.Pane{
		"of another name": w.tab("x-00000000"),
		"with an agent": func() *herdrtest.Pane {
			p := w.tab(agentOf(was))
			w.herdr.Agent(herdrtest.Agent{Beside: p})
			return p
		}(),
		"in which something runs": func() *herdrtest.Pane {
			p := w.tab(agentOf(was))
			p.Foreground(herdrtest.Process{PID: 8, Name: "vim"})
			return p
		}(),
		"of a successor, who is none of a dispatch": w.tab(nextOf(was)),
	} {
		defer func() {
			if !w.paneStands(other.ID) {
				t.Errorf("the tab %s was closed", name)
			}
		}()
	}
	r, err := w.Strike(t.Context(), was.ID, false)
	if err != nil || !strings.Contains(r.Did, "closed pane "+stray.ID) || w.paneStands(stray.ID) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestARedispatchClosesThePaneOfTheOneThatWasKilled(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{})
	pane.Gone()
	was = w.become(was, task.Interrupted)
	stray := w.tab(nextOf(was))
	r, err := w.Redispatch(t.Context(), was.ID, nil)
	if err != nil || w.paneStands(stray.ID) || !w.paneStands(r.Task.Herdr.Pane) {
		t.Errorf("%+v, %v; the stray stands: %v", r, err, w.paneStands(stray.ID))
	}
}

func TestAPaneThatMayBeLeftIsToldOf(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{})
	pane.Gone()
	was = w.become(was, task.Interrupted)
	w.tab(nextOf(was))
	w.herdr.Inject(herdrtest.Fault{Method: "tab.list", Error: &herdrtest.Error{Code: "internal_error", Message: "no"}})
	r, err := w.Strike(t.Context(), was.ID, true)
	if err != nil {
		t.Fatal(err)
	}
	w.warned(r, "may be left in herdr")
}

func TestThePaneThatHerdrCouldNotCloseIsClosedByTheNextStrike(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{})
	lift := w.herdr.Inject(herdrtest.Fault{Method: "pane.get", Drop: true})
	r, err := w.Strike(t.Context(), was.ID, true)
	if err != nil || r.Task.Status != task.Struck || isDir(was.Camp.Path) {
		t.Fatalf("%+v, %v", r, err)
	}
	w.warned(r, "pane "+pane.ID+" was left open, with what runs in it")
	w.warned(r, "vx strike "+Short(was.ID))

	_, err = w.Strike(t.Context(), was.ID, true)
	w.refused(err, "struck already", "pane "+pane.ID+" was left open")
	lift()
	_, err = w.Strike(t.Context(), was.ID, false)
	w.refused(err, "claude is working in its pane "+pane.ID, "--force")
	if r, err = w.Strike(t.Context(), was.ID, true); err != nil || !strings.HasSuffix(r.Did, ": closed pane "+pane.ID) {
		t.Errorf("%+v, %v", r, err)
	}
	w.struckAway(was)
	_, err = w.Strike(t.Context(), was.ID, true)
	w.refused(err, "struck already")
}
