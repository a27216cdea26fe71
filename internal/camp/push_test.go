package camp

import (
	"path/filepath"
	"testing"
)

// pushable is a world whose camp has a commit, and a bare repository beside it.
func pushable(t *testing.T) (w *world, bare string) {
	t.Helper()
	w = made(t)
	w.commit(w.camp.Path, "new", "work\n")
	bare = filepath.Join(t.TempDir(), "bare.git")
	w.git(w.repo, "init", "-q", "--bare", bare)
	return w, bare
}

func TestAPushGoesToTheRemoteOfTheBase(t *testing.T) {
	w, bare := pushable(t)
	_, err := w.camp.Push(t.Context())
	refused(t, err, "no remote")
	w.git(w.repo, "remote", "add", "upstream", bare)
	if remote, err := w.camp.Push(t.Context()); err != nil || remote != "upstream" {
		t.Errorf("%q, %v", remote, err)
	}
	if w.git(bare, "rev-parse", w.camp.Branch) != w.git(w.repo, "rev-parse", w.camp.Branch) {
		t.Error("it is not there")
	}
	w.git(w.repo, "remote", "add", "other", bare)
	_, err = w.camp.Push(t.Context())
	refused(t, err, "other, upstream")
	w.git(w.repo, "config", "branch.main.remote", "other")
	if remote, err := w.camp.Push(t.Context()); err != nil || remote != "other" {
		t.Errorf("%q, %v", remote, err)
	}
	w.git(w.repo, "config", "--unset", "branch.main.remote")
	w.git(w.repo, "remote", "add", "origin", bare)
	if remote, err := w.camp.Push(t.Context()); err != nil || remote != "origin" {
		t.Errorf("%q, %v", remote, err)
	}
}

func TestAPushOfNothingOrOfHalfIsRefused(t *testing.T) {
	w := made(t)
	_, err := w.camp.Push(t.Context())
	refused(t, err, "no commit that main does not have")
	w.write(w.camp.Path, "new", "work\n")
	_, err = w.camp.Push(t.Context())
	refused(t, err, "new", "not committed")
}

func TestAPushNeverOverwrites(t *testing.T) {
	w, bare := pushable(t)
	w.git(w.repo, "remote", "add", "origin", bare)
	if _, err := w.camp.Push(t.Context()); err != nil {
		t.Fatal(err)
	}
	there := w.git(bare, "rev-parse", w.camp.Branch)
	w.git(w.camp.Path, "commit", "-q", "--amend", "-m", "another")
	_, err := w.camp.Push(t.Context())
	refused(t, err, "origin takes it not")
	if w.git(bare, "rev-parse", w.camp.Branch) != there {
		t.Error("what was there is gone")
	}
}
