package install

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vx/settings"
)

const piPath = ".pi/extensions/vexillum-wake.ts"

// chosen plans an init for some harnesses.
func (w world) chosen(scope Scope, harnesses ...Harness) (*Plan, error) {
	return Init(w.dir, w.root, scope, Choices{Harnesses: harnesses})
}

func TestAnExtensionIsMadeWithWhatItNeedsAndTakenOutWithIt(t *testing.T) {
	for h, name := range map[Harness]string{Pi: piPath, OpenCode: ".opencode/plugin/vexillum-wake.ts"} {
		w := newWorld(t)
		w.apply(w.chosen(Project, h))
		if got := w.read(name); got != string(h.current()) || !strings.HasPrefix(got, "// vexillum-wake ") {
			t.Errorf("%s is\n%s", name, got)
		}
		if !w.missing(".claude") {
			t.Errorf("%s: Claude Code got something too", h)
		}
		if p, err := w.chosen(Project, h); err != nil || !p.Empty() || !slices.Equal(p.Standing(), []string{name}) {
			t.Errorf("%s: a second init is not empty: %+v, %v", h, p, err)
		}
		w.uninstall("")
		top, _, _ := strings.Cut(name, "/")
		if !w.missing(top) {
			t.Errorf("%s is left", top)
		}
		if left, _ := filepath.Glob(w.dir.Project(w.root).Join("install*")); left != nil {
			t.Errorf("the state directory keeps %v", left)
		}
	}
}

func TestHarnessesCanBeChosenTogether(t *testing.T) {
	w := newWorld(t)
	w.apply(w.chosen(Project, Claude, Pi))
	w.right(".claude/settings.json")
	if w.missing(piPath) || !w.missing(".opencode") {
		t.Error("not Pi, or OpenCode too")
	}
	w.uninstall("")
	if !w.missing(".claude") || !w.missing(".pi") {
		t.Error("something is left")
	}
}

func TestWhatSomebodyElseHasInItsFoldersStays(t *testing.T) {
	w := newWorld(t)
	w.write(".pi/settings.json", "{}")
	w.apply(w.chosen(Project, Pi))
	w.write(".pi/extensions/other.ts", "mine")
	w.uninstall("")
	if w.read(".pi/settings.json") != "{}" || w.read(".pi/extensions/other.ts") != "mine" || !w.missing(piPath) {
		t.Error("it is not as it was")
	}
}

// link makes a symbolic link in the project.
func (w world) link(name, to string) {
	w.Helper()
	if err := os.Symlink(to, filepath.Join(w.root, name)); err != nil {
		w.Fatal(err)
	}
}

func TestWhatStandsWhereOtherHarnessesLookIsInNobodysWay(t *testing.T) {
	for name, put := range map[string]func(w world){
		"a file":      func(w world) { w.write(".pi", "mine") },
		"a link loop": func(w world) { w.link(".pi", filepath.Join(w.root, ".pi")) },
		"a dead link": func(w world) { w.write(".pi/extensions/.keep", ""); w.link(piPath, "nowhere") },
	} {
		w := newWorld(t)
		put(w)
		w.apply(w.chosen(Project, Claude))
		if _, err := w.chosen(Project, Claude, Pi); err == nil {
			t.Errorf("%s: Pi can be chosen", name)
		}
		if _, err := Upgrade(w.dir, w.root, "", Choices{}); err != nil {
			t.Errorf("%s: upgrade: %v", name, err)
		}
		w.uninstall("")
		if !w.missing(".claude") {
			t.Errorf("%s: the hook is still there", name)
		}
		if _, err := os.Lstat(filepath.Join(w.root, ".pi")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFoldersThatWereMadeBehindALinkAreRemoved(t *testing.T) {
	w := newWorld(t)
	elsewhere := t.TempDir()
	w.link(".pi", elsewhere)
	w.apply(w.chosen(Project, Pi))
	if _, err := os.Stat(filepath.Join(elsewhere, "extensions/vexillum-wake.ts")); err != nil {
		t.Error(err)
	}
	w.uninstall("")
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestWhatVxDidNotWriteIsRefusedAndStays(t *testing.T) {
	for name, content := range map[string]string{
		"a file of somebody else's": "export default 1\n",
		"one that was changed":      string(Pi.current()) + "// mine\n",
		"nothing in it":             "",
	} {
		w := newWorld(t)
		w.write(piPath, content)
		var refusal *NotOurs
		if _, err := w.chosen(Project, Pi); !errors.As(err, &refusal) || !strings.HasPrefix(err.Error(), "extension "+piPath+": ") {
			t.Errorf("%s: init: %v", name, err)
		}
		if _, err := Upgrade(w.dir, w.root, "", Choices{}); err == nil {
			t.Errorf("%s: upgrade finds something to do", name)
		}
		if p, err := Uninstall(w.dir, w.root, ""); err != nil || !p.Empty() {
			t.Errorf("%s: uninstall: %+v, %v", name, p, err)
		}
		if w.read(piPath) != content {
			t.Errorf("%s: it was changed", name)
		}
	}
}

func TestUpgradeKeepsAnExtensionCurrent(t *testing.T) {
	w := newWorld(t)
	earlier := []byte("export default function () { /* as it was */ }\n")
	w.write(piPath, string(headline(earlier))+string(earlier))
	w.apply(Upgrade(w.dir, w.root, "", Choices{}))
	if w.read(piPath) != string(Pi.current()) {
		t.Errorf("after an upgrade: %s", w.read(piPath))
	}
	// An init for another harness mends it on the way.
	w.write(piPath, string(headline(earlier))+string(earlier))
	w.init(Project)
	if w.read(piPath) != string(Pi.current()) {
		t.Errorf("after an init: %s", w.read(piPath))
	}
}

func TestAnExtensionThatChangesAfterThePlanIsKept(t *testing.T) {
	w := newWorld(t)
	w.apply(w.chosen(Project, Pi))
	p, err := Uninstall(w.dir, w.root, "")
	if err != nil {
		t.Fatal(err)
	}
	w.write(piPath, "mine\n")
	if _, err := p.Apply(t.Context(), w.dir); err == nil {
		t.Error("nothing is said")
	}
	if w.read(piPath) != "mine\n" {
		t.Error("it is gone")
	}
	p, err = w.chosen(Project, OpenCode)
	if err != nil {
		t.Fatal(err)
	}
	w.write(".opencode/plugin/vexillum-wake.ts", "mine\n")
	if _, err := p.Apply(t.Context(), w.dir); err == nil || w.read(".opencode/plugin/vexillum-wake.ts") != "mine\n" {
		t.Errorf("what came meanwhile was written over: %v", err)
	}
}

func TestExtensionsOfTheUserStandWhereTheHarnessLooks(t *testing.T) {
	w := newWorld(t)
	t.Setenv("PI_CODING_AGENT_DIR", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	w.apply(Init(w.dir, "", User, Choices{Harnesses: []Harness{Pi, OpenCode}}))
	for _, path := range []string{w.home + "/.pi/agent/extensions/vexillum-wake.ts", w.home + "/.config/opencode/plugin/vexillum-wake.ts"} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	w.apply(Uninstall(w.dir, "", User))
	for _, path := range []string{w.home + "/.pi", w.home + "/.config"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	t.Setenv("PI_CODING_AGENT_DIR", w.home+"/agent")
	t.Setenv("XDG_CONFIG_HOME", w.home+"/etc")
	w.apply(Init(w.dir, "", User, Choices{Harnesses: []Harness{Pi, OpenCode}}))
	for _, path := range []string{w.home + "/agent/extensions/vexillum-wake.ts", w.home + "/etc/opencode/plugin/vexillum-wake.ts"} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.chosen(Local, Pi); err == nil || !strings.Contains(err.Error(), "Pi: has no extensions of scope local") {
		t.Errorf("of one checkout: %v", err)
	}
}

func TestALinkToAnExtensionIsLeftToItsOwner(t *testing.T) {
	w := newWorld(t)
	w.write("dotfiles/wake.ts", string(Pi.current()))
	if err := os.MkdirAll(w.path(".pi/extensions"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.path("dotfiles/wake.ts"), w.path(piPath)); err != nil {
		t.Fatal(err)
	}
	if p, err := w.chosen(Project, Pi); err != nil || !p.Empty() {
		t.Errorf("a current one behind a link: %+v, %v", p, err)
	}
	p, err := Uninstall(w.dir, w.root, "")
	if err != nil || !p.Empty() || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "symlink") {
		t.Errorf("uninstall: %+v, %v", p, err)
	}
}

func TestTheHookForFailedTurnsComesAndGoesOnItsOwn(t *testing.T) {
	w := newWorld(t)
	before := `{"model": "opus"}` + "\n"
	w.write(".claude/settings.json", before)
	on := func(choice string) {
		t.Helper()
		w.apply(Init(w.dir, w.root, Project, Choices{AfterFailure: choice}))
		w.right(".claude/settings.json")
		r, err := settings.Inspect([]byte(w.read(".claude/settings.json")), settings.StopFailure)
		if err != nil || r.Right() != (choice == "on") || len(r.Own) > 0 != (choice == "on") {
			t.Errorf("%q: %v, %+v", choice, err, r.Own)
		}
		if AfterFailure(w.root, Project) != (choice == "on") {
			t.Errorf("%q: said to be otherwise", choice)
		}
	}
	on("")
	once := w.read(".claude/settings.json")
	on("on")
	both := w.read(".claude/settings.json")
	if p, err := Init(w.dir, w.root, Project, Choices{}); err != nil || !p.Empty() {
		t.Errorf("without a choice it does not stay: %+v, %v", p, err)
	}
	on("off")
	if w.read(".claude/settings.json") != once {
		t.Errorf("after off:\n%s", w.read(".claude/settings.json"))
	}
	on("on")
	if w.read(".claude/settings.json") != both {
		t.Errorf("after on again:\n%s", w.read(".claude/settings.json"))
	}
	w.uninstall("")
	if w.read(".claude/settings.json") != before {
		t.Errorf("after an uninstall:\n%s", w.read(".claude/settings.json"))
	}
}

func TestAFileThatInitMadeWithBothHooksIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.apply(Init(w.dir, w.root, Project, Choices{AfterFailure: "on"}))
	w.right(".claude/settings.json")
	w.uninstall("")
	if !w.missing(".claude") {
		t.Errorf("left: %s", w.read(".claude/settings.json"))
	}
}

func TestUpgradeMendsTheHookForFailedTurnsAndAddsItWhenAsked(t *testing.T) {
	w := newWorld(t)
	w.init(Project)
	w.apply(Upgrade(w.dir, w.root, "", Choices{AfterFailure: "on"}))
	w.write(".claude/settings.json", strings.ReplaceAll(w.read(".claude/settings.json"), "3600", "60"))
	w.apply(Upgrade(w.dir, w.root, "", Choices{}))
	if got := w.read(".claude/settings.json"); strings.Count(got, "3600") != 2 || strings.Contains(got, ": 60") {
		t.Errorf("after an upgrade:\n%s", got)
	}
}

func TestNudgeIsAChoiceOfThisMachine(t *testing.T) {
	w := newWorld(t)
	nudge := func() bool {
		c, err := w.dir.Project(w.root).Config()
		if err != nil {
			t.Fatal(err)
		}
		return c.Nudge
	}
	w.apply(Init(w.dir, w.root, Project, Choices{Nudge: "on", Await: "always"}))
	if !nudge() {
		t.Error("it is off")
	}
	if p, err := Init(w.dir, w.root, Project, Choices{Nudge: "on"}); err != nil || !p.Empty() {
		t.Errorf("a second time: %+v, %v", p, err)
	}
	w.apply(Init(w.dir, w.root, Project, Choices{Nudge: "off"}))
	if c, _ := w.dir.Project(w.root).Config(); c.Nudge || c.Await != "always" {
		t.Errorf("after off: %+v", c)
	}
}

func TestTheHarnessesInUseAreFound(t *testing.T) {
	w := newWorld(t)
	if got := Found(w.root, Project); got != nil {
		t.Errorf("found %v where there is none", got)
	}
	w.write("opencode.json", "{}")
	w.write(".pi/settings.json", "{}")
	if got := Found(w.root, Project); !slices.Equal(got, []Harness{Pi, OpenCode}) {
		t.Errorf("found %v", got)
	}
	w.apply(w.chosen(Project, Pi))
	if got := Found(w.root, Project); !slices.Equal(got, []Harness{OpenCode}) {
		t.Errorf("found %v with one that is installed", got)
	}
	other := newWorld(t)
	if err := os.MkdirAll(other.home+"/.pi/agent", 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Found(other.root, Project); !slices.Equal(got, []Harness{Pi}) {
		t.Errorf("found %v where the user has Pi", got)
	}
}
