package camp

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Landed is what a merge did.
type Landed struct {
	Into    string // the branch
	Commit  string // where it points to now
	Commits int    // that it did not have before
	At      string // the working tree that has the branch checked out, "" where none has
}

// Land merges the camp's branch into its base. Where that cannot be done whole it refuses, with a *Refusal, and leaves
// everything as it was.
func (c Camp) Land(ctx context.Context) (Landed, error) {
	s, err := c.Look(ctx)
	if err != nil {
		return Landed{}, err
	}
	base, err := git(ctx, c.Repo, "rev-parse", "--verify", "--quiet", "refs/heads/"+c.Base)
	if err != nil {
		return Landed{}, &Refusal{"merge", fmt.Sprintf("the camp was made from %s, which is not a branch any more, or never was", c.Base), "git merge " + c.Branch + ", where you want it"}
	}
	switch {
	case s.Head == "":
		return Landed{}, &Refusal{"merge", "the branch " + c.Branch + " is gone", "git branch --list"}
	case s.Changed > 0:
		return Landed{}, &Refusal{"merge", fmt.Sprintf("%s has %s that %s not committed: %s", c.Path, plural(s.Changed, "file"), isAre(s.Changed), list(s)), "commit them there, or remove them"}
	case s.Ahead == 0:
		return Landed{}, &Refusal{"merge", c.Branch + " has no commit that " + c.Base + " does not have", "nothing is to be merged; vx strike removes the camp"}
	}
	if err := c.fetchable(ctx); err != nil {
		return Landed{}, err
	}
	tree, err := c.tree(ctx, base)
	if err != nil {
		return Landed{}, err
	}
	at, err := c.checkedOut(ctx)
	if err != nil {
		return Landed{}, err
	}
	l := Landed{Into: c.Base, Commits: s.Ahead, At: at}
	if at != "" {
		err = c.mergeIn(ctx, at, s.Head)
	} else {
		err = c.mergeAside(ctx, base, s.Head, tree)
	}
	if err != nil {
		return Landed{}, err
	}
	l.Commit, err = git(ctx, c.Repo, "rev-parse", "--verify", "refs/heads/"+c.Base)
	return l, err
}

// tree merges in git's object store alone, where a conflict touches nobody's files.
func (c Camp) tree(ctx context.Context, base string) (string, error) {
	out, err := git(ctx, c.Repo, "merge-tree", "--write-tree", "--name-only", "--no-messages", base, "refs/heads/"+c.Branch)
	if exited(err) == 1 {
		files := strings.Split(strings.TrimSpace(out), "\n")[1:]
		return "", &Refusal{"merge", fmt.Sprintf("%s and %s conflict in %s", c.Branch, c.Base, list(State{Changes: files, Changed: len(files)})),
			"merge " + c.Base + " into the camp's branch first (vx prompt can ask the soldier to), or merge by hand"}
	}
	if err != nil {
		return "", fmt.Errorf("merge %s: %w", c.Branch, err)
	}
	tree, _, _ := strings.Cut(out, "\n")
	return tree, nil
}

// checkedOut is the working tree that has the base checked out.
func (c Camp) checkedOut(ctx context.Context) (string, error) {
	list, err := git(ctx, c.Repo, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", err
	}
	at := ""
	for line := range strings.SplitSeq(list, "\x00") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			at = path
		}
		if line == "branch refs/heads/"+c.Base {
			return at, nil
		}
	}
	return "", nil
}

// mergeIn merges where the base is checked out: git refuses where that would overwrite what is not committed there.
func (c Camp) mergeIn(ctx context.Context, at, head string) error {
	if merging(ctx, at) != "" {
		return &Refusal{"merge", "another merge is under way in " + at, "finish it there, or git merge --abort"}
	}
	_, err := git(ctx, at, "merge", "--no-edit", "--quiet", "--no-stat", "-m", c.message(), "refs/heads/"+c.Branch)
	if err == nil {
		return nil
	}
	refusal := &Refusal{"merge", fmt.Sprintf("%s, where %s is checked out: %v", at, c.Base, err), "put that right, then vx land again"}
	if ctx := context.WithoutCancel(ctx); merging(ctx, at) == head {
		// Begun and not finished: a hook of the repository said no, say. A merge of something else is somebody else's, who
		// was quicker.
		_, undo := git(ctx, at, "merge", "--abort")
		return errors.Join(refusal, undo)
	}
	return refusal
}

// merging is the commit whose merge is under way in a working tree, "" for none.
func merging(ctx context.Context, at string) string {
	commit, err := git(ctx, at, "rev-parse", "--verify", "--quiet", "MERGE_HEAD")
	if err != nil {
		return ""
	}
	return commit
}

func (c Camp) message() string { return fmt.Sprintf("Merge branch '%s' into %s", c.Branch, c.Base) }

// mergeAside moves a branch that nobody has checked out.
func (c Camp) mergeAside(ctx context.Context, base, head, tree string) error {
	to := head
	if _, err := git(ctx, c.Repo, "merge-base", "--is-ancestor", base, head); err != nil {
		if exited(err) != 1 {
			return err
		}
		if to, err = git(ctx, c.Repo, "commit-tree", tree, "-p", base, "-p", head, "-m", c.message()); err != nil {
			return fmt.Errorf("merge %s: %w", c.Branch, err)
		}
	}
	if _, err := git(ctx, c.Repo, "update-ref", "-m", "vx land: "+c.Branch, "refs/heads/"+c.Base, to, base); err != nil {
		return &Refusal{"merge", fmt.Sprintf("%s has moved meanwhile: %v", c.Base, err), "vx land again"}
	}
	return nil
}
