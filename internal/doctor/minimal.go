package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/state"
)

// minimalPath is all that the hook's shell is sure to have on PATH.
const minimalPath = "/usr/bin:/bin"

// minimalLimit is how long the hook may run on before it counts as found.
const minimalLimit = 5 * time.Second

// whereVX is the fix for a hook that does not find vx, to the letter.
const whereVX = "install vx where the hook looks (~/.local/bin or Homebrew), then run vx upgrade"

// findsVX runs each registered command for real, with next to nothing in its environment, as Claude Code may run it in a
// shell that never read a profile.
func findsVX(ctx context.Context, p *Patient) []Result {
	commands := map[string]string{} // and the first file that has it
	var order []string
	for _, f := range p.files {
		for _, o := range f.own {
			if _, ok := commands[o.command]; !ok {
				commands[o.command] = f.Shown
				order = append(order, o.command)
			}
		}
	}
	home := os.Getenv("HOME")
	if _, err := state.LookAt(filepath.Join(home, ".vexillum")); len(order) > 0 && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return info("not tried, as the hook would log that %v", err)
	}
	var all []Result
	for _, command := range order {
		subject := ""
		if len(order) > 1 {
			subject = "the command in " + commands[command] + " was "
		}
		out, err := tryMinimal(ctx, command, home, minimalLimit)
		if err != nil {
			all = append(all, failure("", "%scould not be tried: %v", subject, err)...)
			continue
		}
		all = append(all, out.results(subject)...)
	}
	return all
}

// outcome is how a command ended that was tried.
type outcome struct {
	ranOn  bool
	status int
	stderr string
}

func (o outcome) results(subject string) []Result {
	switch {
	case o.ranOn, o.status == 0 && o.stderr == "":
		return ok("%sfound with a minimal environment", subject)
	case o.status == 127 || strings.Contains(o.stderr, "not found"):
		return warning(whereVX, "%snot found with a minimal environment", subject)
	}
	return warning(whereVX, "%snot found with a minimal environment (exit %d, %.200q)", subject, o.status, o.stderr)
}

// tryMinimal runs a command by /bin/sh with HOME and PATH alone, from an empty directory, without input, for so long at
// most, and cleans up after it.
func tryMinimal(ctx context.Context, command, home string, limit time.Duration) (outcome, error) {
	dir, err := outsideAnyProject(home)
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	var stderr head
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Env = []string{"HOME=" + home, "PATH=" + minimalPath}
	cmd.Dir = dir
	cmd.Stderr = &stderr
	c, err := start(cmd)
	if err != nil {
		return outcome{}, err
	}
	ended := c.await(ctx, limit)
	if err := c.finish(); err != nil {
		return outcome{}, err
	}
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	return outcome{!ended, cmd.ProcessState.ExitCode(), strings.TrimSpace(stderr.String())}, nil
}

// outsideAnyProject makes an empty directory of which an await thinks that it is in no project, so that what is run there
// can claim nothing: neither it nor anything above it is a git repository, or a project that the state directory of this
// HOME knows. Where there is no such place (a repository at the root of the file system) the directory gets a .git of its
// own, which makes it a project without a queue, and not quite empty.
func outsideAnyProject(home string) (string, error) {
	known, err := state.LookAt(filepath.Join(home, ".vexillum"))
	if err != nil {
		known = nil // none, or one that an await does not use either
	}
	for _, base := range places() {
		if base, err := filepath.EvalSymlinks(base); err != nil || !isOutside(known, base) {
			continue
		}
		if dir, err := os.MkdirTemp(base, "vx-doctor-"); err == nil {
			return filepath.EvalSymlinks(dir)
		}
	}
	dir, err := os.MkdirTemp("", "vx-doctor-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ".git"), nil, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("a directory to try it in: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	return dir, nil
}

// places are where a temporary directory may be made.
var places = func() []string { return []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"} }

// isOutside reports whether a directory in base, which is resolved, belongs to no project.
func isOutside(known *state.Dir, base string) bool {
	root, git, err := known.Resolve(base)
	if err != nil || git != "" || root != base {
		return false
	}
	if known == nil {
		return true
	}
	_, err = os.Lstat(known.Project(base).Join("project.json"))
	return err != nil
}
