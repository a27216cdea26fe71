package doctor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vx/settings"
)

func TestTheDocumentedLinesAreToTheLetter(t *testing.T) {
	w := newWorld(t)
	w.init()
	w.vx()
	got := strings.Join(w.lines(Checks[:2]...), "")
	want := "[ok] sentinel Stop hook - registered in .claude/settings.json\n" +
		"[ok] sentinel Stop hook finds vx - found with a minimal environment\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// An earlier form, which finds nothing on a bare PATH.
	w.write(w.root+"/.claude/settings.json", stop(entry("vx sentinel await", fields)))
	got = w.lines(Checks[1])[0]
	want = "[warn] sentinel Stop hook finds vx - not found with a minimal environment: install vx where the hook looks (~/.local/bin or Homebrew), then run vx upgrade\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatIsWrongWithTheHookIsNamedWithItsFile(t *testing.T) {
	shared, local, user := ".claude/settings.json", ".claude/settings.local.json", "~/.claude/settings.json"
	right := entry(settings.Command, fields)
	old := entry("/opt/vx sentinel await", fields)
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"nowhere": {nil, []string{
			"warn not registered in .claude/settings.json, .claude/settings.local.json or ~/.claude/settings.json: vx init"}},
		"local": {map[string]string{local: stop(right)}, []string{"ok registered in .claude/settings.local.json"}},
		"user":  {map[string]string{user: stop(right)}, []string{"ok registered in ~/.claude/settings.json"}},
		"fields missing": {map[string]string{shared: stop(entry(settings.Command, ""))}, []string{
			"warn registered in .claude/settings.json, but asyncRewake is missing, want true, timeout is missing, want 3600: vx upgrade"}},
		"user's, wrong": {map[string]string{user: stop(entry(settings.Command, `,"asyncRewake":true,"timeout":60`))}, []string{
			"warn registered in ~/.claude/settings.json, but timeout is 60, want 3600: vx upgrade --scope user"}},
		"twice in a file": {map[string]string{shared: stop(right, right)}, []string{
			"warn registered 2 times in .claude/settings.json: vx upgrade"}},
		"the same in two": {map[string]string{shared: stop(right), user: stop(right)}, []string{
			"ok registered in .claude/settings.json", "ok registered in ~/.claude/settings.json",
			"info .claude/settings.json and ~/.claude/settings.json hold the same command, which Claude Code runs once"}},
		"two forms": {map[string]string{shared: stop(right), user: stop(old)}, []string{
			"ok registered in .claude/settings.json", "warn registered in ~/.claude/settings.json, but command is an earlier form*: vx upgrade --scope user",
			"warn .claude/settings.json and ~/.claude/settings.json register it in 2 forms, which run beside each other: vx upgrade --scope user"}},
		"a broken file": {map[string]string{shared: stop(right)[:40]}, []string{
			"warn not registered in *: mend .claude/settings.json, then run vx init"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings(c.files)
			w.says("sentinel Stop hook", c.want...)
		})
	}
}

// settings writes settings files, by their name as a person knows it.
func (w world) settings(files map[string]string) {
	w.Helper()
	for name, data := range files {
		path := w.root + "/" + name
		if rest, ok := strings.CutPrefix(name, "~"); ok {
			path = w.home + rest
		}
		w.write(path, data)
	}
}

func TestWhatClaudeCodeLeavesOutIsNamed(t *testing.T) {
	shared := ".claude/settings.json"
	for name, c := range map[string]struct {
		data string
		want []string
	}{
		"nothing":   {`{"model":"opus"}`, []string{"ok nothing in 1 file that Claude Code leaves out"}},
		"a comment": {"{\n// mine\n}", []string{"warn settings .claude/settings.json: not JSON: comments are not allowed; Claude Code ignores the whole file*: mend .claude/settings.json by hand"}},
		"truncated": {`{"hooks":`, []string{"warn settings .claude/settings.json: *ends in the middle*ignores the whole file*"}},
		"a stranger's entry": {`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"x","timeout":"60"}]}]}}`, []string{
			"warn .claude/settings.json: hooks.PreToolUse[0].hooks[0]: timeout is a string, want a number (line 1, column *); the entry is dropped, and by Claude Code 2.1.197 every hook: mend .claude/settings.json by hand"}},
		"our own entry": {stop(entry(settings.Command, `,"asyncRewake":"true"`)), []string{"warn *asyncRewake is a string*: vx upgrade"}},
		"Stop no array": {`{"hooks":{"Stop":{}}}`, []string{"warn *hooks.Stop is an object, want an array*", "warn *the event's hooks are dropped*"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings(map[string]string{shared: c.data})
			w.says("settings files", c.want...)
		})
	}
	w := newWorld(t)
	w.says("settings files", "info there are none")
	many := strings.Repeat(`{"hooks":[{"type":1}]},`, 20)
	w.settings(map[string]string{shared: stop(strings.TrimSuffix(many, ","))})
	got := w.lines(w.check("settings files"))
	if len(got) != mostDrops+1 || !strings.Contains(got[mostDrops], fmt.Sprintf("%d more of this kind", 20-mostDrops)) {
		t.Errorf("of 20 it says\n%s", strings.Join(got, ""))
	}
}

func TestTheClosestFileDecidesOnDisableAllHooks(t *testing.T) {
	shared, local, user := ".claude/settings.json", ".claude/settings.local.json", "~/.claude/settings.json"
	yes, no := `{"disableAllHooks":true}`, `{"disableAllHooks":false}`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nobody":             {nil, "ok not disabled"},
		"the user":           {map[string]string{user: yes}, `warn ~/.claude/settings.json has disableAllHooks, so no hook runs: take it out, or set "disableAllHooks": false in .claude/settings.json`},
		"the project":        {map[string]string{shared: yes}, "warn .claude/settings.json has disableAllHooks, so no hook runs: take it out"},
		"local over project": {map[string]string{shared: no, local: yes}, "warn .claude/settings.local.json has disableAllHooks, so no hook runs: take it out"},
		"overruled":          {map[string]string{shared: no, user: yes}, "ok not disabled: disableAllHooks in ~/.claude/settings.json is overruled by false in .claude/settings.json"},
		"a broken file":      {map[string]string{shared: yes + ","}, "ok not disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings(c.files)
			w.says("hooks", c.want)
		})
	}
}

func TestAFolderThatIsNotTrustedIsNamed(t *testing.T) {
	w := newWorld(t)
	w.says("project folder", "info Claude Code's record says nothing of it*")
	for answer, want := range map[string]string{"true": "ok trusted by Claude Code", "false": "warn not trusted yet*: run claude there once and accept"} {
		w.write(w.home+"/.claude.json", fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":%s}}}`, w.root, answer))
		w.says("project folder", want)
	}
	w.root = ""
	w.says("project folder")
}

func TestOutsideOfAnyProjectOnlyTheUsersFileCounts(t *testing.T) {
	w := newWorld(t)
	w.root = ""
	w.says("sentinel Stop hook", "info not registered in ~/.claude/settings.json, and this is no project")
	w.settings(map[string]string{"~/.claude/settings.json": stop(entry(settings.Command, fields))})
	w.says("sentinel Stop hook", "ok registered in ~/.claude/settings.json")
	w.must(os.Unsetenv("HOME"))
	w.says("sentinel Stop hook", "fail *: set HOME")
}
