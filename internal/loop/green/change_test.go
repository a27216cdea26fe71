package green

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/loop"
	"vx/internal/state"
)

// tree is a repository with a run in it.
type tree struct {
	t    *testing.T
	root string
	l    *looper
}

func newTree(t *testing.T, task, gate string) *tree {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	d, err := state.OpenAt(filepath.Join(home, "state"))
	if err != nil {
		t.Fatal(err)
	}
	w := &tree{t: t, root: filepath.Join(home, "shop")}
	w.write(task, "do it\n")
	w.git("init", "-q")
	p := d.Project(w.root)
	run, err := loop.Create(p, loop.Plan{Kind: Kind, Tree: w.root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Finish(loop.Failed, "") })
	w.l = &looper{kept: kept{Options: Options{Task: filepath.Join(w.root, task), Gate: gate, Dir: w.root, Tree: w.root}}, run: run}
	return w
}

func (w *tree) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", w.root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (w *tree) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *tree) remember() {
	w.t.Helper()
	if err := w.l.remember(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *tree) change() string {
	w.t.Helper()
	c, err := w.l.change(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return c.text()
}

func TestTheJudgeSeesTheWholeChangeSinceTheRunBegan(t *testing.T) {
	w := newTree(t, ".loop/task.md", "true")
	w.write(".gitignore", "/.loop/\n/out/\n")
	for _, name := range []string{"committed", "staged", "unstaged", "gone", "dirty", "same"} {
		w.write(name, "old "+name+"\n")
	}
	w.git("add", ".")
	w.git("commit", "-qm", "first")
	w.write("dirty", "dirty before\n")
	w.write("untracked-before", "was there\n")
	objects := w.git("count-objects")
	status := w.git("status", "--porcelain")
	w.remember()
	if got := w.git("count-objects"); got != objects {
		t.Errorf("it writes into the repository: %s, was %s", got, objects)
	}
	if got := w.git("status", "--porcelain"); got != status {
		t.Errorf("it touches the index: %s", got)
	}
	if got := w.change(); got != "Nothing has changed since the run began.\n" {
		t.Errorf("%s", got)
	}

	w.write("committed", "new committed\n")
	w.git("add", "committed")
	w.git("commit", "-qm", "second")
	w.write("staged", "new staged\n")
	w.git("add", "staged")
	w.write("unstaged", "new unstaged\n")
	w.write("untracked", "new untracked\n")
	w.write("picture", "a\x00b")
	w.write("out/ignored", "x")
	w.write(".loop/LEDGER.md", "own")
	w.write(".loop/notes", "own")
	w.write("odd\x1b[2J\nname", "x\n")
	if err := os.Remove(filepath.Join(w.root, "gone")); err != nil {
		t.Fatal(err)
	}
	got := w.change()
	for _, want := range []string{
		"M committed\n", "M staged\n", "M unstaged\n", "A untracked\n", "D gone\n", "A picture (binary)\n", `A "odd`,
		"+new committed\n", "+new staged\n", "+new unstaged\n", "+new untracked\n", "-old gone\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, not := range []string{"dirty", "same", "untracked-before", "ignored", "LEDGER", "notes", "task.md", "\x1b", "CUT"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is in it", not)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestTheLoopsOwnFilesAreNoChange(t *testing.T) {
	for task, hidden := range map[string][]string{
		"loop/task.md": {"loop/LEDGER.md", "loop/ESCALATED.md", "loop/ESCALATED-20260101-120000.md", "loop/notes"},
		"task.md":      {"LEDGER.md", "ESCALATED.md", "ESCALATED-20260101-120000.md"},
		"docs/task.md": {"docs/LEDGER.md", "docs/ESCALATED.md", "docs/ESCALATED-20260101-120000.md"},
	} {
		w := newTree(t, task, "true")
		w.write("docs/guide.md", "x\n")
		w.git("add", "docs/guide.md")
		w.git("commit", "-qm", "first")
		w.remember()
		for _, name := range hidden {
			w.write(name, "own\n")
		}
		if got := w.change(); got != "Nothing has changed since the run began.\n" {
			t.Errorf("%s: %s", task, got)
		}
		w.write("docs/guide.md", "y\n")
		if got := w.change(); !strings.Contains(got, "M docs/guide.md\n") {
			t.Errorf("%s: %s", task, got)
		}
	}
}

func TestTheCutIsAnnouncedAndHidesNoName(t *testing.T) {
	w := newTree(t, ".loop/task.md", "true")
	w.write(".gitignore", "/.loop/\n")
	w.remember()
	w.write("a", strings.Repeat("much\n", 10_000))
	w.write("b/café", "ä\n")
	w.write("z_test.go", "weakened\n")
	got := w.change()
	for _, want := range []string{"A a\n", "A b/café\n", "A z_test.go <- a test\n", "\nCUT: these are the first ", "+weakened\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %.2000s", want, got)
		}
	}
	_, diff, _ := strings.Cut(got, "\nThe change:\n\n```\n")
	diff, _, _ = strings.Cut(diff, "```\nCUT")
	if len(diff) > 12_000 || len(diff) < 11_900 {
		t.Errorf("%d bytes of the change", len(diff))
	}
}

func TestWhatVerifiesTheWorkIsPointedOut(t *testing.T) {
	w := newTree(t, ".loop/task.md", "make check && ./scripts/gate.sh --all; sh 'ci/it'")
	w.remember()
	for _, name := range []string{"Makefile", "scripts/gate.sh", "ci/it", "x_test.go", "tests/a", "web/a.spec.ts", "test_a.py", "src/latest.go", "contest/a"} {
		w.write(name, "x\n")
	}
	got := w.change()
	for _, want := range []string{
		"A Makefile <- of the gate\n", "A scripts/gate.sh <- of the gate\n", "A ci/it <- of the gate\n", "A x_test.go <- a test\n", "A tests/a <- a test\n",
		"A web/a.spec.ts <- a test\n", "A test_a.py <- a test\n", "A src/latest.go\n", "A contest/a\n",
		"The files with an arrow verify the work",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestAFileThatBecameALinkKeepsItsPatch(t *testing.T) {
	w := newTree(t, ".loop/task.md", "true")
	w.write("a", "x\n")
	w.write("b", "x\n")
	w.remember()
	if err := os.Remove(filepath.Join(w.root, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(w.root, "a")); err != nil {
		t.Fatal(err)
	}
	w.write("b", "y\n")
	c, err := w.l.change(t.Context())
	if err != nil || len(c.files) != 2 || !strings.Contains(c.files[0].patch, "+elsewhere") || !strings.Contains(c.files[1].patch, "+y\n") {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhatGitCannotReadHidesNothingElse(t *testing.T) {
	w := newTree(t, ".loop/task.md", "true")
	w.write("tracked", "old\n")
	w.git("add", "tracked")
	w.git("commit", "-qm", "first")
	w.remember()
	w.write("tracked", "new\n")
	w.write("sub/file", "x\n")
	w.git("init", "-q", "sub") // has no commit: git adds nothing then
	got := w.change()
	for _, want := range []string{"Some files could not be read", "sub/", "M tracked\n", "+new\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}
