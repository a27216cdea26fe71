package dispatch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/task"
	"vx/internal/wake"
)

// session is a process with the record that Claude Code keeps of itself.
func (w *world) session(id, name, dir, status string) proc.ID {
	w.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		w.Fatal(err)
	}
	w.record(p, id, name, dir, status)
	return p
}

func (w *world) record(p proc.ID, id, name, dir, status string) {
	w.Helper()
	w.write(filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "sessions", fmt.Sprint(p.PID, ".json")),
		fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":%q,"name":%q,"cwd":%q,"status":%q}`, p.PID, p.Start, id, name, dir, status))
}

func TestASessionInAnyTerminalIsWatchedWithoutHerdr(t *testing.T) {
	for _, by := range []string{"pid", "name", "session", "beginning of the session"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			w.herdr.Stop()
			delete(w.env, "HERDR_PANE_ID")
			delete(w.env, "HERDR_SOCKET_PATH")
			p := w.session("8a6d1111-2222", "shop-ab", w.repo, "busy")
			w.session("9b7e1111-2222", "notes-cd", t.TempDir(), "idle")
			target := map[string]string{"pid": fmt.Sprint(p.PID), "name": "shop-ab", "session": "8a6d1111-2222", "beginning of the session": "8a6d1111"}[by]
			before := time.Now()
			r, err := w.Watch(t.Context(), target, "", "")
			if err != nil {
				t.Fatal(err)
			}
			got := w.get(r.Task.ID)
			if got.Status != task.Running || got.Kind != wake.KindMission || got.Title != "shop-ab" || got.Dir != w.repo || got.Camp != nil || got.Herdr != nil || got.PromptedAt.Before(before) {
				t.Errorf("the task is %+v", got)
			}
			if got.Session == nil || got.Session.PID != p.PID || got.Session.Start != p.Start || got.Head != w.git(w.repo, "rev-parse", "HEAD") || got.Agent != "claude" {
				t.Errorf("the task is %+v, of %+v", got, got.Session)
			}
			if w.ensured != 1 {
				t.Error("nobody sees that a sentinel runs")
			}
			_, err = w.Watch(t.Context(), target, "", "")
			w.refused(err, "watched already", got.ID[:8])
		})
	}
}

func TestAPaneIsWatched(t *testing.T) {
	w := newWorld(t)
	pane := w.herdr.Agent(herdrtest.Agent{Kind: "codex", Name: "fixer", CWD: t.TempDir(), State: herdrtest.Working})
	r, err := w.Watch(t.Context(), "fixer", "the fix", wake.KindScout)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Task
	if got.Status != task.Running || got.Kind != wake.KindScout || got.Title != "the fix" || got.Agent != "codex" || got.Head != "" || got.Camp != nil {
		t.Errorf("the task is %+v", got)
	}
	if h := got.Herdr; h == nil || h.Pane != pane.ID || h.Agent != "fixer" || h.StateChangeSeq != pane.Seq() || h.TerminalID == "" || h.Socket != w.herdr.Socket {
		t.Errorf("it runs in %+v", got.Herdr)
	}
	if got.CommanderPane != w.commander.ID {
		t.Errorf("its commander is in %q", got.CommanderPane)
	}
	_, err = w.Watch(t.Context(), pane.ID, "", "")
	w.refused(err, "watched already")

	// It can be told more, and is not harmed by a strike.
	pane.Idle()
	w.become(got, task.Done)
	if _, err := w.Prompt(t.Context(), got.ID, "go on"); err != nil {
		t.Fatal(err)
	}
	w.until("the prompt arrives", func() bool { return len(pane.Prompts()) == 1 })
	if _, err := w.Strike(t.Context(), got.ID, true); err != nil || !w.paneStands(pane.ID) {
		t.Errorf("%v; its pane stands: %v", err, w.paneStands(pane.ID))
	}
	_, err = w.Land(t.Context(), got.ID)
	w.refused(err, "it is struck")
}

func TestASessionWithoutAPaneIsNotTypedInto(t *testing.T) {
	w := newWorld(t)
	p := w.session("8a6d1111-2222", "", w.repo, "busy")
	r, err := w.Watch(t.Context(), fmt.Sprint(p.PID), "", "")
	if err != nil {
		t.Fatal(err)
	}
	w.become(r.Task, task.Done)
	_, err = w.Prompt(t.Context(), r.Task.ID, "x")
	w.refused(err, "no pane", "tell it yourself")
	_, err = w.Land(t.Context(), r.Task.ID)
	w.refused(err, "only watched")
}

func TestWhatCanBeWatchedIsListed(t *testing.T) {
	w := newWorld(t)
	soldier, _ := w.dispatched(Order{})
	w.herdr.Agent(herdrtest.Agent{Name: "free", CWD: w.repo})
	p := w.session("8a6d1111-2222", "shop-ab", w.repo, "busy")
	inCamp := w.session("8a6d1111-3333", "its own", soldier.Camp.Path, "busy")
	w.session("8a6d1111-4444", "headless", w.repo, "")
	w.record(proc.Self(), "8a6d1111-5555", "not a parent of itself", w.repo, "idle")
	parent, err := proc.Find(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	w.record(parent, "8a6d1111-6666", "the commander", w.repo, "busy")
	all, err := w.Targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range all {
		got[x.Name] = x.Task
	}
	want := map[string]string{soldier.Herdr.Agent: soldier.ID, "free": "", "shop-ab": "", "its own": soldier.ID, "not a parent of itself": ""}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed are %v, want %v; processes %v, %v", got, want, p, inCamp)
	}

	// A herdr that does not answer hides none of the sessions.
	w.herdr.Inject(herdrtest.Fault{Method: "agent.list", Drop: true})
	if _, err := w.Watch(t.Context(), "shop-ab", "", ""); err != nil {
		t.Error(err)
	}
	if _, err := w.Watch(t.Context(), "free", "", ""); err == nil {
		t.Error("one was found that nobody could have told of")
	}
}

// A restart gives every terminal another id, and a soldier may be another project's.
func TestASoldierIsNotWatchedASecondTime(t *testing.T) {
	w := newWorld(t)
	soldier, pane := w.dispatched(Order{})
	pane.Idle()
	other := filepath.Join(filepath.Dir(w.repo), "other")
	w.write(filepath.Join(other, "file"), "")
	here := *w.Desk
	here.Project = w.dir.Project(other)
	for _, restart := range []bool{false, true} {
		if restart {
			w.herdr.Restart(herdrtest.Resumed)
		}
		for name, desk := range map[string]*Desk{"its own project": w.Desk, "another project": &here} {
			if _, err := desk.Watch(t.Context(), soldier.Herdr.Pane, "", ""); err == nil {
				t.Errorf("it was watched twice, in %s; after a restart: %v", name, restart)
			} else {
				w.refused(err, "watched already, as task "+Short(soldier.ID), "vx status --all")
			}
		}
	}
}

func TestATargetThatIsNotThereOrMayBeTwoIsRefused(t *testing.T) {
	w := newWorld(t)
	_, err := w.Watch(t.Context(), "nobody", "", "")
	w.refused(err, `goes by "nobody"`, "vx watch")
	w.session("8a6d1111-2222", "twin", w.repo, "busy")
	w.session("8a6d1111-3333", "twin", w.repo, "busy")
	_, err = w.Watch(t.Context(), "twin", "", "")
	w.refused(err, "may be")
}

func TestASessionThatWouldWatchItselfIsToldSo(t *testing.T) {
	w := newWorld(t)
	parent, err := proc.Find(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	w.record(parent, "8a6d1111-6666", "the commander", w.repo, "busy")
	for _, target := range []string{w.commander.ID, fmt.Sprint(parent.PID), "the commander", "8a6d1111"} {
		_, err := w.Watch(t.Context(), target, "", "")
		w.refused(err, "watch: "+target+" is the session that asks", "none is woken by its own end: run vx watch in the session that is to be woken")
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is more than a line", err)
		}
	}
	if left, _ := w.tasks().List(); len(left) > 0 {
		t.Errorf("there is a task: %+v", left)
	}
}
