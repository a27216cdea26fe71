package sentinel

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/task"
)

// mission is a task with a camp of its own, given now.
func (w *world) mission(name string) (*task.Task, string) {
	w.t.Helper()
	camp := filepath.Join(w.shop.Dir, "camps", name)
	w.git(w.shop.Root, "worktree", "add", "-q", "-b", "vx/"+name, camp)
	return &task.Task{
		Camp: &task.Camp{Path: camp, Branch: "vx/" + name, Base: "main"}, Head: w.git(camp, "rev-parse", "HEAD"), PromptedAt: time.Now(),
	}, camp
}

func TestAMovedBranchAheadOfItsBaseIsProof(t *testing.T) {
	w := newWorld(t)
	m, camp := w.mission("a")
	var p proofs
	look := func() bool {
		t.Helper()
		got := p.look(context.Background(), m)
		if head := w.git(camp, "rev-parse", "vx/a"); got.Head != head {
			t.Errorf("head %q, want %q", got.Head, head)
		}
		return got.Commit
	}
	if look() {
		t.Error("nothing was committed")
	}
	w.commit(camp)
	for range 2 { // as git says, and as is remembered of what it said
		if !look() {
			t.Error("a commit is no proof")
		}
	}
	w.git(w.shop.Root, "pack-refs", "--all")
	if !look() {
		t.Error("a packed commit is no proof")
	}
	m.Head = w.git(camp, "rev-parse", "HEAD")
	if look() {
		t.Error("the commit is from before the prompt")
	}
	w.git(camp, "reset", "-q", "--hard", "main")
	if look() {
		t.Error("it moved, but is not ahead of its base")
	}
	w.git(w.shop.Root, "tag", "main", m.Head)
	if look() {
		t.Error("a tag that has the base's name was taken for it")
	}
	m.Camp.Base = "deleted"
	if look() {
		t.Error("it moved back, which is no proof without a base either")
	}
	// Another message: within a second it would be the commit that it was.
	w.git(camp, "commit", "-q", "--allow-empty", "-m", "other work")
	if !look() {
		t.Error("a commit is no proof when the base was deleted meanwhile")
	}
	m.Head = ""
	w.commit(camp)
	if look() {
		t.Error("neither the base nor what was there before is known, which proves nothing")
	}
	m.Camp.Branch = "vx/gone"
	if got := p.look(context.Background(), m); got.Head != "" || got.Commit {
		t.Errorf("a branch that is gone: %+v", got)
	}
}

func TestARepositoryThatIsGoneIsNamed(t *testing.T) {
	w := newWorld(t)
	m, camp := w.mission("a")
	var p proofs
	if got := p.look(context.Background(), m); got.Gone != "" {
		t.Errorf("it is gone from %q", got.Gone)
	}
	w.git(camp, "checkout", "-q", "--detach")
	w.git(w.shop.Root, "branch", "-q", "-D", "vx/a")
	if got := p.look(context.Background(), m); got.Head != "" || got.Gone != "" {
		t.Errorf("of a branch that is gone: %+v", got)
	}
	if err := os.Rename(w.shop.Root, w.shop.Root+"-moved"); err != nil {
		t.Fatal(err)
	}
	if got := p.look(context.Background(), m); got.Head != "" || got.Gone != w.shop.Root {
		t.Errorf("%+v, want it gone from %s", got, w.shop.Root)
	}
}

func TestOfAWatchedDirectoryANewCommitIsProofAndAnotherBranchIsNot(t *testing.T) {
	w := newWorld(t)
	root := w.shop.Root
	w.git(root, "checkout", "-q", "-b", "old")
	w.git(root, "-c", "core.editor=true", "commit", "-q", "--allow-empty", "-m", "old", "--date", "2020-01-01T00:00:00Z")
	w.git(root, "checkout", "-q", "main")
	sub := filepath.Join(root, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &task.Task{Dir: sub, Head: w.git(root, "rev-parse", "HEAD"), PromptedAt: time.Now().Add(2 * time.Second)}
	var p proofs
	w.git(root, "checkout", "-q", "old")
	if got := p.look(context.Background(), m); got.Commit || got.Head == m.Head {
		t.Errorf("a checkout: %+v", got)
	}
	m.PromptedAt = time.Now().Add(-time.Second)
	w.commit(root)
	if got := p.look(context.Background(), m); !got.Commit || got.At.Before(m.PromptedAt) {
		t.Errorf("a commit: %+v", got)
	}
	w.git(root, "checkout", "-q", "--detach")
	w.commit(root)
	if got := p.look(context.Background(), m); !got.Commit || got.Head != w.git(root, "rev-parse", "HEAD") {
		t.Errorf("a detached head: %+v", got)
	}
	m.Dir = t.TempDir()
	if got := p.look(context.Background(), m); got.Commit || got.Head != "" {
		t.Errorf("no repository: %+v", got)
	}
}

func TestAReportIsProofWhenItWasWrittenSince(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.md")
	m := &task.Task{ReportPath: path, PromptedAt: time.Now()}
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var p proofs
	report := func() bool { return p.look(context.Background(), m).Report }
	if report() {
		t.Error("there is none")
	}
	write("found it", m.PromptedAt.Add(-time.Second))
	if report() {
		t.Error("it is from before")
	}
	write("", m.PromptedAt.Add(time.Second))
	if report() {
		t.Error("it is empty")
	}
	write("found it", m.PromptedAt.Add(time.Second))
	if !report() {
		t.Error("it is there")
	}
	m.ReportPath = dir
	if report() {
		t.Error("a directory is none")
	}
}
