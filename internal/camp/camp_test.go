package camp

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// world is a repository with one commit on main, and a camp that is not made yet.
type world struct {
	*testing.T
	repo string
	camp Camp
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "a b")
	for name, value := range map[string]string{
		"HOME": dir, "GIT_CONFIG_NOSYSTEM": "1", "XDG_CONFIG_HOME": filepath.Join(dir, "none"),
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@localhost", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@localhost",
	} {
		t.Setenv(name, value)
	}
	w := &world{T: t, repo: filepath.Join(dir, "shop")}
	w.camp = Camp{Repo: w.repo, Path: filepath.Join(dir, "camps", "x"), Branch: "vx/x", Base: "main"}
	if err := os.MkdirAll(w.repo, 0o700); err != nil {
		t.Fatal(err)
	}
	w.git(w.repo, "init", "-q", "-b", "main")
	w.commit(w.repo, "file", "one\n")
	return w
}

func (w *world) git(dir string, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(dir, name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) read(dir, name string) string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		w.Fatal(err)
	}
	return string(data)
}

func (w *world) commit(dir, name, text string) {
	w.Helper()
	w.write(dir, name, text)
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-q", "-m", "change "+name)
}

// made is a world whose camp stands.
func made(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	if err := w.camp.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// everything is what must not change when something is refused.
func (w *world) everything() string {
	w.Helper()
	return strings.Join([]string{
		w.git(w.repo, "for-each-ref"), w.git(w.repo, "status", "--porcelain", "--branch"), w.git(w.repo, "stash", "list"),
		w.git(w.repo, "worktree", "list"), w.read(w.repo, "file"),
	}, "\n")
}

func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	for _, word := range words {
		if !strings.Contains(r.Error(), word) {
			t.Errorf("%q says nothing of %q", r, word)
		}
	}
	if r.Fix == "" {
		t.Errorf("%q has no hint", r)
	}
}

func TestACampIsAWorktreeOnABranchOfItsOwn(t *testing.T) {
	w := made(t)
	if got := w.git(w.camp.Path, "symbolic-ref", "HEAD"); got != "refs/heads/vx/x" {
		t.Errorf("the camp is on %s", got)
	}
	if got := w.read(w.camp.Path, "file"); got != "one\n" {
		t.Errorf("the camp's file says %q", got)
	}
	if got := w.git(w.repo, "status", "--porcelain"); got != "" {
		t.Errorf("the repository's own tree changed: %s", got)
	}
	s, err := w.camp.Look(t.Context())
	if err != nil || s.Head != w.git(w.repo, "rev-parse", "main") || s.Changed+s.Ahead+s.Unmerged != 0 || !w.camp.Stands() {
		t.Errorf("a new camp holds %+v, %v", s, err)
	}
}

func TestWhatACampIsMadeFrom(t *testing.T) {
	w := newWorld(t)
	first := w.git(w.repo, "rev-parse", "HEAD")
	w.git(w.repo, "branch", "other")
	w.commit(w.repo, "file", "two\n")
	w.git(w.repo, "tag", "-a", "-m", "t", "tag", first)
	second := w.git(w.repo, "rev-parse", "HEAD")
	for _, row := range []struct{ ref, base, commit string }{
		{"", "main", second}, {"main", "main", second}, {"other", "other", first}, {"HEAD~1", first, first}, {"tag", first, first},
	} {
		base, commit, err := Base(t.Context(), w.repo, row.ref)
		if base != row.base || commit != row.commit || err != nil {
			t.Errorf("%q: %s %s %v, want %s %s", row.ref, base, commit, err, row.base, row.commit)
		}
	}
	for _, ref := range []string{"nothing", "--all", "main:file"} {
		_, _, err := Base(t.Context(), w.repo, ref)
		refused(t, err, ref)
	}
	w.git(w.repo, "checkout", "-q", "--detach")
	if base, _, err := Base(t.Context(), w.repo, ""); base != second || err != nil {
		t.Errorf("with nothing checked out by name: %s, %v", base, err)
	}
	w.git(w.repo, "init", "-q", w.repo+"/empty")
	_, _, err := Base(t.Context(), w.repo+"/empty", "")
	refused(t, err, "no commit")
}

func TestATagWithTheNameOfTheBaseIsNotTheBase(t *testing.T) {
	w := newWorld(t)
	first := w.git(w.repo, "rev-parse", "HEAD")
	w.commit(w.repo, "file", "two\n")
	w.git(w.repo, "tag", "main", first)
	second := w.git(w.repo, "rev-parse", "refs/heads/main")
	for _, ref := range []string{"", "main"} {
		if base, commit, err := Base(t.Context(), w.repo, ref); base != "main" || commit != second || err != nil {
			t.Errorf("%q: %s %s %v", ref, base, commit, err)
		}
	}
	if err := w.camp.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := w.camp.Look(t.Context()); err != nil || s.Head != second || s.Ahead != 0 {
		t.Errorf("the camp holds %+v, %v", s, err)
	}
	w.commit(w.camp.Path, "new", "x")
	if l, err := w.camp.Land(t.Context()); err != nil || l.Commits != 1 || l.Into != "main" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestACampThatCannotBeMadeLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.write(w.repo, ".git/hooks/post-checkout", "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(filepath.Join(w.repo, ".git/hooks/post-checkout"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := w.everything()
	if err := w.camp.Make(t.Context()); err == nil {
		t.Fatal("a camp was made though the repository's hook refused")
	}
	if after := w.everything(); after != before {
		t.Errorf("it left\n%s\nbefore\n%s", after, before)
	}
	if w.camp.Stands() {
		t.Error("its directory stands")
	}
}

func TestMakeTakesNobodysBranch(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "branch", "vx/x")
	w.git(w.repo, "checkout", "-q", "vx/x")
	w.commit(w.repo, "file", "theirs\n")
	theirs := w.git(w.repo, "rev-parse", "vx/x")
	if err := w.camp.Make(t.Context()); err == nil {
		t.Fatal("a branch that was there was taken")
	}
	if got := w.git(w.repo, "rev-parse", "vx/x"); got != theirs {
		t.Errorf("the branch was %s and is %s", theirs, got)
	}
}

func TestStrikeRefusesToDropWork(t *testing.T) {
	w := made(t)
	w.write(w.camp.Path, "new", "x")
	_, err := w.camp.Remove(t.Context(), false)
	refused(t, err, "1 file", "new")
	w.commit(w.camp.Path, "new", "x")
	_, err = w.camp.Remove(t.Context(), false)
	refused(t, err, "1 commit", "vx/x")
	if !w.camp.Stands() {
		t.Fatal("the camp is gone")
	}
	// What stands in another branch is not lost.
	w.git(w.repo, "branch", "kept", "vx/x")
	w.git(w.repo, "config", "branch.vx/x.remote", "origin")
	want := w.git(w.repo, "rev-parse", "kept")
	head, err := w.camp.Remove(t.Context(), false)
	if head != want || err != nil {
		t.Errorf("removed at %s, %v, want %s", head, err, want)
	}
	if got := w.git(w.repo, "for-each-ref", "--format=%(refname)"); got != "refs/heads/kept\nrefs/heads/main" || w.camp.Stands() {
		t.Errorf("left: %s", got)
	}
	if _, err := w.camp.Remove(t.Context(), false); err != nil {
		t.Errorf("to remove it again: %v", err)
	}
}

func TestACampWithSomethingInSubmodulesIsRemovedByForceOnly(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(filepath.Dir(w.repo), "other")
	w.git(w.repo, "clone", "-q", w.repo, other)
	w.git(w.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub")
	w.git(w.repo, "commit", "-q", "-m", "a submodule")
	if err := w.camp.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.camp.Remove(t.Context(), false); err != nil {
		t.Errorf("nothing is in the submodule: %v", err)
	}
	if err := w.camp.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.git(w.camp.Path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	before := w.everything()
	_, err := w.camp.Remove(t.Context(), false)
	refused(t, err, "submodules", "nowhere else")
	if after := w.everything(); after != before || !w.camp.Stands() {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if _, err := w.camp.Remove(t.Context(), true); err != nil || w.camp.Stands() {
		t.Errorf("it stands: %v, %v", w.camp.Stands(), err)
	}
}

func TestASubmodulesCommitThatOnlyTheCampHasIsHandedToNobody(t *testing.T) {
	w := newWorld(t)
	other := filepath.Join(filepath.Dir(w.repo), "other")
	w.git(w.repo, "clone", "-q", "--bare", w.repo, other)
	w.git(w.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub")
	w.git(w.repo, "commit", "-q", "-m", "a submodule")
	if err := w.camp.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.git(w.camp.Path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	sub := filepath.Join(w.camp.Path, "sub")
	w.git(sub, "checkout", "-q", "-b", "work")
	w.commit(sub, "new", "x")
	w.git(w.camp.Path, "commit", "-q", "-a", "-m", "move it")
	before := w.everything()
	_, err := w.camp.Land(t.Context())
	refused(t, err, "submodule sub", "only the camp has")
	_, err = w.camp.Push(t.Context())
	refused(t, err, "submodule sub", "only the camp has")
	if after := w.everything(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	w.git(sub, "push", "-q", "origin", "work")
	if _, err := w.camp.Land(t.Context()); err != nil {
		t.Errorf("its commit was pushed: %v", err)
	}
}

func TestCommitsOnNoBranchAreWorkToo(t *testing.T) {
	for name, branch := range map[string]func(*world){
		"the camp's branch stands":  func(*world) {},
		"the camp's branch is gone": func(w *world) { w.git(w.repo, "branch", "-D", "-q", "vx/x") },
	} {
		t.Run(name, func(t *testing.T) {
			w := made(t)
			w.git(w.camp.Path, "checkout", "-q", "--detach")
			branch(w)
			w.commit(w.camp.Path, "new", "x")
			_, err := w.camp.Remove(t.Context(), false)
			refused(t, err, "1 commit that is nowhere else")
			if !w.camp.Stands() {
				t.Error("it was removed all the same")
			}
			w.git(w.camp.Path, "checkout", "-q", "-b", "kept")
			if _, err := w.camp.Remove(t.Context(), false); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestForceDropsWorkAndNamesTheCommit(t *testing.T) {
	w := made(t)
	w.commit(w.camp.Path, "new", "x")
	w.write(w.camp.Path, "file", "changed")
	want := w.git(w.camp.Path, "rev-parse", "HEAD")
	if head, err := w.camp.Remove(t.Context(), true); head != want || err != nil {
		t.Errorf("removed at %s, %v, want %s", head, err, want)
	}
	if _, err := os.Stat(w.camp.Path); err == nil {
		t.Error("the camp stands")
	}
	w.git(w.repo, "branch", "back", want)
}

func TestADirectoryThatGitForgotIsRemovedByForceOnly(t *testing.T) {
	w := made(t)
	if err := os.Remove(filepath.Join(w.camp.Path, ".git")); err != nil {
		t.Fatal(err)
	}
	w.git(w.repo, "worktree", "prune")
	_, err := w.camp.Remove(t.Context(), false)
	refused(t, err, "not a worktree")
	if _, err := w.camp.Remove(t.Context(), true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.camp.Path); err == nil {
		t.Error("the directory stands")
	}
}

func TestLandMergesIntoTheBase(t *testing.T) {
	for _, row := range []struct {
		name string
		at   func(w *world)
	}{
		{"that is checked out", func(*world) {}},
		{"that has gone on", func(w *world) { w.commit(w.repo, "other", "x") }},
		{"that nobody has checked out", func(w *world) { w.git(w.repo, "checkout", "-q", "-b", "elsewhere") }},
		{"that nobody has checked out and has gone on", func(w *world) {
			w.commit(w.repo, "other", "x")
			w.git(w.repo, "checkout", "-q", "-b", "elsewhere")
		}},
		{"where something else is changed", func(w *world) { w.write(w.repo, "unrelated", "mine") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := made(t)
			w.commit(w.camp.Path, "file", "two\n")
			row.at(w)
			l, err := w.camp.Land(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := w.git(w.repo, "show", "main:file"); got != "two" {
				t.Errorf("main's file says %q", got)
			}
			if said := w.git(w.repo, "log", "-1", "--format=%s", "main"); said != "change file" && said != "Merge branch 'vx/x' into main" {
				t.Errorf("the merge is called %q", said)
			}
			if got := w.git(w.repo, "rev-parse", "main"); l.Commit != got || l.Into != "main" || l.Commits != 1 {
				t.Errorf("landed %+v, main is %s", l, got)
			}
			if got := w.git(w.repo, "status", "--porcelain"); got != "" && got != "?? unrelated" {
				t.Errorf("the working tree does not agree with its branch: %s", got)
			}
			if _, err := w.camp.Remove(t.Context(), false); err != nil {
				t.Errorf("after landing nothing is lost, yet: %v", err)
			}
		})
	}
}

func TestLandRefusesAndLeavesEverything(t *testing.T) {
	for _, row := range []struct {
		name string
		at   func(w *world)
		says string
	}{
		{"a conflict", func(w *world) { w.commit(w.repo, "file", "three\n") }, "conflict in file"},
		{"a conflict with a branch that nobody has checked out", func(w *world) {
			w.commit(w.repo, "file", "three\n")
			w.git(w.repo, "checkout", "-q", "-b", "elsewhere")
		}, "conflict in file"},
		{"a change of the user's in the way", func(w *world) { w.write(w.repo, "file", "mine\n") }, "overwritten by merge: file"},
		{"a file of the user's in the way", func(w *world) {
			w.commit(w.camp.Path, "new", "x")
			w.write(w.repo, "new", "mine")
		}, "overwritten by merge: new"},
		{"work that is not committed", func(w *world) { w.write(w.camp.Path, "draft", "x") }, "draft"},
		{"a merge that the user is in", func(w *world) {
			w.git(w.repo, "checkout", "-q", "-b", "theirs")
			w.commit(w.repo, "x", "x")
			w.git(w.repo, "checkout", "-q", "main")
			w.git(w.repo, "merge", "-q", "--no-commit", "--no-ff", "theirs")
		}, "merge is under way"},
		{"a hook that says no", func(w *world) {
			w.commit(w.repo, "other", "x")
			w.write(w.repo, ".git/hooks/commit-msg", "#!/bin/sh\necho 'error: not today' >&2\nexit 1\n")
			if err := os.Chmod(filepath.Join(w.repo, ".git/hooks/commit-msg"), 0o700); err != nil {
				w.Fatal(err)
			}
		}, "not today"},
		{"a base that is gone", func(w *world) {
			w.git(w.repo, "checkout", "-q", "-b", "elsewhere")
			w.git(w.repo, "branch", "-D", "-q", "main")
		}, "not a branch any more"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := made(t)
			w.commit(w.camp.Path, "file", "two\n")
			row.at(w)
			before := w.everything()
			_, err := w.camp.Land(t.Context())
			refused(t, err, row.says)
			if after := w.everything(); after != before {
				t.Errorf("it left\n%s\nbefore\n%s", after, before)
			}
		})
	}
	w := made(t)
	_, err := w.camp.Land(t.Context())
	refused(t, err, "no commit")
}

func TestNobodyElsesMergeIsAborted(t *testing.T) {
	w := made(t)
	w.commit(w.camp.Path, "new", "x")
	w.git(w.repo, "checkout", "-q", "-b", "theirs")
	w.commit(w.repo, "theirs", "x")
	w.git(w.repo, "checkout", "-q", "main")
	w.commit(w.repo, "other", "x")
	theirs := w.git(w.repo, "rev-parse", "theirs")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	// In the moment in which ours is to begin, theirs does.
	bin := t.TempDir()
	w.write(bin, "git", "#!/bin/sh\ncase \"$*\" in *' merge --no-edit '*) "+real+" -C '"+w.repo+"' merge -q --no-commit theirs; exit 128;; esac\nexec "+real+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, err = w.camp.Land(t.Context())
	refused(t, err, "checked out")
	if got := w.git(w.repo, "rev-parse", "MERGE_HEAD"); got != theirs {
		t.Errorf("the merge that is under way is %q", got)
	}
}

func TestAGitHookThatCallsDoesNotLeadElsewhere(t *testing.T) {
	w := made(t)
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	t.Setenv("GIT_INDEX_FILE", "/dev/null/x")
	t.Setenv("GIT_QUARANTINE_PATH", "/dev/null/x") // in which no branch may be moved
	if _, err := w.camp.Look(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := w.camp.Remove(t.Context(), false); err != nil {
		t.Error(err)
	}
}
