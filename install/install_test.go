package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"vx/internal/state"
	"vx/settings"
)

// A world is a home, a state directory and a project of its own.
type world struct {
	*testing.T
	home, root string
	dir        *state.Dir
}

func newWorld(t *testing.T) world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{T: t, home: top + "/home", root: top + "/shop"}
	for _, dir := range []string{w.home + "/.claude", w.root + "/.git"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", w.home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("VEXILLUM_HOME", "")
	if w.dir, err = state.Open(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) path(name string) string { return filepath.Join(w.root, name) }

func (w world) write(name, data string) {
	w.Helper()
	path := w.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		w.Fatal(err)
	}
}

func (w world) read(name string) string {
	w.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil {
		w.Fatal(err)
	}
	return string(data)
}

func (w world) missing(name string) bool {
	_, err := os.Lstat(w.path(name))
	return errors.Is(err, os.ErrNotExist)
}

func (w world) apply(p *Plan, err error) []Touched {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	touched, err := p.Apply(context.Background(), w.dir)
	if err != nil {
		w.Fatal(err)
	}
	return touched
}

func (w world) init(scope Scope) []Touched {
	w.Helper()
	return w.apply(Init(w.dir, w.root, scope, Choices{}))
}

func (w world) uninstall(scope Scope) []Touched {
	w.Helper()
	return w.apply(Uninstall(w.dir, w.root, scope))
}

// right fails the test unless the file holds one right entry.
func (w world) right(name string) {
	w.Helper()
	r, err := settings.Inspect([]byte(w.read(name)), settings.Stop)
	if err != nil || !r.Right() {
		w.Errorf("%s: %v, %+v", name, err, r.Own)
	}
}

const (
	shared  = ".claude/settings.json"
	private = ".claude/settings.local.json"
)

func TestInitMakesWhatIsMissingAndUninstallTakesItAway(t *testing.T) {
	w := newWorld(t)
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	if !w.missing(".claude") {
		t.Fatal("a plan wrote something")
	}
	if got := p.Diff(true); !strings.HasPrefix(got, "--- /dev/null\n+++ .claude/settings.json\n") || !strings.Contains(got, "+            \"asyncRewake\": true,\n") {
		t.Errorf("diff:\n%s", got)
	}
	if got := p.Summary(); !slices.Equal(got, []string{"make the folder and the file .claude/settings.json"}) {
		t.Errorf("summary: %q", got)
	}
	project := w.dir.Project(w.root)
	got := w.apply(p, nil)
	want := []Touched{{project.Dir, "made"}, {project.Join("install.json"), "made"}, {w.path(".claude"), "made"}, {w.path(shared), "made"}}
	if !slices.Equal(got, want) {
		t.Errorf("touched %v\nwant %v", got, want)
	}
	w.right(shared)

	if p, err := Init(w.dir, w.root, Project, Choices{}); err != nil || !p.Empty() {
		t.Errorf("a second init has something to do: %v, %q", err, p.Summary())
	}
	p, err = Uninstall(w.dir, w.root, "")
	if err != nil || !strings.HasPrefix(p.Diff(true), "--- .claude/settings.json\n+++ /dev/null\n") {
		t.Errorf("%v, diff:\n%s", err, p.Diff(true))
	}
	got = w.apply(p, err)
	want = []Touched{{w.path(shared), "removed"}, {w.path(".claude"), "removed"}, {project.Join("install.json"), "removed"}}
	if !slices.Equal(got, want) {
		t.Errorf("touched %v\nwant %v", got, want)
	}
	if !w.missing(".claude") {
		t.Error("the folder stayed")
	}
	if p, err := Uninstall(w.dir, w.root, ""); err != nil || !p.Empty() {
		t.Errorf("a second uninstall has something to do: %v, %q", err, p.Summary())
	}
}

func TestUninstallKeepsAMadeFileOrFolderThatHoldsSomethingElse(t *testing.T) {
	w := newWorld(t)
	w.init(Project)
	w.write(".claude/agents/mine.md", "x")
	w.uninstall(Project)
	if !w.missing(shared) || w.read(".claude/agents/mine.md") != "x" {
		t.Error("want the file gone and the folder kept")
	}

	w.init(Local)
	w.write(private, strings.Replace(w.read(private), "{\n", "{\n  \"model\": \"opus\",\n", 1))
	w.uninstall(Local)
	if got := w.read(private); got != "{\n  \"model\": \"opus\"\n}\n" {
		t.Errorf("left %q", got)
	}
}

func TestAMadeFolderGoesWithTheLastFileThatInitMadeInIt(t *testing.T) {
	for _, scopes := range [][]Scope{{Project, Local, Project, Local}, {Local, Project, Local, Project}, {Project, Local, Local, Project}} {
		w := newWorld(t)
		w.init(scopes[0])
		w.init(scopes[1])
		w.uninstall(scopes[2])
		w.uninstall(scopes[3])
		if !w.missing(".claude") {
			t.Errorf("%v: the folder stayed", scopes)
		}
	}
}

func TestUninstallGivesBackTheBytes(t *testing.T) {
	for name, old := range map[string]string{
		"empty file":       "",
		"blank":            "\n\n",
		"empty object":     "{ }\n",
		"empty hooks":      "{\"hooks\": {\n}}",
		"empty Stop":       "{\"hooks\": {\"Stop\": [ ]}}\r\n",
		"a user's hook":    "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}]}}\n",
		"byte order mark":  "\xef\xbb\xbf{}",
		"no final newline": "{\n\t\"a\": 1.50\n}",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, scope := range []Scope{Project, Local} {
				file := map[Scope]string{Project: shared, Local: private}[scope]
				w.write(file, old)
				w.init(scope)
				w.right(file)
				w.uninstall(scope)
				if got := w.read(file); got != old {
					t.Errorf("%s: got %q, want %q", scope, got, old)
				}
			}
		})
	}
}

func TestUninstallWithoutItsStateTakesOnlyOurEntry(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "{\n  \"a\": 1,\n  \"hooks\": {}\n}\n")
	w.init(Project)
	if err := os.RemoveAll(w.dir.Path()); err != nil {
		t.Fatal(err)
	}
	p, err := Uninstall(nil, w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if got := w.read(shared); got != "{\n  \"a\": 1\n}\n" {
		t.Errorf("left %q", got)
	}
	if _, err := os.Stat(w.dir.Path()); err == nil {
		t.Error("uninstall made a state directory")
	}
}

func TestASymlinkModeAndOwnerStay(t *testing.T) {
	w := newWorld(t)
	w.write("dotfiles/claude.json", "{\n  \"a\": 1\n}\n")
	real := w.path("dotfiles/claude.json")
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.path(".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/claude.json", w.path(shared)); err != nil {
		t.Fatal(err)
	}
	p, err := Init(w.dir, w.root, Project, Choices{})
	if want := []string{".claude/settings.json is a symlink: the file that changes is " + real}; err != nil || !slices.Equal(p.Notes, want) {
		t.Errorf("%v, notes %q\nwant %q", err, p.Notes, want)
	}
	w.apply(p, err)
	w.right("dotfiles/claude.json")
	w.uninstall(Project)
	if link, err := os.Readlink(w.path(shared)); err != nil || link != "../dotfiles/claude.json" {
		t.Errorf("the symlink is %q, %v", link, err)
	}
	if fi, err := os.Stat(real); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if got := w.read("dotfiles/claude.json"); got != "{\n  \"a\": 1\n}\n" {
		t.Errorf("left %q", got)
	}
}

func TestAMadeFileIsAsOpenAsItsFolder(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(w.path(".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.init(Project)
	if fi, err := os.Stat(w.path(shared)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	w.uninstall(Project)
	if w.missing(".claude") || !w.missing(shared) {
		t.Error("want the folder kept, which init did not make, and the file gone")
	}
}

func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		make func(w world) error
		want string
	}{
		"not JSON":         {func(w world) error { w.write(shared, "{ // x\n}"); return nil }, "settings .claude/settings.json: not JSON: comments"},
		"a folder":         {func(w world) error { return os.MkdirAll(w.path(shared), 0o755) }, "settings .claude/settings.json: not a regular file"},
		"a device":         {func(w world) error { return link(w, os.DevNull) }, "settings .claude/settings.json: not a regular file"},
		"a dead symlink":   {func(w world) error { return link(w, "/nowhere/settings.json") }, "settings .claude/settings.json: a symlink to a file that is not there"},
		"a dead folder":    {func(w world) error { return os.Symlink("/nowhere", w.path(".claude")) }, "settings .claude/settings.json: its folder is a symlink to one"},
		"no folder at all": {func(w world) error { w.write(".claude", "x"); return nil }, "settings .claude/settings.json: not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := c.make(w); err != nil {
				t.Fatal(err)
			}
			if _, err := Init(w.dir, w.root, Project, Choices{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("Init: %v\nwant %s", err, c.want)
			}
		})
	}
}

func link(w world, to string) error {
	return errors.Join(os.Mkdir(w.path(".claude"), 0o755), os.Symlink(to, w.path(shared)))
}

// In a home that is a repository .claude/settings.json is the user's file, which applies to every project.
func TestAFileOfTwoScopesIsTheWiderOnes(t *testing.T) {
	w := newWorld(t)
	w.root = w.home
	_, err := Init(w.dir, w.root, Project, Choices{})
	if same, ok := errors.AsType[*SameFile](err); !ok || same.Wide.Scope != User {
		t.Errorf("init: %v", err)
	}
	w.init(User)
	if p, err := Uninstall(w.dir, w.root, ""); err != nil || !p.Empty() || len(p.Notes) != 1 {
		t.Errorf("uninstall without a scope: %v, %q, notes %q", err, p.Summary(), p.Notes)
	}
	_, err = Upgrade(w.dir, w.root, "", Choices{})
	if none, ok := errors.AsType[*NotInstalled](err); !ok || none.Fix != "vx upgrade --scope user" {
		t.Errorf("upgrade without a scope: %v", err)
	}
	w.uninstall(User)
	if !w.missing(shared) {
		t.Error("the file that init made is still there")
	}

	w.write("project/.git/HEAD", "")
	w.root = w.path("project")
	w.write(shared, "{}")
	if err := os.Symlink("settings.json", w.path(private)); err != nil {
		t.Fatal(err)
	}
	_, err = Init(w.dir, w.root, Local, Choices{})
	if same, ok := errors.AsType[*SameFile](err); !ok || same.Wide.Scope != Project {
		t.Errorf("init --scope local: %v", err)
	}
	w.init(Project)
	w.uninstall("")
	if got := w.read(shared); got != "{}" {
		t.Errorf("uninstall left %q", got)
	}
}

func TestUserScopeIsTheClientsOwnFolder(t *testing.T) {
	w := newWorld(t)
	w.apply(Init(w.dir, "", User, Choices{}))
	if _, err := os.Stat(w.home + "/.claude/settings.json"); err != nil {
		t.Error(err)
	}
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil || !slices.Contains(p.Notes, "the hook is registered in ~/.claude/settings.json too; Claude Code runs it once") {
		t.Errorf("%v, notes %q", err, p.Notes)
	}
	if p, err := Uninstall(w.dir, w.root, ""); err != nil || !p.Empty() ||
		!slices.Contains(p.Notes, "the hook is registered in ~/.claude/settings.json too: vx uninstall --scope user") {
		t.Errorf("%v, notes %q", err, p.Notes)
	}
	w.apply(Uninstall(w.dir, "", User))
	if _, err := os.Stat(w.home + "/.claude/settings.json"); err == nil {
		t.Error("the made file stayed")
	}
	t.Setenv("CLAUDE_CONFIG_DIR", w.home+"/elsewhere")
	w.apply(Init(w.dir, "", User, Choices{}))
	if _, err := os.Stat(w.home + "/elsewhere/settings.json"); err != nil {
		t.Error(err)
	}
}

func TestUpgradeMendsWhatIsThereAndAddsNothing(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "{}")
	_, err := Upgrade(w.dir, w.root, "", Choices{})
	none, ok := errors.AsType[*NotInstalled](err)
	if !ok || none.Hint() != "vx init" || none.Error() != "hook: not registered in .claude/settings.json or .claude/settings.local.json" {
		t.Errorf("%v", err)
	}
	w.write(private, `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"vexillum sentinel await"}]}]}}`)
	touched := w.apply(Upgrade(w.dir, w.root, "", Choices{}))
	w.right(private)
	if w.read(shared) != "{}" || !slices.Contains(touched, Touched{w.path(private), "changed"}) {
		t.Errorf("touched %v", touched)
	}
	if p, err := Upgrade(w.dir, w.root, "", Choices{}); err != nil || !p.Empty() {
		t.Errorf("%v, %q", err, p.Summary())
	}
	w.uninstall("")
	if got := w.read(private); got != "{}" {
		t.Errorf("left %q", got)
	}
	w.apply(Init(w.dir, "", User, Choices{}))
	if _, err := Upgrade(w.dir, w.root, "", Choices{}); !errors.As(err, &none) || none.Hint() != "vx upgrade --scope user" {
		t.Errorf("%v", err)
	}
}

func TestAwaitIsThisMachinesChoiceForTheProject(t *testing.T) {
	w := newWorld(t)
	w.init(Project)
	touched := w.apply(Init(w.dir, w.root, Project, Choices{Await: "always"}))
	project := w.dir.Project(w.root)
	if c, err := project.Config(); err != nil || c.Await != "always" {
		t.Errorf("%v, %+v", err, c)
	}
	if !slices.Equal(touched, []Touched{{project.Join("project.json"), "changed"}}) {
		t.Errorf("touched %v", touched)
	}
	if p, err := Init(w.dir, w.root, Project, Choices{Await: "always"}); err != nil || !p.Empty() {
		t.Errorf("%v, %q", err, p.Summary())
	}
	w.apply(Init(w.dir, w.root, Project, Choices{Await: "herdr"}))
	if p, err := Init(nil, w.root, Project, Choices{Await: "herdr"}); err != nil || p.Await != "" {
		t.Errorf("%v, %q", err, p.Await)
	}
	if c, err := project.Config(); err != nil || c.Await != "" {
		t.Errorf("%v, %+v", err, c)
	}
	if _, err := Init(w.dir, "", User, Choices{Await: "always"}); err == nil {
		t.Error("a choice for no project was taken")
	}
}

func TestInitSaysWhatKeepsTheHookFromRunning(t *testing.T) {
	w := newWorld(t)
	w.write(shared, `{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"vx sentinel await","timeout":"1"}]}]}}`)
	w.write(private, `{"hooks":{"PreToolUse":[{"hooks":[{"command":"x"},{"command":"x"},{"command":"x"},{"command":"x"}]}]}}`)
	if err := os.WriteFile(w.home+"/.claude/settings.json", []byte("{,}"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	const drops = "the entry is dropped, and by Claude Code 2.1.197 every hook"
	want := []string{
		".claude/settings.local.json: hooks.PreToolUse[0].hooks[0]: type is missing (line 1, column 35): " + drops,
		".claude/settings.local.json: hooks.PreToolUse[0].hooks[1]: type is missing (line 1, column 51): " + drops,
		".claude/settings.local.json: hooks.PreToolUse[0].hooks[2]: type is missing (line 1, column 67): " + drops,
		".claude/settings.local.json has more of this: vx doctor",
		"settings ~/.claude/settings.json: not JSON: invalid character ',' looking for beginning of object key string; Claude Code ignores the whole file (line 1, column 2)",
		".claude/settings.json has disableAllHooks: no hook runs",
	}
	if !slices.Equal(p.Notes, want) {
		t.Errorf("notes:\n%s\nwant:\n%s", strings.Join(p.Notes, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFileWithAnotherNameIsSaidToHaveOne(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "{}")
	if err := os.Link(w.path(shared), w.path("backup.json")); err != nil {
		t.Fatal(err)
	}
	p, err := Init(w.dir, w.root, Project, Choices{})
	if want := []string{".claude/settings.json has another name, a hard link, under which the old content stays"}; err != nil || !slices.Equal(p.Notes, want) {
		t.Errorf("%v, notes %q\nwant %q", err, p.Notes, want)
	}
	w.apply(p, err)
	if got := w.read("backup.json"); got != "{}" {
		t.Errorf("the other name has %q", got)
	}
}

func TestTheDiffOfAFileOnOneLineShowsTheChange(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("é", 50_000)
	w.write(shared, `{"a":"`+long+`","hooks":{"Stop":[{"hooks":[{"command":"vx sentinel await","type":"command"}]}]},"b":"`+long+`"}`)
	p, err := Upgrade(w.dir, w.root, "", Choices{})
	if err != nil {
		t.Fatal(err)
	}
	got := p.Diff(true)
	if len(got) > 4*longest || !strings.Contains(got, `"command":"vx sentinel await"`) || !strings.Contains(got, `"timeout":3600`) || strings.Contains(got, "\ufffd") {
		t.Errorf("the diff has %d bytes:\n%.3000s", len(got), got)
	}
	w.init(Local)
	w.write(private, strings.Replace(w.read(private), "{", `{ `+strings.Repeat(" ", 10*longest), 1))
	if p, err = Uninstall(w.dir, w.root, Local); err != nil || len(p.Diff(true)) > 3*longest {
		t.Errorf("%v, the diff of a removal has %d bytes", err, len(p.Diff(true)))
	}
}

func TestTheDiffCannotSteerATerminal(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "{\r\n  \"a\": \"\u009b31m\u202e\u007f\"\r\n}\r\n")
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Diff(true); strings.ContainsAny(got, "\u009b\u202e\u007f\r") || !strings.Contains(got, `\u009b31m\u202e\u007f`) {
		t.Errorf("diff %q", got)
	}
}

func TestOnlyVersionsThatWereSeenToAreTrustedWithANewFolder(t *testing.T) {
	for version, want := range map[string]bool{
		"2.1.197": false, "2.1.331": false, "2.1.332": true, "2.1.400": true, "2.2.0": true, "3.0.0": true,
		"1.9.999": false, "": false, "2.1": false, "2.1.x": false,
	} {
		if seesNewFolder(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

func TestAProjectThatGitDoesNotShowIsMadeKnown(t *testing.T) {
	w := newWorld(t)
	w.root = w.path("packages/a")
	w.write(shared, "{}")
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil || !p.Remember {
		t.Fatalf("%v, %+v", err, p)
	}
	w.apply(p, nil)
	if root, _, err := w.dir.Resolve(w.path(".claude")); err != nil || root != w.root {
		t.Errorf("found %s, %v", root, err)
	}
	if p, err := Init(w.dir, w.root, Project, Choices{}); err != nil || !p.Empty() {
		t.Errorf("%v, %q", err, p.Summary())
	}
	if p, err := Init(w.dir, w.root, User, Choices{}); err != nil || p.Remember {
		t.Errorf("%v, %q", err, p.Summary())
	}
}

func TestAPathIsShownAsAPersonKnowsIt(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{
		w.path(shared):          shared,
		w.home + "/.vexillum/x": "~/.vexillum/x",
		"/etc/x":                "/etc/x",
	} {
		if got := Shown(w.root, path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// Whatever has become of the record, uninstall takes out our entry and nothing else.
func TestADamagedRecordDoesNoHarm(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"not JSON":    func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"a FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder":    func(path string) error { return os.Mkdir(path, 0o700) },
		"other undos": func(path string) error { return record{Path: path, Undo: &settings.Undo{}}.write(path) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(shared, "{ \"a\": 1 }")
			w.init(Project)
			path := w.dir.Project(w.root).Join("install.json")
			if err := errors.Join(os.Remove(path), damage(path)); err != nil {
				t.Fatal(err)
			}
			w.uninstall("")
			if got := w.read(shared); got != "{ \"a\": 1 }" {
				t.Errorf("left %q", got)
			}
		})
	}
}

func TestTheUndoOfAnotherFileIsNotUsed(t *testing.T) {
	w := newWorld(t)
	w.apply(Init(w.dir, "", User, Choices{}))
	data, err := os.ReadFile(w.home + "/.claude/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	w.write("config/settings.json", string(data))
	t.Setenv("CLAUDE_CONFIG_DIR", w.path("config"))
	w.apply(Uninstall(w.dir, "", User))
	if got := w.read("config/settings.json"); got != "{}\n" {
		t.Errorf("left %q", got)
	}
}
