package camp

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Push pushes the camp's branch, and is the remote that it went to: the base's, else origin, else the only one. It never
// overwrites what is there.
func (c Camp) Push(ctx context.Context) (remote string, err error) {
	s, err := c.Look(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case s.Head == "":
		return "", &Refusal{"push", "the branch " + c.Branch + " is gone", "git branch --list"}
	case s.Changed > 0:
		return "", &Refusal{"push", fmt.Sprintf("%s has %s that %s not committed: %s", c.Path, plural(s.Changed, "file"), isAre(s.Changed), list(s)), "commit them there, or remove them"}
	case s.Ahead == 0:
		return "", &Refusal{"push", c.Branch + " has no commit that " + c.Base + " does not have", "nothing is to be pushed; vx strike removes the camp"}
	}
	if err := c.fetchable(ctx); err != nil {
		return "", err
	}
	if remote, err = c.remote(ctx); err != nil {
		return "", err
	}
	if _, err := git(ctx, c.Path, "push", "--quiet", "--set-upstream", "--end-of-options", remote, "refs/heads/"+c.Branch+":refs/heads/"+c.Branch); err != nil {
		if exited(err) > 0 {
			err = &Refusal{"push", fmt.Sprintf("%s takes it not: %v", remote, err), "put that right, then try again"}
		}
		return "", err
	}
	return remote, nil
}

func (c Camp) remote(ctx context.Context) (string, error) {
	if of, err := git(ctx, c.Repo, "config", "--get", "branch."+c.Base+".remote"); err == nil && of != "." && of != "" {
		return of, nil
	}
	out, err := git(ctx, c.Repo, "remote")
	if err != nil {
		return "", err
	}
	all := strings.Fields(out)
	switch {
	case slices.Contains(all, "origin"):
		return "origin", nil
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0:
		return "", &Refusal{"push", c.Repo + " has no remote", "git remote add origin URL; or vx land merges it here"}
	}
	return "", &Refusal{"push", fmt.Sprintf("none of the remotes %s is %s's own", strings.Join(all, ", "), c.Base), "git branch --set-upstream-to REMOTE/" + c.Base + " " + c.Base}
}
