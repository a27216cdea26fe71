// Package camp keeps the git worktrees that soldiers work in: it makes one on a branch of its own, says what would be
// lost with it, merges it and removes it. It knows nothing of tasks, and never touches a working tree that is not a
// camp, but for a merge into the branch that the user has checked out, which git itself refuses where it would cost
// the user's changes.
//
// A crash while one is made leaves a worktree or a branch that Make with the same names finds and takes; a crash while
// one is removed leaves a rest that Remove ends. A merge is git's own, with git's own safety.
package camp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Camp is a worktree and its branch.
type Camp struct {
	Repo   string // the repository's own working tree
	Path   string // the camp's
	Branch string
	Base   string // what the branch was made from: a branch, or a commit where there was none
}

// A Refusal says why nothing was done.
type Refusal struct {
	What string // "camp", "merge"
	Why  string
	Fix  string // a command, or a sentence
}

func (e *Refusal) Error() string { return e.What + ": " + e.Why }

// Hint is what mends it.
func (e *Refusal) Hint() string { return e.Fix }

// Base is what a camp of this repository is made from where ref is "": the branch that is checked out; else ref, as a
// branch where it is one. commit is what it points to now.
func Base(ctx context.Context, repo, ref string) (base, commit string, err error) {
	if ref == "" {
		ref = "HEAD"
	} else if commit, err := git(ctx, repo, "show-ref", "--verify", "--hash", branches+ref); err == nil {
		return ref, commit, nil // whatever tag is called so too
	}
	commit, err = git(ctx, repo, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	switch {
	case err != nil && ref == "HEAD" && exited(err) > 0:
		return "", "", &Refusal{"camp", repo + " has no commit yet, and a camp is made from one", "git commit --allow-empty -m begin"}
	case err != nil && exited(err) > 0:
		return "", "", &Refusal{"camp", fmt.Sprintf("%q is no commit of %s", ref, repo), "give --base a branch or a commit"}
	case err != nil:
		return "", "", err
	}
	name, err := git(ctx, repo, "rev-parse", "--symbolic-full-name", "--verify", "--quiet", "--end-of-options", ref)
	if branch, ok := strings.CutPrefix(name, branches); ok && err == nil {
		return branch, commit, nil
	}
	return commit, commit, nil
}

const branches = "refs/heads/"

// base is the base in a form that git takes for nothing else: a tag may have the name of a branch.
func (c Camp) base(ctx context.Context) string {
	if _, err := git(ctx, c.Repo, "show-ref", "--verify", "--hash", branches+c.Base); err == nil {
		return branches + c.Base
	}
	return c.Base
}

// Make makes the worktree and its branch, at the base's commit. What failed half-way is taken back.
func (c Camp) Make(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return fmt.Errorf("camp %s: %w", c.Path, err)
	}
	if _, err := git(ctx, c.Repo, "worktree", "add", "--quiet", "--no-track", "-b", c.Branch, "--end-of-options", c.Path, c.base(ctx)); err != nil {
		return errors.Join(fmt.Errorf("camp %s: %w", c.Path, err), c.takeBack(context.WithoutCancel(ctx)))
	}
	return nil
}

// takeBack removes what an unsuccessful Make left: a branch that points to where it began, and a worktree that git does
// not finish.
func (c Camp) takeBack(ctx context.Context) error {
	if registered, err := c.registered(ctx); err != nil || registered {
		if _, gitErr := git(ctx, c.Repo, "worktree", "remove", "--force", c.Path); err == nil {
			err = gitErr
		}
		if err != nil {
			return err
		}
	}
	base, err := git(ctx, c.Repo, "rev-parse", "--verify", "--quiet", c.base(ctx)+"^{commit}")
	if err != nil {
		return nil
	}
	if head, err := c.Head(ctx); err == nil && head == base {
		_, err = git(ctx, c.Repo, "branch", "-D", "--quiet", c.Branch)
		return err
	}
	return nil
}

// registered reports whether git knows the worktree.
func (c Camp) registered(ctx context.Context) (bool, error) {
	list, err := git(ctx, c.Repo, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return false, err
	}
	want, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		want = c.Path
	}
	for entry := range strings.SplitSeq(list, "\x00") {
		if at, ok := strings.CutPrefix(entry, "worktree "); ok && (at == want || at == c.Path) {
			return true, nil
		}
	}
	return false, nil
}

// Stands reports whether the camp's directory is there.
func (c Camp) Stands() bool {
	_, err := os.Lstat(filepath.Join(c.Path, ".git"))
	return err == nil
}

// Head is the commit of the camp's branch.
func (c Camp) Head(ctx context.Context) (string, error) {
	return git(ctx, c.Repo, "rev-parse", "--verify", "--quiet", "refs/heads/"+c.Branch)
}

// State is what a camp holds.
type State struct {
	Head     string
	Changes  []string // changed and untracked files, as git status has them, at most 20
	Changed  int      // how many there are
	Ahead    int      // commits that the base does not have, or, where that is gone, that are nowhere else
	Unmerged int      // commits that no other branch, no tag and no remote has, also on no branch: they would be lost
}

// maxChanges is how many changed files are named.
const maxChanges = 20

// Look finds out what the camp holds. Where its directory is gone there are no changes.
func (c Camp) Look(ctx context.Context) (s State, err error) {
	if s.Head, err = c.Head(ctx); err != nil {
		if exited(err) > 0 { // the branch is gone, and its commits with it or elsewhere
			err = nil
		}
		if err != nil {
			return s, err
		}
	}
	if c.Stands() {
		out, err := git(ctx, c.Path, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
		if err != nil {
			return s, err
		}
		for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			if entry == "" {
				continue
			}
			if s.Changed++; s.Changed <= maxChanges {
				s.Changes = append(s.Changes, strings.TrimSpace(entry[min(3, len(entry)):]))
			}
		}
	}
	tips := c.tips(ctx, s.Head)
	if len(tips) > 0 {
		s.Unmerged, err = c.count(ctx, append(tips, "--not", "--exclude="+c.Branch, "--branches", "--remotes", "--tags")...)
	}
	if s.Head == "" || err != nil {
		return s, err
	}
	s.Ahead, err = c.count(ctx, "refs/heads/"+c.Branch, "--not", c.base(ctx), "--")
	if exited(err) > 0 { // no such base any more
		s.Ahead, err = s.Unmerged, nil
	}
	return s, err
}

// tips are the commits that are the camp's: its branch's, and the one that is checked out there, which may be on no branch.
func (c Camp) tips(ctx context.Context, head string) (tips []string) {
	if head != "" {
		tips = append(tips, head)
	}
	if c.Stands() {
		if at, err := git(ctx, c.Path, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil && at != head {
			tips = append(tips, at)
		}
	}
	return tips
}

func (c Camp) count(ctx context.Context, args ...string) (n int, err error) {
	out, err := git(ctx, c.Repo, append([]string{"rev-list", "--count"}, args...)...)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscan(out, &n); err != nil {
		return 0, fmt.Errorf("git rev-list: %q is no number", out)
	}
	return n, nil
}

// Remove removes the worktree and its branch. Without force it refuses, with a *Refusal, where work would be lost. It
// returns the commit that the branch had, "" where there was none, so that a person can bring it back.
func (c Camp) Remove(ctx context.Context, force bool) (head string, err error) {
	s, err := c.Look(ctx)
	if err != nil && !force {
		return "", err
	}
	if !force {
		if err := s.loses(c); err != nil {
			return s.Head, err
		}
	}
	if registered, err := c.registered(ctx); err != nil {
		return s.Head, err
	} else if registered {
		if err := c.removeWorktree(ctx, force); err != nil {
			return s.Head, err
		}
	} else if err := c.removeRest(force); err != nil {
		return s.Head, err
	}
	if s.Head == "" {
		return "", nil
	}
	// The commit is named, so that what was added in this very moment stays.
	if _, err := git(ctx, c.Repo, "update-ref", "-d", "refs/heads/"+c.Branch, s.Head); err != nil {
		return s.Head, fmt.Errorf("branch %s: %w", c.Branch, err)
	}
	_, _ = git(ctx, c.Repo, "config", "--remove-section", "branch."+c.Branch)
	return s.Head, nil
}

// removeWorktree removes the worktree by git, which looks at it once more without force.
func (c Camp) removeWorktree(ctx context.Context, force bool) error {
	args := []string{"worktree", "remove"}
	some, inhabited, err := c.submodules(ctx)
	switch {
	case force:
		args = append(args, "--force", "--force") // the second one: also where it is locked
	case err != nil:
		return err
	case inhabited:
		return &Refusal{"camp", c.Path + " has submodules, and what was committed in them may be nowhere else", "look into them, then strike with --force"}
	case some:
		args = append(args, "--force") // or git would not remove it, whatever is in them
	}
	if _, err := git(ctx, c.Repo, append(args, c.Path)...); err != nil {
		return fmt.Errorf("camp %s: %w", c.Path, err)
	}
	return nil
}

// submodules reports whether the camp has any, and whether there is something in them: repositories that go with it.
func (c Camp) submodules(ctx context.Context) (some, inhabited bool, err error) {
	if !c.Stands() {
		return false, false, nil
	}
	index, err := git(ctx, c.Path, "ls-files", "-z", "--stage")
	if err != nil {
		return false, false, err
	}
	for entry := range strings.SplitSeq(index, "\x00") {
		info, path, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(info, "160000 ") {
			continue
		}
		some = true
		if in, err := os.ReadDir(filepath.Join(c.Path, path)); err == nil && len(in) > 0 {
			return true, true, nil
		}
	}
	own, err := git(ctx, c.Path, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return some, false, err
	}
	_, gone := os.Stat(filepath.Join(own, "modules"))
	return some || gone == nil, gone == nil, nil
}

// removeRest removes a directory that git does not know as a worktree any more: with force only, unless it is empty.
func (c Camp) removeRest(force bool) error {
	err := os.Remove(c.Path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !force {
		return &Refusal{"camp", c.Path + " is not a worktree of " + c.Repo + " any more, and not empty", "look into it, then strike with --force"}
	}
	return os.RemoveAll(c.Path)
}

// loses is the refusal to drop what the camp holds, nil where nothing would be lost.
func (s State) loses(c Camp) error {
	switch {
	case s.Changed > 0:
		return &Refusal{"camp", fmt.Sprintf("%s has %s that %s not committed: %s", c.Path, plural(s.Changed, "file"), isAre(s.Changed), list(s)), "commit them there, or strike with --force"}
	case s.Unmerged > 0:
		return &Refusal{"camp", fmt.Sprintf("%s has %s that %s nowhere else", c.Branch, plural(s.Unmerged, "commit"), isAre(s.Unmerged)), "land or ship it first, or strike with --force"}
	}
	return nil
}

func list(s State) string {
	text := strings.Join(s.Changes[:min(3, len(s.Changes))], ", ")
	if s.Changed > 3 {
		text += ", …"
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
