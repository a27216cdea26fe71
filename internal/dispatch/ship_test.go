package dispatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/task"
)

// remote gives the repository an origin, and gh in front of the others on PATH: a script, or none.
func (w *world) remote(gh string) string {
	w.Helper()
	origin := filepath.Join(w.TempDir(), "origin.git")
	w.git(w.repo, "init", "-q", "--bare", "-b", "main", origin)
	w.git(w.repo, "remote", "add", "origin", origin)
	bin := w.TempDir()
	for _, name := range []string{"git", "sh", "cat"} {
		at := "/usr/bin/" + name
		if _, err := os.Stat(at); err != nil {
			at = "/bin/" + name
		}
		if err := os.Symlink(at, filepath.Join(bin, name)); err != nil {
			w.Fatal(err)
		}
	}
	if gh != "" {
		w.write(filepath.Join(bin, "gh"), "#!/bin/sh\n"+gh)
		if err := os.Chmod(filepath.Join(bin, "gh"), 0o700); err != nil {
			w.Fatal(err)
		}
	}
	w.Setenv("PATH", bin)
	return origin
}

func TestAShipPushesAndOpensAPullRequest(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	asked := filepath.Join(t.TempDir(), "asked")
	origin := w.remote(`[ -z "$GIT_DIR" ] || exit 9
echo "$PWD $*" >> ` + asked + `
case $2 in view) echo "no pull requests found" >&2; exit 1;; esac
echo "Creating pull request" >&2
echo https://forge.example/shop/pull/7
`)
	t.Setenv("GIT_DIR", "/elsewhere") // as in a hook of git's
	r, err := w.Ship(t.Context(), was.ID)
	os.Unsetenv("GIT_DIR")
	if err != nil || r.Task.Status != task.Shipped || !strings.HasSuffix(r.Did, "pushed "+was.Camp.Branch+" to origin, https://forge.example/shop/pull/7") {
		t.Fatalf("%+v, %v", r, err)
	}
	if w.git(origin, "rev-parse", was.Camp.Branch) != w.git(w.repo, "rev-parse", was.Camp.Branch) {
		t.Error("the branch is not there")
	}
	said, err := os.ReadFile(asked)
	want := was.Camp.Path + " pr create --head " + was.Camp.Branch + " --fill --base main\n"
	if err != nil || !strings.HasSuffix(string(said), want) {
		t.Errorf("gh was asked %q, %v", said, err)
	}
	// What is pushed is not lost.
	pane := w.herdr.Pane(was.Herdr.Pane)
	pane.Idle()
	if _, err := w.Strike(t.Context(), was.ID, false); err != nil {
		t.Error(err)
	}
}

func TestAPullRequestThatIsOpenAlreadyIsAsGood(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	w.remote("[ $2 = view ] && echo https://forge.example/shop/pull/3\n")
	if r, err := w.Ship(t.Context(), was.ID); err != nil || !strings.HasSuffix(r.Did, "/pull/3") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWithoutGhABranchIsPushedAndThatIsSaid(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	w.remote("")
	r, err := w.Ship(t.Context(), was.ID)
	if err != nil || r.Task.Status != task.Shipped {
		t.Fatalf("%+v, %v", r, err)
	}
	w.warned(r, "gh is not installed")
}

func TestAShipThatFailsSaysHowFarItCame(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	_, err := w.Ship(t.Context(), was.ID)
	w.refused(err, "has no remote", "git remote add")

	origin := w.remote("echo 'gh auth login first' >&2; exit 4\n")
	_, err = w.Ship(t.Context(), was.ID)
	w.refused(err, "pushed "+was.Camp.Branch, "gh auth login first", "vx ship")

	// Somebody else's work is never overwritten.
	other := filepath.Join(t.TempDir(), "other")
	w.git(w.repo, "clone", "-q", "-b", was.Camp.Branch, origin, other)
	w.commit(other, "more", "x")
	w.git(other, "push", "-q", "origin", was.Camp.Branch)
	w.commit(was.Camp.Path, "own", "x")
	_, err = w.Ship(t.Context(), was.ID)
	w.refused(err, "origin takes it not")
	if got := w.get(was.ID); got.Status != task.Done {
		t.Errorf("it is %s", got.Status)
	}
}
