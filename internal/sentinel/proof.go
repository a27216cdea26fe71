package sentinel

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vx/internal/soldier"
	"vx/internal/task"
)

// gitPatience is how long git may take. What it does not say in time is no proof.
const gitPatience = 5 * time.Second

// proofs remembers what git said of a commit, so that it is run once for each.
type proofs struct {
	head, base string // of which
	ahead      bool
	made       time.Time
}

// look is what a task's soldier has delivered until now.
func (p *proofs) look(ctx context.Context, t *task.Task) *soldier.Proof {
	proof := &soldier.Proof{}
	if fi, err := os.Stat(t.ReportPath); t.ReportPath != "" && err == nil && fi.Mode().IsRegular() && fi.Size() > 0 && fi.ModTime().After(t.PromptedAt) {
		proof.Report, proof.At = true, fi.ModTime()
	}
	dir, ref := t.Dir, "HEAD"
	if t.Camp != nil {
		dir, ref = t.Camp.Path, "refs/heads/"+t.Camp.Branch
	}
	if dir == "" {
		return proof
	}
	proof.Head = readRef(ctx, dir, ref)
	if proof.Head == "" {
		proof.Gone = goneFrom(dir)
	}
	if proof.Head == "" || proof.Head == t.Head || !p.judge(ctx, t, dir, proof.Head) {
		return proof
	}
	proof.Commit = true
	if p.made.After(proof.At) {
		proof.At = p.made
	}
	return proof
}

// judge reports whether a head that is not what it was is the soldier's work: of a camp, that it is ahead of the base;
// elsewhere, that it was committed since, as another branch may have been checked out.
func (p *proofs) judge(ctx context.Context, t *task.Task, dir, head string) bool {
	base := ""
	if t.Camp != nil {
		base = t.Camp.Base
	}
	if p.head != head || p.base != base {
		seconds, err := strconv.ParseInt(git(ctx, dir, "show", "-s", "--format=%ct", head), 10, 64)
		if err != nil {
			return false
		}
		ahead := true
		if base != "" {
			n, err := strconv.Atoi(git(ctx, dir, "rev-list", "--count", "--end-of-options", from(ctx, t, dir)+".."+head))
			if err != nil {
				return false
			}
			ahead = n > 0
		}
		// Git counts in seconds: it was made before the end of that one.
		*p = proofs{head, base, ahead, time.Unix(seconds+1, 0)}
	}
	return p.ahead && (t.Camp != nil || p.made.After(t.PromptedAt))
}

// from is the commit that a camp's branch is to be ahead of: the base's, where the base is a branch whatever tag is called
// so too; and where that was deleted, the one that the branch had when the soldier was last told something.
func from(ctx context.Context, t *task.Task, dir string) string {
	if commit := readRef(ctx, dir, "refs/heads/"+t.Camp.Base); commit != "" {
		return commit
	}
	if commit := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", t.Camp.Base+"^{commit}"); commit != "" {
		return commit
	}
	return t.Head
}

// gits are the runs of git that go on.
var gits = make(chan struct{}, 4)

// git is what git prints, "" when it fails. It takes no lock, runs nothing of the repository's own, and knows no
// environment but its user's.
func git(ctx context.Context, dir string, args ...string) string {
	select {
	case gits <- struct{}{}:
		defer func() { <-gits }()
	case <-ctx.Done():
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, gitPatience) // not for the wait: others' gits are no fault of this one
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(out))
}

// readRef is the commit that a ref of a work tree leads to, "" where there is none. Files are read where they say it; git
// is asked for the rest.
func readRef(ctx context.Context, dir, ref string) string {
	own, common, ok := gitDirs(dir)
	if !ok {
		return git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	}
	for range 5 { // HEAD leads to a branch, and that to no other as a rule
		at := common
		if ref == "HEAD" {
			at = own
		}
		data, err := os.ReadFile(filepath.Join(at, ref))
		if err != nil {
			if hash := packed(common, ref); hash != "" {
				return hash
			}
			break // kept in another form, or not there
		}
		text := strings.TrimSpace(string(data))
		next, symbolic := strings.CutPrefix(text, "ref: ")
		switch {
		case symbolic && filepath.IsLocal(next):
			ref = next
			continue
		case isHash(text):
			return text
		}
		break
	}
	return git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
}

// gitDirs are the directories that git keeps a work tree's own things in, and those of all its work trees.
func gitDirs(dir string) (own, common string, ok bool) {
	for at := dir; ; at = filepath.Dir(at) {
		own = filepath.Join(at, ".git")
		if fi, err := os.Stat(own); err == nil {
			if fi.IsDir() {
				return own, own, true
			}
			dir = at
			break
		}
		if at == filepath.Dir(at) {
			return "", "", false
		}
	}
	data, err := os.ReadFile(own)
	link, found := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if err != nil || !found {
		return "", "", false
	}
	own = absolute(dir, link)
	data, err = os.ReadFile(filepath.Join(own, "commondir"))
	if err != nil {
		return own, own, true // a submodule
	}
	return own, absolute(own, strings.TrimSpace(string(data))), true
}

// goneFrom is where the repository of a camp was, "" where it is there.
func goneFrom(camp string) string {
	own, _, ok := gitDirs(camp)
	repo, _, linked := strings.Cut(own, "/.git/worktrees/")
	if _, err := os.Lstat(repo); !ok || !linked || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return repo
}

// packed is the commit of a ref that git has packed with others.
func packed(common, ref string) string {
	data, err := os.ReadFile(filepath.Join(common, "packed-refs"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref && isHash(hash) {
			return hash
		}
	}
	return ""
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
