//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
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

func TestInitAsksAndOnlyYesIsYes(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "\x04": false, "yep\n": false, "\x03": false} {
		cmd := vx(t, "init")
		project := standIn(t, cmd)
		master, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that \x03 interrupts it
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		slave.Close()
		stuck := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		var said bytes.Buffer
		answered := false
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			said.Write(buf[:n])
			if !answered && strings.Contains(said.String(), "Go ahead? [y/N] ") {
				answered = true
				if _, err := os.Stat(filepath.Join(project, ".claude")); err == nil {
					t.Error("it was made before anybody had said yes")
				}
				if _, err := master.WriteString(answer); err != nil {
					t.Fatal(err)
				}
			}
			if err != nil {
				break // the terminal is hung up
			}
		}
		master.Close()
		err = cmd.Wait()
		if !stuck.Stop() {
			t.Errorf("answer %q: it goes on asking", answer)
		}
		_, missing := os.Stat(filepath.Join(project, ".claude/settings.json"))
		if (err == nil) != want || (missing == nil) != want || !answered {
			t.Errorf("answer %q: %v, settings: %v\n%s", answer, err, missing, said.String())
		}
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
