package green

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"vx/internal/wake"
)

const (
	maxDiff  = 12000 // bytes that the judge sees
	patience = 2 * time.Minute
)

// change is what has become of the working tree since the run began.
type change struct {
	files   []file
	missing bool   // it could not be found out
	trouble string // why some of it may be missing
}

// file is one that has changed.
type file struct {
	name   string
	status string // A, M, D, T
	binary bool
	checks string // what makes it one that verifies the work, or ""
	patch  string
}

// remember keeps how the working tree is now, all of it but what git ignores: a tree of git, whose objects are kept beside
// the run and not in the repository.
func (l *looper) remember(ctx context.Context) error {
	if l.Base != "" {
		return nil // since the run that asked
	}
	l.Store = filepath.Join(l.run.Dir, "tree")
	err := os.MkdirAll(l.Store, 0o700)
	if err == nil {
		l.Base, _, err = l.snapshot(ctx)
	}
	return err
}

// snapshot writes the working tree as it is, with an index of its own. What git cannot read is left out, and why is said:
// one such file must not hide all the others.
func (l *looper) snapshot(ctx context.Context) (tree, trouble string, err error) {
	at, err := l.git(ctx, "", "rev-parse", "--git-path", "index")
	if err != nil {
		return "", "", err
	}
	index := filepath.Join(l.run.Dir, "index")
	defer os.Remove(index)
	// With what git knows already of the files it reads only those that have changed.
	path := strings.TrimSuffix(string(at), "\n")
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.Tree, path)
	}
	if data, err := os.ReadFile(path); err == nil {
		if err := os.WriteFile(index, data, 0o600); err != nil {
			return "", "", err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	for _, what := range []string{"--all", "--update"} {
		_, err := l.git(ctx, index, "add", what, "--ignore-errors", ".")
		if err == nil {
			break
		}
		if _, ok := errors.AsType[*exec.ExitError](err); !ok || ctx.Err() != nil {
			return "", "", err
		}
		trouble = err.Error()
	}
	out, err := l.git(ctx, index, "write-tree")
	return strings.TrimSpace(string(out)), trouble, err
}

// change compares the working tree with what it was.
func (l *looper) change(ctx context.Context) (change, error) {
	var c change
	if l.Base == "" {
		return c, errors.New("git: how it was is not known")
	}
	now, trouble, err := l.snapshot(ctx)
	if err != nil {
		return c, err
	}
	c.trouble = trouble
	own, err := l.own(ctx)
	if err != nil {
		return c, err
	}
	diff := func(how ...string) ([]byte, error) {
		args := append([]string{"diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"}, how...)
		return l.git(ctx, "", append(append(args, l.Base, now, "--", "."), own...)...)
	}
	names, err := diff("--name-status", "-z")
	if err != nil {
		return c, err
	}
	fields := strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		c.files = append(c.files, file{status: fields[i], name: fields[i+1], checks: l.checks(fields[i+1])})
	}
	text, err := diff("-p", "--src-prefix=a/", "--dst-prefix=b/")
	if err != nil {
		return c, err
	}
	c.assign(string(text))
	return c, nil
}

var patchHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^diff --git `) })

// assign gives each file its patch. A file that became a link, or the other way round, has two.
func (c *change) assign(text string) {
	at := patchHead().FindAllStringIndex(text, -1)
	i := 0
	next := func() string {
		if i == len(at) {
			return ""
		}
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		p := text[at[i][0]:end]
		i++
		return p
	}
	for n := range c.files {
		f := &c.files[n]
		f.patch = next()
		if f.status == "T" {
			f.patch += next()
		}
		f.binary = strings.Contains(f.patch, "\nBinary files ") && !strings.Contains(f.patch, "\n@@ ")
	}
}

// text is the change as the judge sees it: every file's name, then the patches, those that verify the work first, in 12,000
// bytes at most, with the cut announced.
func (c change) text() string {
	if c.missing {
		return "What has changed could not be found out.\n"
	}
	var b strings.Builder
	if c.trouble != "" {
		b.WriteString("Some files could not be read; they may have changed, too:\n\n" + quote(c.trouble) + "\n")
	}
	if len(c.files) == 0 {
		return b.String() + "Nothing has changed since the run began.\n"
	}
	b.WriteString("All files that have changed since the run began (added A, modified M, deleted D, another type T):\n\n")
	what := ""
	for _, f := range c.files {
		mark := ""
		if f.binary {
			mark = " (binary)"
		}
		if f.checks != "" {
			mark += " <- " + f.checks
			what = "\nThe files with an arrow verify the work: look whether they were weakened.\n"
		}
		fmt.Fprintf(&b, "%s %s%s\n", f.status, name(f.name), mark)
	}
	b.WriteString(what)
	sorted := slices.Clone(c.files)
	slices.SortStableFunc(sorted, func(a, b file) int {
		switch {
		case a.checks != "" && b.checks == "":
			return -1
		case a.checks == "" && b.checks != "":
			return 1
		}
		return 0
	})
	all := ""
	for _, f := range sorted {
		all += f.patch
	}
	all = strings.ReplaceAll(strings.ToValidUTF8(all, "\uFFFD"), "\x00", "")
	shown := all
	if len(all) > maxDiff {
		shown = all[:maxDiff]
		if i := strings.LastIndexByte(shown, '\n'); i > 0 {
			shown = shown[:i+1]
		}
	}
	b.WriteString("\nThe change:\n\n" + fence(shown))
	if len(shown) < len(all) {
		fmt.Fprintf(&b, "CUT: these are the first %d of %d bytes; the rest of the change is not shown.\n", len(shown), len(all))
	}
	return b.String()
}

// name is a file's name in one line.
func name(s string) string {
	if clean := wake.Clean(s); clean != s || strings.ContainsAny(s, "\n\t") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// own are pathspecs that leave out the loop's own files: the task's folder where git tracks nothing in it, else those
// beside the task alone, so that a task in the midst of the sources hides none of them.
func (l *looper) own(ctx context.Context) ([]string, error) {
	var own []string
	exclude := func(path string) {
		if rel, err := filepath.Rel(l.Tree, path); err == nil && filepath.IsLocal(rel) && rel != "." {
			own = append(own, ":(exclude,top,literal)"+rel)
		}
	}
	exclude(l.run.Dir)
	folder := filepath.Dir(l.Task)
	rel, err := filepath.Rel(l.Tree, folder)
	if err != nil || !filepath.IsLocal(rel) {
		return own, nil
	}
	if rel != "." {
		tracked, err := l.git(ctx, "", "ls-tree", "-r", "--name-only", "HEAD", "--", ":(top,literal)"+rel)
		if err == nil && len(tracked) == 0 {
			exclude(folder)
			return own, nil
		}
	}
	for _, path := range []string{l.ledger(), l.escalation()} {
		exclude(path)
	}
	return append(own, ":(exclude,top,glob)"+filepath.Join(rel, "ESCALATED-*.md")), nil
}

var tests = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(^|/)(tests?|specs?|__tests__|testdata|e2e)/|[._-](test|tests|spec)\.[^/]*$|(^|/)(test_[^/]*|conftest\.py|(?-i:[^/]*Tests?\.[a-z]+))$`)
})

// builders are the files that say what a word of a gate does.
func builders(word string) []string {
	switch word {
	case "make", "gmake":
		return []string{"Makefile", "makefile", "GNUmakefile"}
	case "npm", "npx", "pnpm", "yarn", "bun":
		return []string{"package.json"}
	case "cargo":
		return []string{"Cargo.toml", "build.rs"}
	case "just":
		return []string{"justfile", "Justfile", ".justfile"}
	case "task":
		return []string{"Taskfile.yml", "Taskfile.yaml"}
	case "pytest":
		return []string{"pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"}
	case "tox":
		return []string{"tox.ini", "pyproject.toml"}
	}
	return nil
}

// checks says why a file is one that verifies the work.
func (l *looper) checks(name string) string {
	words := strings.FieldsFunc(l.Gate, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`=", r) })
	for _, w := range words {
		if slices.Contains(builders(filepath.Base(w)), filepath.Base(name)) {
			return "of the gate"
		}
		path := w
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.Dir, w)
		}
		if rel, err := filepath.Rel(l.Tree, path); err == nil && rel == name {
			return "of the gate"
		}
	}
	if tests().MatchString(name) {
		return "a test"
	}
	return ""
}

// git runs git in the tree. With an index it writes what it makes into the run's own store; it reads from there in any case.
func (l *looper) git(ctx context.Context, index string, args ...string) ([]byte, error) {
	env := gitEnvironment()
	if l.Store != "" && args[0] != "rev-parse" {
		common, err := git(ctx, l.Tree, env, "rev-parse", "--git-path", "objects")
		if err != nil {
			return nil, err
		}
		objects := strings.TrimSuffix(string(common), "\n")
		if !filepath.IsAbs(objects) {
			objects = filepath.Join(l.Tree, objects)
		}
		env = append(env, "GIT_OBJECT_DIRECTORY="+l.Store, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+fmt.Sprintf("%q", objects))
	}
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+index)
	}
	return git(ctx, l.Tree, env, args...)
}

// gitEnvironment leaves out what would send git elsewhere.
func gitEnvironment() []string {
	env := os.Environ()
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_COMMON_DIR"} {
		env = without(env, name)
	}
	return append(env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
}

func git(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.fsmonitor=false", "-c", "advice.addEmbeddedRepo=false"}, args...)...)
	cmd.Env = env
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		first, _ := io.ReadAll(io.LimitReader(&said, 300))
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(wake.Clean(string(first))))
	}
	return out.Bytes(), nil
}

// ignored reports whether git ignores a folder; where there is no git there is nothing to get into.
func ignored(ctx context.Context, dir string) bool {
	_, err := git(ctx, dir, gitEnvironment(), "check-ignore", "-q", filepath.Join(dir, ledgerFile))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode() != 1
	}
	return true
}
