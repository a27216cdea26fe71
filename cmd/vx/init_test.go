//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/tidwall/gjson"
)

// standIn gives a command a project to stand in.
func standIn(t *testing.T, cmd *exec.Cmd) (project string) {
	t.Helper()
	project = filepath.Join(t.TempDir(), "shop")
	if err := os.MkdirAll(filepath.Join(project, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Dir = project
	return project
}

const (
	asksFailure = "Wake Claude Code also after a turn that died of an API error? [y/N] "
	asksPi      = "Wake commanders in Pi too? [y/N] "
	asksAll     = "Go ahead? [y/N] "
)

// answered runs init in the project at a terminal and gives each question its answer. It returns what init said.
func answered(t *testing.T, cmd *exec.Cmd, answers map[string]string) (string, error) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that \x03 interrupts it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	stuck := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	var said bytes.Buffer
	buf := make([]byte, 4096)
	for read := 0; ; {
		n, err := master.Read(buf)
		said.Write(buf[:n])
		for question, answer := range answers {
			if i := strings.Index(said.String()[read:], question); i >= 0 {
				read += i + len(question)
				if _, err := os.Stat(filepath.Join(cmd.Dir, ".claude")); err == nil {
					t.Error("it was made before anybody had said yes")
				}
				if _, err := master.WriteString(answer); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err != nil {
			break // the terminal is hung up
		}
	}
	err = cmd.Wait()
	if !stuck.Stop() {
		t.Error("it goes on asking")
	}
	return said.String(), err
}

func TestInitAsksAndOnlyYesIsYes(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "\x04": false, "yep\n": false, "\x03": false} {
		cmd := vx(t, "init")
		project := standIn(t, cmd)
		said, err := answered(t, cmd, map[string]string{asksFailure: "n\n", asksAll: answer})
		_, missing := os.Stat(filepath.Join(project, ".claude/settings.json"))
		if (err == nil) != want || (missing == nil) != want || !strings.Contains(said, asksAll) {
			t.Errorf("answer %q: %v, settings: %v\n%s", answer, err, missing, said)
		}
	}
}

func TestInitAsksForWhatItFindsAndForFailedTurns(t *testing.T) {
	for _, tt := range []struct {
		pi, failure string
		extension   bool
		events      []string
	}{
		{"y\n", "y\n", true, []string{"Stop", "StopFailure"}},
		{"n\n", "y\n", false, []string{"Stop", "StopFailure"}},
		{"y\n", "\n", true, []string{"Stop"}},
		{"\n", "yep\n", false, []string{"Stop"}},
	} {
		cmd := vx(t, "init")
		project := standIn(t, cmd)
		if err := os.Mkdir(filepath.Join(project, ".pi"), 0o755); err != nil {
			t.Fatal(err)
		}
		said, err := answered(t, cmd, map[string]string{asksPi: tt.pi, asksFailure: tt.failure, asksAll: "y\n"})
		if err != nil {
			t.Errorf("%v\n%s", err, said)
		}
		data, err := os.ReadFile(filepath.Join(project, ".claude/settings.json"))
		if err != nil {
			t.Fatal(err)
		}
		var events []string
		for event := range gjson.GetBytes(data, "hooks").Map() {
			events = append(events, event)
		}
		if slices.Sort(events); !slices.Equal(events, tt.events) {
			t.Errorf("answers %q and %q: hooks for %q, want %q", tt.pi, tt.failure, events, tt.events)
		}
		_, missing := os.Stat(filepath.Join(project, ".pi/extensions/vexillum-wake.ts"))
		if (missing == nil) != tt.extension {
			t.Errorf("answers %q and %q: the extension: %v", tt.pi, tt.failure, missing)
		}
	}
}

func TestAnInterruptedQuestionEndsInit(t *testing.T) {
	cmd := vx(t, "init")
	project := standIn(t, cmd)
	said, err := answered(t, cmd, map[string]string{asksFailure: "\x03", asksAll: "y\n"})
	if err == nil || strings.Contains(said, asksAll) {
		t.Errorf("%v\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(project, ".claude")); err == nil {
		t.Error("something was made")
	}
}

func TestAClosedStdinIsNoYes(t *testing.T) {
	cmd := vx(t, "init")
	project := standIn(t, cmd)
	closed := exec.Command("/bin/sh", "-c", `exec "$0" init <&-`, cmd.Path)
	closed.Dir, closed.Env = project, cmd.Env
	out, err := closed.CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exitFailed {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(project, ".claude")); err == nil {
		t.Error("something was made")
	}
}

func TestPurgeEndsTheAwaitsOfTheProject(t *testing.T) {
	initiate := vx(t, "init", "--yes", "--await", "always")
	project := standIn(t, initiate)
	if out, err := initiate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(initiate.Path, args...)
		cmd.Dir, cmd.Env = project, append(initiate.Env, "VX_AWAIT=1")
		return cmd
	}
	await := run("sentinel", "await")
	stdout, err := await.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if await.Stderr = new(bytes.Buffer); await.Start() != nil {
		t.Fatal("the await does not start")
	}
	ended := make(chan error, 1)
	go func() {
		bufio.NewReader(stdout).ReadString(0)
		ended <- await.Wait()
	}()
	defer await.Process.Kill()

	said := ""
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(said, "still runs: the await of process"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the await is not named:\n%s", said)
		}
		out, err := run("uninstall", "--yes").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		said = string(out)
	}
	out, err := run("uninstall", "--purge", "--yes").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ended the await of process") {
		t.Errorf("%v\n%s", err, out)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the await ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the await still runs")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(project), "*", "state", "projects", "*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
