package camp

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// fetchable is the refusal to hand on a branch that moves a submodule to a commit which only the camp has: whoever gets the
// branch could not check it out, and with the camp the commit would go.
func (c Camp) fetchable(ctx context.Context) error {
	if _, err := git(ctx, c.Repo, "rev-parse", "--verify", "--quiet", c.Base+"^{commit}"); err != nil {
		return nil // there is nothing to compare with
	}
	// ":160000 160000 OLD NEW M" NUL path NUL, for each file that was changed.
	changes, err := git(ctx, c.Repo, "diff", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--ignore-submodules=none",
		c.Base+"...refs/heads/"+c.Branch, "--")
	if err != nil {
		return err
	}
	common, err := git(ctx, c.Repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return err
	}
	fields := strings.Split(changes, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		info, path := strings.Fields(fields[i]), fields[i+1]
		if len(info) < 4 || info[1] != "160000" {
			continue
		}
		at, commit := filepath.Join(c.Path, path), info[3]
		if _, err := os.Lstat(filepath.Join(at, ".git")); err != nil {
			continue // nothing was committed here
		}
		if on, err := git(ctx, at, "branch", "--remotes", "--contains", commit); err == nil && on != "" {
			continue
		}
		if _, err := git(ctx, c.Repo, "--git-dir", filepath.Join(common, "modules", path), "cat-file", "-e", commit); err == nil {
			continue
		}
		return &Refusal{"camp", c.Branch + " moves the submodule " + path + " to a commit that only the camp has", "push that from " + at + ", then the same again"}
	}
	return nil
}
