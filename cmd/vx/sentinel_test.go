//go:build !windows

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/daemon"
	"vx/internal/proc"
	"vx/internal/state"
)

// An installed vx is one at a path of its own, with a HOME, a state directory and a project in which it waits.
type installed struct {
	*testing.T
	path, project string
	env           []string
	dir           *state.Dir
}

func newInstalled(t *testing.T) installed {
	t.Helper()
	initiate := vx(t, "init", "--yes", "--await", "always")
	project := standIn(t, initiate)
	v := installed{T: t, path: filepath.Join(t.TempDir(), "vx"), project: project}
	v.env = append(initiate.Env, "VX_AWAIT=1")
	if out, err := initiate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, e := range v.env {
		if home, ok := strings.CutPrefix(e, "VEXILLUM_HOME="); ok {
			var err error
			if v.dir, err = state.LookAt(home); err != nil {
				t.Fatal(err)
			}
		}
	}
	// vx itself, and not the test binary, which does not know the path that it was called by.
	if out, err := exec.Command("go", "build", "-o", v.path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return v
}

// rebuild puts the same program at the path, as another file.
func (v installed) rebuild() {
	v.Helper()
	data, err := os.ReadFile(v.path)
	if err == nil {
		err = os.WriteFile(v.path+".new", data, 0o700)
	}
	if err == nil {
		err = os.Rename(v.path+".new", v.path)
	}
	if err != nil {
		v.Fatal(err)
	}
}

func (v installed) command(args ...string) *exec.Cmd {
	cmd := exec.Command(v.path, args...)
	cmd.Dir, cmd.Env = v.project, v.env
	return cmd
}

// await starts one that ends with the test; the sentinel that it starts is stopped then.
func (v installed) await() *exec.Cmd {
	v.Helper()
	cmd := v.command("sentinel", "await")
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() {
		cmd.Process.Signal(unix.SIGTERM)
		cmd.Wait()
		if _, err := daemon.Stop(context.Background(), v.dir); err != nil && !errors.Is(err, daemon.ErrNone) {
			v.Error(err)
		}
	})
	return cmd
}

// sentinel waits for one other than the last to have said who it is.
func (v installed) sentinel(last daemon.Info) (info daemon.Info) {
	v.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		info, running, err := daemon.Look(v.dir)
		if err == nil && running && info.PID != 0 && info.ID != last.ID {
			return info
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(v.dir.Join(daemon.LogName))
			hook, _ := os.ReadFile(v.dir.Join("hook.log"))
			v.Fatalf("no sentinel within a minute: %v\n%s\n%s", err, log, hook)
		}
	}
}

func TestAWaitingAwaitSeesThatASentinelOfTheCurrentProgramRuns(t *testing.T) {
	v := newInstalled(t)
	await := v.await()
	first := v.sentinel(daemon.Info{})
	if first.Build.Path != v.path {
		t.Errorf("it was invoked by %s, want %s", first.Build.Path, v.path)
	}
	v.rebuild()
	second := v.sentinel(first)
	if first.Status() != proc.Gone || second.Replaced() {
		t.Errorf("the first is %s, the second %+v", first.Status(), second)
	}
	h, err := proc.Open(second.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Signal(int(unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	third := v.sentinel(second)
	if others := daemon.Others(v.dir); len(others) > 0 {
		t.Errorf("%v run beside %v", others, third.ID)
	}
	if id, err := proc.Find(await.Process.Pid); err != nil || id.Status() != proc.Running {
		t.Errorf("the await has ended: %v; stderr: %s", err, await.Stderr)
	}
}

func TestTheSentinelPanicsWithoutEndingWith2(t *testing.T) {
	v := newInstalled(t)
	cmd := v.command("sentinel")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v.sentinel(daemon.Info{})
	// Which makes the runtime throw, as a fatal error of its own does.
	if err := cmd.Process.Signal(unix.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if ws := cmd.ProcessState.Sys().(interface{ Signaled() bool }); !ws.Signaled() {
		t.Errorf("it ended with %v: %s", cmd.ProcessState, stderr.String())
	}
}

func TestPurgeStopsTheSentinelOfItsLastProjectAlone(t *testing.T) {
	v := newInstalled(t)
	cmd := v.command("sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	info := v.sentinel(daemon.Info{})
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	other := v.dir.Project(t.TempDir())
	if err := other.Ensure(); err != nil {
		t.Fatal(err)
	}
	purge := func() string {
		out, err := v.command("uninstall", "--purge", "--yes").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if said := purge(); strings.Contains(said, "ended the sentinel") || info.Status() != proc.Running {
		t.Errorf("with another project: %s, the sentinel is %s", said, info.Status())
	}
	if err := os.RemoveAll(other.Dir); err != nil {
		t.Fatal(err)
	}
	if out, err := v.command("init", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := v.command("uninstall", "--yes").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "still runs: the sentinel, process ") {
		t.Errorf("%v\n%s", err, out)
	}
	if said := purge(); !strings.Contains(said, "ended the sentinel, process ") {
		t.Errorf("with none: %s", said)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestTheStatusOfTheSentinelIsForPrograms(t *testing.T) {
	v := newInstalled(t)
	cmd := v.command("sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Signal(unix.SIGTERM)
	info := v.sentinel(daemon.Info{})
	status := func() map[string]any {
		out, err := v.command("sentinel", "status", "--json").Output()
		var fields map[string]any
		if err = errors.Join(err, json.Unmarshal(out, &fields)); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return fields
	}
	if got := status(); got["running"] != true || got["pid"] != float64(info.PID) || got["replaced"] != false || got["missing"] != false {
		t.Errorf("it says %v", got)
	}
	v.path = filepath.Join(t.TempDir(), "vx")
	if err := os.Rename(cmd.Path, v.path); err != nil {
		t.Fatal(err)
	}
	if got := status(); got["running"] != true || got["missing"] != true {
		t.Errorf("with its program gone it says %v", got)
	}
}
