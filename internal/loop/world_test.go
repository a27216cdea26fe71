package loop

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/state"
)

// world is a project with a state directory of its own.
type world struct {
	t *testing.T
	p *state.Project
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := state.OpenAt(filepath.Join(home, "state"))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(home, "shop")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	return &world{t, d.Project(root)}
}

func (w *world) plan() Plan {
	return Plan{Kind: "green", Title: "mend the till", Command: []string{"vx", "loop", "green"}, Tree: w.p.Root, Limits: Limits{Iterations: 8}}
}

// create begins a run that ends with the test.
func (w *world) create(plan Plan) *Run {
	w.t.Helper()
	r, err := Create(w.p, plan)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { r.Finish(Failed, "") })
	return r
}

// original makes a run directory of ralph.sh.
func (w *world) original(id, progress string) string {
	w.t.Helper()
	dir := filepath.Join(originals(w.p.Root), id)
	write(w.t, filepath.Join(dir, progressFile), progress)
	return dir
}

// list is what List finds without trouble.
func (w *world) list() []Found {
	w.t.Helper()
	all, bad := List(w.p.Root, w.p)
	for _, err := range bad {
		w.t.Error(err)
	}
	return all
}

// only is the one run that there is.
func (w *world) only() Found {
	w.t.Helper()
	all := w.list()
	if len(all) != 1 {
		w.t.Fatalf("%d runs, want 1: %+v", len(all), all)
	}
	return all[0]
}

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// progressOf is the text of a run's progress.txt.
func progressOf(t *testing.T, dir string) string {
	t.Helper()
	return read(t, filepath.Join(dir, progressFile))
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
