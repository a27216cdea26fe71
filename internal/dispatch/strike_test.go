package dispatch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vx/internal/herdr/herdrtest"
	"vx/internal/task"
)

func (w *world) paneStands(id string) bool {
	for _, p := range w.herdr.Panes() {
		if p.CurrentID() == id {
			return true
		}
	}
	return false
}

// struckAway checks that nothing is left of a task but its record.
func (w *world) struckAway(t task.Task) {
	w.Helper()
	if _, err := os.Stat(t.Camp.Path); err == nil {
		w.Error("its camp stands")
	}
	if refs := w.git(w.repo, "for-each-ref"); strings.Contains(refs, t.Camp.Branch) {
		w.Errorf("its branch is there:\n%s", refs)
	}
	if w.paneStands(t.Herdr.Pane) {
		w.Error("its pane is open")
	}
	if _, err := os.Stat(w.pauseFile(t)); err == nil {
		w.Error("its pause file stands")
	}
	if got := w.get(t.ID); got.Status != task.Struck {
		w.Errorf("it is %s", got.Status)
	}
}

func TestAStrikeRemovesTheCampAndThePane(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{})
	pane.Idle()
	w.become(was, task.Unconfirmed)
	w.write(w.pauseFile(was), "")
	r, err := w.Strike(t.Context(), was.ID, false)
	if err != nil || !strings.Contains(r.Did, "closed pane "+was.Herdr.Pane) {
		t.Fatalf("%q, %v", r.Did, err)
	}
	w.struckAway(was)
	_, err = w.Strike(t.Context(), was.ID, false)
	w.refused(err, "struck already")
}

func TestAStrikeRefusesToLoseWork(t *testing.T) {
	for name, work := range map[string]func(*world, task.Task){
		"is not committed": func(w *world, t task.Task) { w.write(t.Camp.Path+"/new", "x") },
		"is nowhere else":  func(w *world, t task.Task) { w.commit(t.Camp.Path, "new", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was, pane := w.dispatched(Order{})
			pane.Idle()
			work(w, was)
			was = w.become(was, task.Unconfirmed)
			before := w.everything()
			_, err := w.Strike(t.Context(), was.ID, false)
			w.refused(err, name, "--force")
			after := w.everything()
			// It was struck for a moment, and is as it was; only when it was saved last has changed.
			trim := func(s string) string { return regexp.MustCompile(`"updated_at": .*`).ReplaceAllString(s, "") }
			if trim(before) != trim(after) {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
			r, err := w.Strike(t.Context(), was.ID, true)
			if err != nil || !strings.Contains(r.Next, "git branch "+was.Camp.Branch) {
				t.Fatalf("%q, %v", r.Next, err)
			}
			w.struckAway(was)
		})
	}
}

func TestASoldierAtWorkIsEndedByForceAlone(t *testing.T) {
	w := newWorld(t)
	was, _ := w.dispatched(Order{})
	_, err := w.Strike(t.Context(), was.ID, false)
	w.refused(err, "it is running", "--force")
	if r, err := w.Strike(t.Context(), was.ID, true); err != nil || r.Task.Status != task.Struck {
		t.Fatalf("%+v, %v", r.Task, err)
	}
	w.struckAway(was)

	// One that has finished may be at work again before anybody has seen it.
	was, _ = w.dispatched(Order{Title: "another"})
	was = w.become(was, task.Done)
	_, err = w.Strike(t.Context(), was.ID, false)
	w.refused(err, "claude is working", "--force")
	if !w.paneStands(was.Herdr.Pane) || w.get(was.ID).Status != task.Done {
		t.Error("it was struck all the same")
	}
}

func TestAPaneThatIsNotTheTasksAnyMoreStaysOpen(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{})
	pane.Idle()
	w.become(was, task.Unconfirmed)
	w.herdr.Restart(herdrtest.Shells)
	r, err := w.Strike(t.Context(), was.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	w.warned(r, "left open")
	if !w.paneStands(was.Herdr.Pane) {
		t.Error("it was closed")
	}
}

func TestAShellInWhichSomethingRunsIsNotClosed(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{})
	pane.Gone()
	pane.ShellPID(7)
	pane.Foreground(herdrtest.Process{PID: 8, Name: "vim"})
	w.become(was, task.Interrupted)
	_, err := w.Strike(t.Context(), was.ID, false)
	w.refused(err, `"vim" runs in its pane`)
	pane.Foreground(herdrtest.Process{PID: 7, Name: "bash"})
	if _, err := w.Strike(t.Context(), was.ID, false); err != nil {
		t.Fatal(err)
	}
	w.struckAway(was)
}

func TestWithoutHerdrACampCanStillBeStruck(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{})
	pane.Idle()
	w.become(was, task.Unconfirmed)
	w.herdr.Stop()
	if r, err := w.Strike(t.Context(), was.ID, false); err != nil || r.Task.Status != task.Struck {
		t.Errorf("%+v, %v", r.Task, err)
	}
}

// What a crash in the middle of a dispatch or of a strike leaves, the next strike removes.
func TestAStrikeEndsWhatWasCutShort(t *testing.T) {
	w := newWorld(t)
	_, head, _, err := w.plan(t.Context(), Order{Prompt: "x"})
	if err != nil || head == "" {
		t.Fatal(err)
	}
	var back undoing
	pending, err := w.enter(t.Context(), task.Task{Prompt: "x", Title: "x", Camp: &task.Camp{Base: "main"}}, &back)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Strike(t.Context(), pending.ID, false); err != nil || isDir(pending.Camp.Path) {
		t.Errorf("%v", err)
	}

	was, pane := w.dispatched(Order{})
	pane.Idle()
	w.become(w.become(was, task.Unconfirmed), task.Struck)
	if _, err := w.Strike(t.Context(), was.ID, false); err != nil {
		t.Fatal(err)
	}
	w.struckAway(was)
}

func TestARepositoryThatIsGoneIsNamed(t *testing.T) {
	w := newWorld(t)
	was, _ := w.ended(task.Done)
	if err := os.Rename(w.repo, w.repo+"-moved"); err != nil {
		t.Fatal(err)
	}
	for name, order := range map[string]func() (Result, error){
		"land":   func() (Result, error) { return w.Land(t.Context(), was.ID) },
		"ship":   func() (Result, error) { return w.Ship(t.Context(), was.ID) },
		"prompt": func() (Result, error) { return w.Prompt(t.Context(), was.ID, "more") },
	} {
		_, err := order()
		t.Log(name)
		w.refused(err, "its repository is gone from "+w.repo, "vx project")
	}
}

func TestALandMergesIntoTheBase(t *testing.T) {
	w := newWorld(t)
	was, pane := w.finished(task.Done)
	r, err := w.Land(t.Context(), was.ID)
	if err != nil || r.Task.Status != task.Landed || !strings.Contains(r.Did, "merged 1 commit into main") || r.Next != "vx strike "+was.ID[:8]+" removes its camp" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := w.git(w.repo, "show", "main:changelog"); got != "entry" {
		t.Errorf("main has %q", got)
	}
	if !w.paneStands(pane.ID) || !isDir(was.Camp.Path) {
		t.Error("it was struck as well")
	}
	if _, err := w.Strike(t.Context(), was.ID, false); err != nil {
		t.Fatal(err)
	}
	w.struckAway(was)
}

func TestLandsAtTheSameTimeWaitForEachOther(t *testing.T) {
	w := newWorld(t)
	var all []task.Task
	for _, name := range []string{"a", "b", "c", "d"} {
		was, pane := w.dispatched(Order{Title: name})
		w.commit(was.Camp.Path, name, name)
		pane.Idle()
		all = append(all, w.become(was, task.Done))
	}
	errs := make(chan error)
	for _, was := range all {
		go func() {
			_, err := w.Land(t.Context(), was.ID)
			errs <- err
		}()
	}
	for range all {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if got := w.git(w.repo, "show", "main:"+name); got != name {
			t.Errorf("main's %s says %q", name, got)
		}
	}
}

func TestALandThatConflictsLeavesEverythingAsItWas(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	w.commit(w.repo, "changelog", "another\n")
	before := w.everything()
	_, err := w.Land(t.Context(), was.ID)
	w.refused(err, "conflict in changelog", "vx prompt")
	if after := w.everything(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestAMergedTaskThatRunsAgainIsNotLanded(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	// The sentinel sees it work while git merges.
	hook := w.repo + "/.git/hooks/post-merge"
	record := w.Project.Join("tasks", was.ID+".json")
	w.write(hook, "#!/bin/sh\nsed 's/\"status\": \"done\"/\"status\": \"running\"/' "+record+" >"+record+".new && mv "+record+".new "+record+"\n")
	if err := os.Chmod(hook, 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := w.Land(t.Context(), was.ID)
	if err != nil || r.Task.Status != task.Running {
		t.Fatalf("%+v, %v", r.Task, err)
	}
	w.warned(r, "it was merged, and is running by now")
}

// A record is a file: what it names as the camp may be anything, and a strike removes it with all that is in it.
func TestACampThatVxDidNotMakeIsNeverTouched(t *testing.T) {
	for name, change := range map[string]func(*world, *task.Camp){
		"a directory of the user's":          func(w *world, c *task.Camp) { c.Path = filepath.Join(filepath.Dir(w.repo), "mine") },
		"another camp":                       func(w *world, c *task.Camp) { c.Path = w.Project.Join("camps", "1111111111111111") },
		"a branch of the user's":             func(w *world, c *task.Camp) { c.Branch = "main" },
		"another camp's branch":              func(w *world, c *task.Camp) { c.Branch = "vx/other-11111111" },
		"a camp's name somewhere else":       func(w *world, c *task.Camp) { c.Path = filepath.Join(w.repo, filepath.Base(c.Path)) },
		"a way out of the camps' directory":  func(w *world, c *task.Camp) { c.Path += "/../../../../../../mine" },
		"the repository's own working tree":  func(w *world, c *task.Camp) { c.Path = w.repo },
		"nothing, which is where it is read": func(w *world, c *task.Camp) { c.Path, c.Branch = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was, _ := w.ended(task.Done)
			w.write(filepath.Join(filepath.Dir(w.repo), "mine", "file"), "precious")
			w.git(w.repo, "branch", "vx/other-11111111")
			was, err := w.tasks().Update(t.Context(), was.ID, task.Done, func(t *task.Task) error {
				change(w, t.Camp)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			before := w.everything()
			for name, order := range map[string]func() (Result, error){
				"strike": func() (Result, error) { return w.Strike(t.Context(), was.ID, true) },
				"land":   func() (Result, error) { return w.Land(t.Context(), was.ID) },
				"ship":   func() (Result, error) { return w.Ship(t.Context(), was.ID) },
				"prompt": func() (Result, error) { return w.Prompt(t.Context(), was.ID, "more") },
			} {
				_, err := order()
				t.Log(name)
				w.refused(err, "vx made none there", was.ID+".json")
			}
			if after := w.everything(); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
			if data, err := os.ReadFile(filepath.Join(filepath.Dir(w.repo), "mine", "file")); string(data) != "precious" {
				t.Error("what is the user's is gone", err)
			}
		})
	}
}

// What stands in the pane of a task that runs again is not what was looked at.
func TestAForcedStrikeThatComesTooLateIsToBeRepeated(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	lift := w.herdr.Inject(herdrtest.Fault{Method: "pane.get", When: func(herdrtest.Request) bool {
		if got := w.get(was.ID); got.Status == task.Done {
			w.become(got, task.Running)
		}
		return false
	}})
	_, err := w.Strike(t.Context(), was.ID, true)
	lift()
	w.refused(err, "it is running by now, not done", "--force, once more")
	if got := w.get(was.ID); got.Status != task.Running {
		t.Errorf("it is %s", got.Status)
	}
	if r, err := w.Strike(t.Context(), was.ID, true); err != nil || r.Task.Status != task.Struck {
		t.Errorf("%v: %s", err, r.Task.Status)
	}
}
