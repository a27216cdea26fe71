package dispatch

import (
	"os"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/task"
)

// elsewhere is another project with a commander in a pane, which the test's own parent is: from now on it gives the orders.
func (w *world) elsewhere() (p *state.Project, pane *herdrtest.Pane, client proc.ID) {
	w.Helper()
	notes := w.TempDir()
	w.git(notes, "init", "-q")
	pane = w.herdr.Agent(herdrtest.Agent{CWD: notes})
	client, err := proc.Find(os.Getppid())
	if err != nil {
		w.Fatal(err)
	}
	a, err := awaiter.Register(w.dir, w.dir.Project(notes), awaiter.Record{
		Process: proc.Self(), Project: notes, Client: client, Harness: "pi", Session: "s1", Pane: pane.ID, Socket: w.herdr.Socket, Since: time.Now(),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { a.Close() })
	w.env["HERDR_PANE_ID"] = pane.ID
	return w.dir.Project(notes), pane, client
}

func TestWhoeverGaveTheLastOrderIsWokenAndKnownInItsOwnProject(t *testing.T) {
	orders := map[string]struct {
		status task.Status
		give   func(w *world, id string) (Result, error)
	}{
		"dispatch":   {"", func(w *world, _ string) (Result, error) { return w.Dispatch(w.Context(), Order{Prompt: "x"}) }},
		"prompt":     {task.Done, func(w *world, id string) (Result, error) { return w.Prompt(w.Context(), id, "more") }},
		"decide":     {task.Blocked, func(w *world, id string) (Result, error) { return w.Decide(w.Context(), id, "yes") }},
		"dismiss":    {task.Blocked, func(w *world, id string) (Result, error) { return w.Dismiss(w.Context(), id) }},
		"redispatch": {task.Interrupted, func(w *world, id string) (Result, error) { return w.Redispatch(w.Context(), id, nil) }},
	}
	for name, o := range orders {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := ""
			if o.status != "" {
				was, _ := w.finished(o.status)
				id = was.ID
				if was.CommanderProject != w.repo {
					t.Fatalf("at first its commander was in %q", was.CommanderProject)
				}
				if o.status == task.Interrupted {
					w.herdr.Pane(was.Herdr.Pane).Close()
				}
			}
			notes, pane, client := w.elsewhere()
			r, err := o.give(w, id)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.get(r.Task.ID); got.CommanderProject != notes.Root || got.CommanderPane != pane.ID {
				t.Errorf("its commander is %q in %q", got.CommanderProject, got.CommanderPane)
			}
			if _, err := os.Stat(notes.Join("commanders")); err != nil {
				t.Error(err)
			}
			live, err := commander.Live(w.dir, notes)
			if err != nil || len(live) != 1 || live[0].Process != client || live[0].Harness != "pi" || live[0].Session != "s1" || live[0].Pane != pane.ID || live[0].Terminal == "" {
				t.Errorf("known are %+v, %v", live, err)
			}
			if _, err := os.Stat(w.dir.Project(w.repo).Join("commanders")); err == nil {
				t.Error("it is known where it only gives orders")
			}
		})
	}
}

func TestACommanderThatCannotBeRegisteredIsWokenAllTheSame(t *testing.T) {
	w := newWorld(t)
	notes, pane, _ := w.elsewhere()
	if err := notes.Ensure(); err != nil {
		t.Fatal(err)
	}
	w.write(notes.Join("commanders"), "no directory")
	r, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
	if err != nil || r.Task.CommanderProject != notes.Root || r.Task.CommanderPane != pane.ID {
		t.Errorf("%+v, %v", r.Task, err)
	}
	w.warned(r, "register commander")
}

func TestOutsideOfHerdrNobodyBecomesKnown(t *testing.T) {
	w := newWorld(t)
	notes, _, _ := w.elsewhere()
	delete(w.env, "HERDR_PANE_ID")
	if r, err := w.Dispatch(t.Context(), Order{Prompt: "x"}); err != nil || r.Task.CommanderProject != "" {
		t.Errorf("%+v, %v", r.Task, err)
	}
	for _, p := range []*state.Project{notes, w.dir.Project(w.repo)} {
		if _, err := os.Stat(p.Join("commanders")); err == nil {
			t.Errorf("somebody is known in %s", p.Root)
		}
	}
}
