package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// shell is a command run by sh in the project with little more than HOME.
func shell(w world, command string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = w.root
	cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/bin:/bin"}
	return cmd
}

func TestDoctorWritesNothingAndLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.init()
	w.vx()
	w.program(w.home+"/bin/claude", "echo '2.1.332 (Claude Code)'")
	t.Setenv("PATH", w.home+"/bin:/usr/bin:/bin")
	q := w.project(w.root)
	w.put(q, "waits")
	d, err := q.Claim(t.Context())
	w.must(err)
	w.must(d.Close()) // its owner died
	w.put(q, "waits too")
	w.write(q.Dir()+"/.bad/x.json", "{")
	dead := q.Project.State().Awaiters() + "/" + q.Project.ID() + "-1-00000000"
	w.write(dead+".json", "{}")
	w.write(dead+".lock", "")
	w.project("/nowhere/at/all")
	w.write(w.home+"/.vexillum/hook.log", "x\n")
	before := slices.Concat(w.tree(w.home), w.tree(w.root), w.tree(w.tmp)[1:])
	w.lines(Checks...)
	after := slices.Concat(w.tree(w.home), w.tree(w.root), w.tree(w.tmp)[1:])
	if !slices.Equal(before, after) {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	w.lines(Probes...)
	if left := w.tree(w.tmp)[1:]; len(left) > 0 {
		t.Errorf("the probe left %q", left)
	}
}

// The hook, which doctor would run, logs what is wrong with the state directory to the user's cache.
func TestWithAStateDirectoryThatIsRefusedDoctorWritesNothingEither(t *testing.T) {
	w := newWorld(t)
	w.init()
	w.vx()
	w.project(w.root)
	w.must(os.Chmod(w.home+"/.vexillum", 0o770))
	before := slices.Concat(w.tree(w.home), w.tree(w.root), w.tree(w.tmp)[1:])
	w.says("sentinel Stop hook finds vx", "info not tried, as the hook would log that state: *others may write to it*")
	w.lines(Checks...)
	if after := slices.Concat(w.tree(w.home), w.tree(w.root), w.tree(w.tmp)[1:]); !slices.Equal(before, after) {
		t.Errorf("before\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

func TestWithoutAStateDirectoryDoctorMakesNone(t *testing.T) {
	w := newWorld(t)
	w.says("state directory", "info none yet*")
	w.lines(Checks...)
	if _, err := os.Stat(w.home + "/.vexillum"); err == nil {
		t.Error("it was made")
	}
}

func TestAStateDirectoryThatIsNotInOrderIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w world, dir string) error
		want  string
	}{
		"fine":             {func(world, string) error { return nil }, "ok ~/.vexillum, yours alone, on *"},
		"others may write": {func(_ world, dir string) error { return os.Chmod(dir, 0o770) }, "fail state: *: others may write to it (mode 0770): chmod 700 *"},
		"others may read":  {func(_ world, dir string) error { return os.Chmod(dir, 0o755) }, "warn others may read ~/.vexillum (mode 0755): chmod 700 *"},
		"deeper down":      {func(_ world, dir string) error { return os.Chmod(dir+"/projects", 0o702) }, "fail others may write to ~/.vexillum/projects (mode 0702): chmod 700 *"},
		"another layout": {func(w world, dir string) error {
			return os.WriteFile(dir+"/state.json", []byte(`{"layout":7}`), 0o600)
		}, "fail state: *: layout 7, and this vx knows layout 1: install the newest vx*"},
		"a file": {func(_ world, dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, "fail state: *: not a directory: move it away*"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.project(w.root)
			w.must(c.spoil(w, w.home+"/.vexillum"))
			w.says("state directory", c.want)
		})
	}
}

func TestWhatTheQueueIsBuiltOnIsTried(t *testing.T) {
	if errs := tryPrimitives(t.TempDir()); len(errs) > 0 {
		t.Error(errs)
	}
	errs := tryPrimitives(filepath.Join(t.TempDir(), "none"))
	if len(errs) != 4 {
		t.Errorf("in a directory that is not there: %v", errs)
	}
	got := tried(append(errs[:1], fmt.Errorf("exchanging: %w", errors.ErrUnsupported)), "")
	if len(got) != 2 || got[0].Level != Fail || got[1].Level != Info {
		t.Errorf("%+v", got)
	}
	w := newWorld(t)
	w.says("locks, FIFOs and renames")
	w.project(w.root)
	w.says("locks, FIFOs and renames", "ok work")
	w.says("probe of the state directory", "ok locks, FIFOs and renames work there")
	if err := tryDirLock(w.home + "/.vexillum"); err != nil {
		t.Error(err)
	}
	if err := tryDirLock(w.home + "/none"); err == nil {
		t.Error("a directory that is not there was locked")
	}
}

func TestADeliveryThatHangsIsNamed(t *testing.T) {
	w := newWorld(t)
	q := w.project(w.root)
	w.put(q, "a")
	d, err := q.Claim(t.Context())
	w.must(err)
	w.must(d.Note(wake.Recipient{Client: proc.ID{PID: 42, Start: 1}}))
	w.says("deliveries", "ok none hangs")
	long := time.Now().Add(-2 * longAgo)
	w.must(os.Chtimes(q.Dir()+"/.claimed/"+d.Token, long, long))
	w.says("deliveries", "warn wake "+d.Wakes[0].ID+" is on its way to process 42 since *: end the await*")
	w.must(d.Close())
	w.says("deliveries", "ok none hangs") // whoever comes next settles it
}

func TestQuarantinedWakesAreNamed(t *testing.T) {
	w := newWorld(t)
	q := w.project(w.root)
	w.says("quarantined wakes", "ok none")
	w.write(q.Dir()+"/.bad/x.json", "{")
	w.says("quarantined wakes", `warn 1 in ~/.vexillum/projects/shop-*/wakes/.bad, the newest is "x.json": *`)
}

func TestABrakeIsNamed(t *testing.T) {
	w := newWorld(t)
	q := w.project(w.root)
	w.says("brake", "ok off")
	self := proc.Self()
	w.write(q.Project.Join("clients", fmt.Sprintf("%d-%d.json", self.PID, self.Start)), fmt.Sprintf(
		`{"client":{"pid":%d,"start":%d},"boot":%q,"delivered_ns":[%d],"doubled":2}`, self.PID, self.Start, proc.BootID(), proc.SinceBoot()))
	w.says("brake", fmt.Sprintf("warn process %d is woken every 1m0s at most, next at *: its own turns wake it: give it a prompt", self.PID))
}

func TestAMuteIsNamed(t *testing.T) {
	w := newWorld(t)
	q := w.project(w.root)
	w.says("mute")
	for until, want := range map[time.Time]string{
		time.Now().Add(-time.Hour):                  "",
		time.Now().Add(100 * time.Hour):             "warn wakes of this project stay in the queue until 20*: vx unmute",
		time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC): "warn wakes of this project stay in the queue: vx unmute",
	} {
		w.must(q.Project.Update(func(c *state.Config) { c.MutedUntil = until }))
		if want == "" {
			w.says("mute")
		} else {
			w.says("mute", want)
		}
	}
}

func TestProjectsWhosePathIsGoneAreNamed(t *testing.T) {
	w := newWorld(t)
	w.project(w.root)
	w.says("projects", "ok 1 known")
	w.put(w.project("/nowhere/at all"), "a")
	w.says("projects", "warn /nowhere/at all is gone, and holds 1 wake: vx project move '/nowhere/at all' NEW, or vx project forget '/nowhere/at all'")
	w.write(w.home+"/.vexillum/projects/torn-12345678/project.json", "{")
	w.says("projects", "warn project torn-12345678: *", "warn /nowhere/at all is gone*")
}

func TestErrorsOfTheLastDayInTheHooksLogAreNamed(t *testing.T) {
	w := newWorld(t)
	w.project(w.root)
	w.says("hook log")
	line := func(age time.Duration, level, msg string) string {
		return fmt.Sprintf("time=%s level=%s msg=%s\n", time.Now().Add(-age).Format("2006-01-02T15:04:05.000Z07:00"), level, msg)
	}
	log := w.home + "/.vexillum/hook.log"
	w.write(log, line(48*time.Hour, "ERROR", "old")+line(time.Hour, "WARN", "mild"))
	w.says("hook log", "ok no error in the last day")
	w.write(log, strings.Repeat("x", logTail)+"\n"+line(48*time.Hour, "ERROR", "old")+line(time.Hour, "ERROR", "first")+line(time.Minute, "ERROR", "\"last\" err=\"\x1b[31mbad\"")+"level=ERROR\n")
	w.says("hook log", `warn 2 errors in the last day, the latest at *: "last" err="bad": see ~/.vexillum/hook.log`)
	w.must(os.Remove(log))
	w.must(exec.Command("mkfifo", log).Run())
	w.says("hook log", "warn *not a regular file: look into it")
}

func TestTheClientsVersionIsCompared(t *testing.T) {
	w := newWorld(t)
	w.says("Claude Code", "info not on PATH, so its version is not known")
	for version, want := range map[string]string{
		"2.1.197 (Claude Code)": "ok 2.1.197", "2.1.332": "ok 2.1.332",
		"2.1.200":  "info 2.1.200; vx was measured with 2.1.197 and 2.1.332",
		"3.0.0":    "info 3.0.0; vx was measured with 2.1.197 and 2.1.332",
		"2.1.96":   "warn 2.1.96, older than 2.1.197, the oldest that vx was measured with: claude update",
		"1.99.999": "warn 1.99.999, older than*", "": `info claude --version printed "", which is no version`,
	} {
		w.program(w.home+"/bin/claude", `test "$1" = --version && echo '`+version+`'`)
		t.Setenv("PATH", w.home+"/bin:/usr/bin:/bin")
		if version == "" {
			w.program(w.home+"/bin/claude", "exit 1")
		}
		w.says("Claude Code", want)
	}
	w.program(w.home+"/bin/claude", "sleep 600")
	if r := askVersion(t.Context(), w.home+"/bin/claude", 100*time.Millisecond); r[0].Level != Info || !strings.Contains(r[0].Message, "took longer") {
		t.Errorf("of one that hangs: %+v", r)
	}
}

func TestTheProbeDeliversAWake(t *testing.T) {
	w := newWorld(t)
	w.says("probe", "warn no hook is registered that could be tried: vx init")
	w.init()
	w.vx()
	t.Setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli") // this may run in somebody's headless turn
	t.Setenv("CLAUDE_CODE_SESSION_ATTENDED", "0")
	t.Setenv("VX_HOOK", "0")
	w.says("probe", "ok a wake was read *.* ms after it was put")
	if _, err := os.Stat(w.home + "/.vexillum"); err == nil {
		t.Error("the probe made the user's state directory")
	}
	w.program(w.home+"/.local/bin/vx", "exit 0")
	w.says("probe", `fail the hook did not wait: exit 0, "": vx upgrade, then vx doctor --probe again`)
	w.program(w.home+"/.local/bin/vx", os.Args[0]+` "$@"; exit 0`)
	w.says("probe", `fail the hook ended with 0, want 2; it printed *: vx upgrade*`)
	w.program(w.home+"/.local/bin/vx", `exec `+os.Args[0]+` "$@" >/dev/null`)
	w.says("probe", `fail the hook printed "" to stdout*`)
	if left := w.tree(w.tmp)[1:]; len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestACheckThatBreaksDownIsAFailureAndNoMore(t *testing.T) {
	w := newWorld(t)
	all := Examine(t.Context(), Meet(w.root), []Check{
		{"first", func(context.Context, *Patient) []Result { panic("oh\x1b[31m") }},
		{"second", func(context.Context, *Patient) []Result { return ok("%s", "two\nlines\x07") }},
	})
	if len(all) != 2 || all[0].Level != Fail || !strings.Contains(all[0].Message, "broke down: oh") {
		t.Fatalf("%+v", all)
	}
	if all[1].Message != "two lines" || !Failed(all) || Failed(all[1:]) {
		t.Errorf("%+v", all)
	}
}
