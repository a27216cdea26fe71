package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vx/internal/proc"
	"vx/settings"
)

// try is tryMinimal.
func (w world) try(command string, limit time.Duration) outcome {
	w.Helper()
	o, err := tryMinimal(w.Context(), command, w.home, limit)
	w.must(err)
	return o
}

func (w world) read(path string) string {
	w.Helper()
	data, err := os.ReadFile(path)
	w.must(err)
	return string(data)
}

func TestTheCommandIsTriedWithNextToNothing(t *testing.T) {
	w := newWorld(t)
	t.Setenv("CLAUDE_PROJECT_DIR", w.root)
	t.Setenv("HERDR_WORKSPACE_ID", "w1")
	o := w.try(`env > "$HOME/env"; pwd -P > "$HOME/pwd"; ls -A > "$HOME/ls"; cat > "$HOME/stdin"; echo loud; ps -o pgid= -p $$ > "$HOME/group" || true; echo $$ >> "$HOME/group"`, minimalLimit)
	if o.ranOn || o.status != 0 || o.stderr != "" {
		t.Fatalf("%+v", o)
	}
	var names []string
	for line := range strings.Lines(w.read(w.home + "/env")) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "PWD", "OLDPWD", "SHLVL", "_": // the shell's own
		default:
			names = append(names, name+"="+value)
		}
	}
	slices.Sort(names)
	if want := []string{"HOME=" + w.home, "PATH=/usr/bin:/bin"}; !slices.Equal(names, want) {
		t.Errorf("environment %q, want %q", names, want)
	}
	if w.read(w.home+"/ls") != "" || w.read(w.home+"/stdin") != "" {
		t.Errorf("the directory holds %q, stdin %q", w.read(w.home+"/ls"), w.read(w.home+"/stdin"))
	}
	dir := strings.TrimSpace(w.read(w.home + "/pwd"))
	if dir == w.root || !strings.HasPrefix(filepath.Base(dir), "vx-doctor-") {
		t.Errorf("it ran in %s", dir)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was left", dir)
	}
	group := strings.Fields(w.read(w.home + "/group"))
	if len(group) == 2 && group[0] != group[1] {
		t.Errorf("it ran in the group %s, not in its own", group[0])
	}
}

func TestFoundIsExitZeroAndASilentStderr(t *testing.T) {
	w := newWorld(t)
	for command, want := range map[string]string{
		"true":           "ok found with a minimal environment",
		"echo x":         "ok found with a minimal environment",
		"echo x >&2":     `warn not found with a minimal environment (exit 0, "x"): ` + whereVX,
		"exit 3":         `warn not found with a minimal environment (exit 3, ""): ` + whereVX,
		"exit 2":         `warn not found with a minimal environment (exit 2, ""): ` + whereVX,
		"nosuchprogram1": "warn not found with a minimal environment: " + whereVX,
		// The wrapper without the places of this machine.
		strings.NewReplacer("/opt/homebrew", w.tmp, "/usr/local", w.tmp, "/home/linuxbrew", w.tmp).Replace(settings.Command): "warn not found with a minimal environment: " + whereVX,
	} {
		r := w.try(command, minimalLimit).results("")[0]
		if got := string(r.Level) + " " + r.Message; got != strings.TrimSuffix(want, ": "+whereVX) || (r.Level == Warn) != (r.Fix == whereVX) {
			t.Errorf("%s: %s: %s, want %s", command, got, r.Fix, want)
		}
	}
}

func TestAHookThatRunsOnIsFoundAndEndedWithAllItStarted(t *testing.T) {
	w := newWorld(t)
	for name, command := range map[string]string{
		"one that leaves":    `trap 'echo bye > "$HOME/bye"; exit 0' TERM; echo $$ >> "$HOME/pids"; sleep 600 & wait`,
		"one with children":  `sleep 600 & echo $! >> "$HOME/pids"; sleep 600 & echo $! >> "$HOME/pids"; wait`,
		"one that stays":     `trap "" TERM; echo $$ >> "$HOME/pids"; while :; do sleep 1; done`,
		"one that was ended": `sleep 600 & echo $! >> "$HOME/pids"`,
	} {
		w.must(os.RemoveAll(w.home + "/pids"))
		o := w.try(command, 500*time.Millisecond)
		if want := name != "one that was ended"; o.ranOn != want {
			t.Errorf("%s: %+v", name, o)
		}
		for _, field := range strings.Fields(w.read(w.home + "/pids")) {
			pid, err := strconv.Atoi(field)
			w.must(err)
			id, err := proc.Find(pid)
			for deadline := time.Now().Add(10 * time.Second); err == nil && id.Status() != proc.Gone && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
			if err == nil && id.Status() != proc.Gone {
				t.Errorf("%s: process %d lives", name, pid)
			}
		}
	}
	if w.read(w.home+"/bye") != "bye\n" {
		t.Error("the one that leaves was not let")
	}
}

func TestWhatDoctorDidNotStartIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	// Who leaves the group is nobody's to end.
	o := w.try(os.Args[0]+` away > "$HOME/pid"`, 5*time.Second)
	if o.ranOn || o.status != 0 {
		t.Errorf("%+v", o)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(w.read(w.home + "/pid")))
	w.must(err)
	if id, err := proc.Find(pid); err != nil || id.Status() == proc.Gone {
		t.Error("a process outside the group was ended")
	} else {
		syscall.Kill(pid, syscall.SIGKILL) // found a moment ago, and started by this test
	}
}

func TestAnInterruptEndsTheTrial(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := tryMinimal(ctx, "sleep 600", w.home, time.Hour); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// The wrapper is run for real, by an await that would take the wake if it were let.
func TestTheTrialNeverClaimsAWake(t *testing.T) {
	for name, arrange := range map[string]func(w world) string{
		"HOME is a repository": func(w world) string {
			w.must(os.Mkdir(w.home+"/.git", 0o700))
			return w.home
		},
		"HOME is a project without one": func(w world) string { return w.home },
		"TMPDIR is in the project": func(w world) string {
			w.must(os.Rename(w.tmp, w.root+"/tmp"))
			w.Setenv("TMPDIR", w.root+"/tmp")
			return w.root
		},
		"TMPDIR is a project": func(w world) string {
			w.Setenv("TMPDIR", w.home)
			return w.home
		},
		"there is no other place": func(w world) string {
			w.Cleanup(func() { places = usual })
			dir := filepath.Join(w.home, "tmp")
			w.must(os.Mkdir(dir, 0o700))
			w.Setenv("TMPDIR", dir)
			places = func() []string { return []string{dir} }
			return w.home
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.vx()
			root := arrange(w)
			q := w.project(root)
			w.put(q, "not for doctor")
			w.root = root
			w.init()
			before := w.tree(w.home + "/.vexillum")
			w.says("sentinel Stop hook finds vx", "ok found with a minimal environment")
			if n, err := q.Count(); err != nil || n != 1 {
				t.Errorf("%d wakes wait, %v", n, err)
			}
			if after := w.tree(w.home + "/.vexillum"); !slices.Equal(before, after) {
				t.Errorf("the state directory has changed:\n%s", strings.Join(after, "\n"))
			}
		})
	}
	// What is guarded against is there: in the project the same command takes the wake.
	w := newWorld(t)
	w.vx()
	q := w.project(w.root)
	w.put(q, "for whoever asks there")
	cmd := shell(w, settings.Command)
	cmd.Stderr = new(head)
	c, err := start(cmd)
	w.must(err)
	c.await(t.Context(), 10*time.Second)
	w.must(c.finish())
	if cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("the command ended with %d in the project itself, want 2", cmd.ProcessState.ExitCode())
	}
}

var usual = places
