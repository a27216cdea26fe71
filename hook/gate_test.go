package hook

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vx/internal/state"
)

func TestTheGateLetsThoseThroughWhoHaveSomethingToWaitFor(t *testing.T) {
	const herdr = "HERDR_WORKSPACE_ID"
	claude := stop("s1", false)
	for _, c := range []struct {
		name  string
		input string
		env   []string
		waits bool
	}{
		{"a commander's pane", claude, nil, true},
		{"switched off", claude, []string{"VX_HOOK=0"}, false},
		{"the switch at another value", claude, []string{"VX_HOOK=1"}, true},
		{"not attended", claude, []string{"CLAUDE_CODE_SESSION_ATTENDED=0"}, false},
		{"attended, whatever the entry point", claude, []string{"CLAUDE_CODE_SESSION_ATTENDED=1", "CLAUDE_CODE_ENTRYPOINT=sdk-cli"}, true},
		{"sdk", claude, []string{"CLAUDE_CODE_ENTRYPOINT=sdk-ts"}, false},
		{"mcp", claude, []string{"CLAUDE_CODE_ENTRYPOINT=mcp"}, false},
		{"bench", claude, []string{"CLAUDE_CODE_ENTRYPOINT=bench"}, false},
		{"a CI action", claude, []string{"CLAUDE_CODE_ENTRYPOINT=claude-code-github-action"}, false},
		{"an editor", claude, []string{"CLAUDE_CODE_ENTRYPOINT=claude-vscode"}, true},
		{"the desktop", claude, []string{"CLAUDE_CODE_ENTRYPOINT=claude-desktop"}, true},
		{"no entry point", claude, []string{"CLAUDE_CODE_ENTRYPOINT"}, true},
		{"headless, but told to wait", claude, []string{"CLAUDE_CODE_SESSION_ATTENDED=0", "VX_AWAIT=1"}, true},
		{"told to wait, but switched off", claude, []string{"VX_AWAIT=1", "VX_HOOK=0"}, false},
		{"told to wait, but in no pane", claude, []string{"VX_AWAIT=1", herdr}, false},
		{"in no pane", claude, []string{herdr}, false},
		{"another program under a headless Claude's environment", "", []string{"CLAUDE_CODE_SESSION_ATTENDED=0"}, true},
		{"JSON that is not Claude's", `{"hook_event_name":""}`, []string{"CLAUDE_CODE_SESSION_ATTENDED=0"}, true},
		{"a soldier's pane", claude, []string{"HERDR_PANE_ID=w1:p2", "HERDR_SOCKET_PATH=/s", "VXTEST_SOLDIER=w1:p2 /s"}, false},
		{"a pane of a soldier's name, of another herdr", claude, []string{"HERDR_PANE_ID=w1:p2", "HERDR_SOCKET_PATH=/t", "VXTEST_SOLDIER=w1:p2 /s"}, true},
		{"a pane beside a soldier's", claude, []string{"HERDR_PANE_ID=w1:p3", "HERDR_SOCKET_PATH=/s", "VXTEST_SOLDIER=w1:p2 /s"}, true},
		{"a watched session", claude, []string{"VXTEST_WATCHED=" + strconv.Itoa(os.Getpid())}, false},
		{"a session beside a watched one", claude, []string{"VXTEST_WATCHED=1"}, true},
		{"a state directory that does not exist", claude, []string{"VEXILLUM_HOME"}, true},
		{"no state directory and no pane", claude, []string{"VEXILLUM_HOME", herdr}, false},
		{"a state directory that cannot be", claude, []string{"VEXILLUM_HOME=relative"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			home := filepath.Join(w.home, ".vexillum")
			h := w.start("await", c.input, c.env...)
			if c.waits {
				if strings.Contains(c.name, "does not exist") {
					eventually(t, "it is made", func() bool { _, err := os.Stat(home + "/state.json"); return err == nil })
					t.Setenv("VEXILLUM_HOME", home)
					var err error
					if w.dir, err = state.Open(); err != nil {
						t.Fatal(err)
					}
					w.project = w.dir.Project(w.project.Root)
				}
				w.waitFor(1)
				w.terminate()
			}
			quiet(t, h.wait())
			w.waitFor(0)
			if _, err := os.Stat(home); !c.waits && err == nil {
				t.Error("a state directory was made")
			}
		})
	}
}

func TestAProjectThatOptedInWaitsOutsideOfPanes(t *testing.T) {
	w := newWorld(t)
	if err := errors.Join(w.project.Ensure(), w.project.Update(func(c *state.Config) { c.Await = "always" })); err != nil {
		t.Fatal(err)
	}
	other := w.repository("other")
	for _, c := range []struct {
		name, dir, project string
		waits              bool
	}{
		{"the project", w.project.Root, w.project.Root, true},
		{"the model has changed directory", other, w.project.Root, true},
		{"another project, from a directory of this one", w.project.Root, other, false},
		{"another project", other, other, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "sentinel", "await")
			cmd.Dir, cmd.Env = c.dir, w.with("HERDR_WORKSPACE_ID", "CLAUDE_PROJECT_DIR="+c.project)
			h := w.launch(cmd, stop("s1", false))
			if c.waits {
				w.waitFor(1)
				w.terminate()
			}
			quiet(t, h.wait())
		})
	}
}

func TestAStateDirectoryThatLostAPartIsMadeWhole(t *testing.T) {
	w := newWorld(t)
	if err := errors.Join(w.project.Ensure(), w.project.Update(func(c *state.Config) { c.Await = "always" }),
		os.RemoveAll(w.dir.Awaiters()), os.Remove(w.dir.Join("state.json"))); err != nil {
		t.Fatal(err)
	}
	h := w.start("await", stop("s1", false), "HERDR_WORKSPACE_ID")
	eventually(t, "a new directory of awaits", func() bool { _, err := os.Stat(w.dir.Awaiters()); return err == nil })
	w.waitFor(1)
	w.put("news")
	delivers(t, h.wait(), "news")
}

func TestTheProjectIsClaudesWhereClaudeAsksElseTheRepositoryAround(t *testing.T) {
	w := newWorld(t)
	other := w.repository("other")
	plain := filepath.Join(w.home, "plain")
	named, known := filepath.Join(w.home, "named"), filepath.Join(w.home, "known")
	if err := errors.Join(os.Mkdir(plain, 0o755), os.Mkdir(named, 0o755), os.Mkdir(known, 0o755), os.MkdirAll(other+"/deep/down", 0o755),
		w.dir.Project(known).Ensure()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, named, input, want string }{
		{"Claude names it", other, w.project.Root, stop("s1", false), w.project.Root},
		{"Claude names a plain directory", other, named, stop("s1", false), named},
		{"Claude names one that is gone", other, w.home + "/gone", stop("s1", false), ""},
		{"the environment is a stranger's", other + "/deep/down", w.project.Root, "", other},
		{"nothing names it, outside a repository", plain, "", "", ""},
		{"nothing names it, but it is known", known, "", "", known},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "sentinel", "await")
			cmd.Dir, cmd.Env = c.dir, w.with("CLAUDE_PROJECT_DIR="+c.named)
			h := w.launch(cmd, c.input)
			if c.want != "" {
				w.project = w.dir.Project(c.want)
				w.waitFor(1)
				w.terminate()
			}
			quiet(t, h.wait())
		})
	}
}

func TestNobodyWaitsInACamp(t *testing.T) {
	w := newWorld(t)
	camp := w.project.Join("camps", "task-1")
	if err := os.MkdirAll(camp+"/.git", 0o700); err != nil {
		t.Fatal(err)
	}
	w.env["CLAUDE_PROJECT_DIR"] = camp
	quiet(t, w.start("await", stop("s1", false)).wait())
}

func TestNobodyWaitsWhereNobodyReadsStderr(t *testing.T) {
	for _, redirection := range []string{"2>&-", "2>/dev/null"} {
		t.Run(redirection, func(t *testing.T) {
			w := newWorld(t)
			w.put("unread")
			for _, mode := range []string{"await", "drain"} {
				cmd := exec.Command("sh", "-c", `exec "$0" sentinel `+mode+" "+redirection, os.Args[0])
				cmd.Dir, cmd.Env = w.project.Root, w.with()
				quiet(t, w.launch(cmd, stop("s1", false)).wait())
			}
			w.holds(1, 0, 0)
		})
	}
}

func TestTheCommonExitDoesNotReadItsInput(t *testing.T) {
	w := newWorld(t)
	h := w.start("await", stop("s1", false)+"…", "HERDR_WORKSPACE_ID")
	quiet(t, h.wait())
	fds := []unix.PollFd{{Fd: int32(h.in.Fd()), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 0); err != nil {
		t.Fatal(err)
	}
	// A socket that is closed with something unread in it resets its peer.
	if _, err := h.in.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the input was read: %v", err)
	}
}

func TestNoInputHoldsUpTheAwait(t *testing.T) {
	for name, input := range map[string]string{
		"none, and no end":        "…",
		"JSON without an end":     stop("s1", false) + "…",
		"half of it":              `{"session_id":"s1",…`,
		"something else":          "hello\n",
		"more than a megabyte":    `{"session_id":"` + strings.Repeat("x", 150_000) + "…",
		"a value and then others": stop("s1", false) + stop("s2", false) + "…",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.start("await", input)
			e := w.waitFor(1)[0]
			if known := strings.HasPrefix(input, stop("s1", false)); known != (e.Session == "s1") {
				t.Errorf("its session is %q", e.Session)
			}
			w.put("all the same")
			delivers(t, h.wait(), "all the same")
		})
	}
}
