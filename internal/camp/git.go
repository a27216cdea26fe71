package camp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// patience is how long git may take before it counts as hung: a checkout of a large repository takes minutes.
const patience = 10 * time.Minute

// A gitError is what git said when it refused.
type gitError struct {
	args   []string
	status int // exit status, -1 if it did not exit by itself
	said   string
}

func (e *gitError) Error() string { return fmt.Sprintf("git %s: %s", e.args[0], e.said) }

// git runs git in dir and returns what it printed, without the last newline.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = Environment()
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return out.String(), &gitError{args, exit.ExitCode(), gist(said.String())}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// exited is the status that git ended with: 0 for no error, -1 where it did not get so far.
func exited(err error) int {
	if err == nil {
		return 0
	}
	if g, ok := errors.AsType[*gitError](err); ok {
		return g.status
	}
	return -1
}

// Environment is ours without what would lead git to another repository (vx may be called by a git hook), with messages
// in the language that is read here, and without questions on the terminal.
func Environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY",
			"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH",
			"GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX", "LC_ALL", "LANGUAGE":
			return true
		}
		return false
	})
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true")
}

// listed are the first of the lines that a reason announces: which files are in the way.
func listed(reason string, lines []string) string {
	var names []string
	for _, l := range lines {
		if !strings.HasSuffix(reason, ":") || !strings.HasPrefix(l, "\t") {
			break
		}
		names = append(names, strings.TrimSpace(l))
	}
	if len(names) == 0 {
		return ""
	}
	return " " + list(State{Changes: names, Changed: len(names)})
}

// gist is git's reason: its first line that is one.
func gist(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for i, l := range lines {
		for _, mark := range []string{"fatal: ", "error: "} {
			if rest, ok := strings.CutPrefix(l, mark); ok {
				return strings.TrimSpace(rest) + listed(rest, lines[i+1:])
			}
		}
	}
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return "no reason given"
}
