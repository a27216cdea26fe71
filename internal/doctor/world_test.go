package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vx/hook"
	"vx/internal/state"
	"vx/internal/wake"
	"vx/settings"
)

// The test binary is vx, as far as the hook and a sentinel that does nothing go. Called "away" it starts a process that leaves its group.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "away" {
		away := exec.Command("sleep", "600")
		away.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := away.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(away.Process.Pid)
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "sentinel" {
		playSentinel()
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "sentinel" {
		os.Exit(hook.Main(os.Args[2]))
	}
	os.Exit(m.Run())
}

// A world is a HOME, a temporary directory and a project of its own.
type world struct {
	*testing.T
	home, tmp, root string
}

func newWorld(t *testing.T) world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{t, top + "/home", top + "/tmp", top + "/shop"}
	for _, dir := range []string{w.home, w.tmp, w.root + "/.git"} {
		w.must(os.MkdirAll(dir, 0o700))
	}
	t.Setenv("HOME", w.home)
	t.Setenv("TMPDIR", w.tmp)
	for _, name := range []string{"VEXILLUM_HOME", "CLAUDE_CONFIG_DIR", "HERDR_ENV", "HERDR_SOCKET_PATH", "HERDR_SESSION", "HERDR_WORKSPACE_ID", "HERDR_TAB_ID", "HERDR_PANE_ID", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "VX_HOOK"} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", "/usr/bin:/bin")
	return w
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w world) write(path, data string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path, []byte(data), 0o600))
}

// program makes a shell script.
func (w world) program(path, script string) {
	w.Helper()
	w.write(path, "#!/bin/sh\n"+script+"\n")
	w.must(os.Chmod(path, 0o755))
}

// vx puts the real hook where the wrapper looks.
func (w world) vx() {
	w.Helper()
	w.program(w.home+"/.local/bin/vx", "exec "+os.Args[0]+` "$@"`)
}

// entry is an entry of hooks.Stop.
func entry(command, more string) string {
	return fmt.Sprintf(`{"hooks":[{"type":"command","command":%q%s}]}`, command, more)
}

const fields = `,"asyncRewake":true,"timeout":3600`

func stop(entries ...string) string {
	return `{"hooks":{"Stop":[` + strings.Join(entries, ",") + `]}}`
}

// init registers the hook in the project's shared settings.
func (w world) init() {
	w.Helper()
	w.write(w.root+"/.claude/settings.json", stop(entry(settings.Command, fields)))
}

// project is the project, known and waiting everywhere.
func (w world) project(root string) *wake.Queue {
	w.Helper()
	d, err := state.Open()
	w.must(err)
	q := wake.Open(d.Project(root))
	w.must(q.Ensure())
	w.must(q.Project.Update(func(c *state.Config) { c.Await = "always" }))
	return q
}

func (w world) put(q *wake.Queue, title string) {
	w.Helper()
	_, err := q.Put(w.Context(), wake.Wake{Title: title})
	w.must(err)
}

// lines runs checks and prints what they find.
func (w world) lines(checks ...Check) []string {
	w.Helper()
	var b strings.Builder
	w.must(Print(&b, Examine(w.Context(), Meet(w.root), checks)))
	return slices.Collect(strings.Lines(b.String()))
}

// check is the check of a name.
func (w world) check(name string) Check {
	w.Helper()
	for _, c := range slices.Concat(Checks, Probes) {
		if c.Name == name {
			return c
		}
	}
	w.Fatalf("no check is called %q", name)
	return Check{}
}

// says runs the check of a name, and compares its lines, without "] NAME - ", and with * for anything.
func (w world) says(name string, want ...string) {
	w.Helper()
	got := w.lines(w.check(name))
	for i := range got {
		got[i] = strings.TrimSuffix(strings.Replace(got[i], "] "+name+" - ", " ", 1), "\n")
	}
	ok := len(got) == len(want)
	for i := range want {
		ok = ok && like("["+want[i], got[i])
	}
	if !ok {
		w.Errorf("%s says\n%s\nwant\n[%s", name, strings.Join(got, "\n"), strings.Join(want, "\n["))
	}
}

// like compares text with a pattern in which * is anything.
func like(pattern, text string) bool {
	first, rest, any := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !any {
		return ok && text == ""
	}
	for i := range len(text) + 1 {
		if like(rest, text[i:]) {
			return true
		}
	}
	return false
}

// tree is every path, time and mode below a directory.
func (w world) tree(dir string) []string {
	w.Helper()
	var all []string
	w.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			all = append(all, fmt.Sprintf("%s %s %d %s", path, fi.Mode(), fi.Size(), fi.ModTime().Format(time.RFC3339Nano)))
		}
		return err
	}))
	return all
}
