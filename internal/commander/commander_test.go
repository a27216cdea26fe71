package commander

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
	"vx/internal/proc"
	"vx/internal/state"
)

// world is a state directory and a herdr, beside two repositories, notes and shop.
type world struct {
	*testing.T
	dir         *state.Dir
	herdr       *herdrtest.Server
	notes, shop string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, notes: filepath.Join(at, "notes"), shop: filepath.Join(at, "shop")}
	if w.dir, err = state.OpenAt(filepath.Join(at, "state")); err != nil {
		t.Fatal(err)
	}
	for _, repo := range []string{w.notes, w.shop} {
		if err := errors.Join(os.MkdirAll(filepath.Join(repo, ".git"), 0o700), os.MkdirAll(filepath.Join(repo, "deep"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	w.herdr = herdrtest.New(t, herdrtest.Options{Validate: schema.Validate})
	return w
}

// awaits registers a live await of this process.
func (w *world) awaits(project, pane, socket string) *awaiter.Awaiter {
	w.Helper()
	a, err := awaiter.Register(w.dir, w.dir.Project(project), awaiter.Record{
		Process: proc.Self(), Project: project, Pane: pane, Socket: socket, Since: time.Now(), Harness: "claude",
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { a.Close() })
	return a
}

func (w *world) finds(pane, socket, project string) {
	w.Helper()
	got, err := Find(w.Context(), w.dir, Here{pane, socket})
	want := Commander{Project: project, Pane: pane}
	if project == "" {
		want = Commander{}
	}
	if err != nil || got != want {
		w.Errorf("in pane %q: %+v, %v; want %+v", pane, got, err, want)
	}
}

func TestThePanesAwaitSaysWhoseQueueIsRead(t *testing.T) {
	w := newWorld(t)
	pane := w.herdr.Agent(herdrtest.Agent{CWD: w.shop})
	a := w.awaits(w.notes, pane.ID, w.herdr.Socket)
	w.finds(pane.ID, w.herdr.Socket, w.notes)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	w.finds(pane.ID, w.herdr.Socket, w.shop)
}

func TestAnAwaitInAPaneOfTheSameNameInAnotherHerdrIsSomebodyElses(t *testing.T) {
	w := newWorld(t)
	other := herdrtest.New(t, herdrtest.Options{})
	pane := w.herdr.Agent(herdrtest.Agent{CWD: w.shop})
	w.awaits(w.notes, pane.ID, other.Socket)
	w.finds(pane.ID, w.herdr.Socket, w.shop)
	w.finds(pane.ID, other.Socket, w.notes)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(other.Socket, link); err != nil {
		t.Fatal(err)
	}
	w.finds(pane.ID, link, w.notes)
	w.finds(pane.ID, "", w.notes)
}

func TestAnAwaitThatDoesNotSayItsHerdrCounts(t *testing.T) {
	w := newWorld(t)
	w.awaits(w.notes, "w1:p9", "")
	w.finds("w1:p9", w.herdr.Socket, w.notes)
}

func TestWithoutAnAwaitTheAgentsProjectIsMeant(t *testing.T) {
	w := newWorld(t)
	w.finds(w.herdr.Agent(herdrtest.Agent{CWD: filepath.Join(w.shop, "deep")}).ID, w.herdr.Socket, w.shop)
	w.finds(w.herdr.Agent(herdrtest.Agent{CWD: t.TempDir()}).ID, w.herdr.Socket, "")
	w.finds(w.herdr.Shell(w.shop).ID, w.herdr.Socket, "")
	w.finds("w7:p7", w.herdr.Socket, "")
	known := t.TempDir()
	known, _ = filepath.EvalSymlinks(known)
	if err := w.dir.Project(known).Ensure(); err != nil {
		t.Fatal(err)
	}
	w.finds(w.herdr.Agent(herdrtest.Agent{CWD: known}).ID, w.herdr.Socket, known)
}

func TestOutsideOfHerdrThereIsNobody(t *testing.T) {
	w := newWorld(t)
	w.awaits(w.notes, "", "")
	w.finds("", w.herdr.Socket, "")
	if got := w.herdr.Requests(""); len(got) != 0 {
		t.Errorf("herdr was asked: %v", got)
	}
}

func TestASoldierIsNoCommander(t *testing.T) {
	w := newWorld(t)
	camp := w.dir.Project(w.shop).Join("camps", "x")
	if err := os.MkdirAll(filepath.Join(camp, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.finds(w.herdr.Agent(herdrtest.Agent{CWD: camp}).ID, w.herdr.Socket, "")
}

func TestAHerdrThatDoesNotAnswerIsAnError(t *testing.T) {
	w := newWorld(t)
	pane := w.herdr.Agent(herdrtest.Agent{CWD: w.shop})
	w.herdr.Stop()
	if got, err := Find(t.Context(), w.dir, Here{pane.ID, w.herdr.Socket}); err == nil || got != (Commander{}) {
		t.Errorf("%+v, %v", got, err)
	}
	w.awaits(w.notes, pane.ID, w.herdr.Socket)
	w.finds(pane.ID, w.herdr.Socket, w.notes)
}
