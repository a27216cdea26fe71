//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"vx/internal/state"
	"vx/internal/wake"
)

func TestAPanicFails(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	status := guard(stdio{err: w}, func() error { panic("a fault") })
	w.Close()
	var said bytes.Buffer
	if _, err := said.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	if status != exitFailed || !strings.HasPrefix(said.String(), "vx: internal error: a fault\nhint: ") {
		t.Errorf("status %d, %q", status, said.String())
	}
}

// A Go program that dies of a fatal error, or of SIGQUIT in the same way, ends with 2.
func TestAFatalErrorDoesNotEndWith2(t *testing.T) {
	cmd := vx(t, "wake", "log", "--follow", "--project", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Until the runtime has its handlers the signal would kill it; any other end than 2 is as good.
	time.Sleep(300 * time.Millisecond)
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

func TestTheHooksCommandExplainsItselfOnATerminalOnly(t *testing.T) {
	cmd := vx(t, "sentinel", "bogus")
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	cmd.Stderr = slave
	cmd.Run()
	slave.Close()
	line, _ := bufio.NewReader(master).ReadString('\n')
	if got := cmd.ProcessState.ExitCode(); got != exitUsage || !strings.HasPrefix(line, "vx: sentinel: unexpected argument bogus") {
		t.Errorf("status %d, %q", got, line)
	}
}

func TestAWrittenLogIsFollowed(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	run := func(args ...string) *exec.Cmd {
		cmd := vx(t, append(args, "--project", project)...)
		cmd.Env = append(os.Environ(), "HOME="+home, "VEXILLUM_HOME="+home+"/state")
		return cmd
	}
	follow := run("wake", "log", "-f")
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	defer follow.Wait()
	defer follow.Process.Kill()
	lines := bufio.NewScanner(out)
	for _, title := range []string{"the first", "the second"} {
		if err := run("wake", "send", "--title", title).Run(); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), title) {
			t.Fatalf("%q is followed by %q", title, lines.Text())
		}
	}
}

// ending is how a test ends the wake that waits in a queue.
type ending func(t *testing.T, q *wake.Queue)

// deliver hands the wake over to a client whose transcript then has a row of the given type, "" for no transcript.
func deliver(row string) ending {
	return func(t *testing.T, q *wake.Queue) {
		d, err := q.Claim(t.Context())
		if err != nil || d == nil {
			t.Errorf("claim: %v", err)
			return
		}
		to := wake.Recipient{Harness: "claude"}
		if row != "" {
			to.Transcript = t.TempDir() + "/session.jsonl"
			err = os.WriteFile(to.Transcript, []byte("{}\n"), 0o600)
		}
		err = errors.Join(err, d.Note(to), d.Emit(), d.Close())
		if row != "" {
			text := strings.NewReplacer("ROW", row, "TOKEN", d.Token).Replace(
				`{"type":"ROW","origin":{"kind":"task-notification"},"message":{"role":"user","content":"delivery TOKEN"}}` + "\n")
			err = errors.Join(err, os.WriteFile(to.Transcript, []byte("{}\n"+text), 0o600))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestSendWaitsForTheReceipt(t *testing.T) {
	newer := func(t *testing.T, q *wake.Queue) {
		if _, err := q.Put(t.Context(), wake.Wake{Key: "k", Title: "newer"}); err != nil {
			t.Error(err)
		}
		deliver("user")(t, q)
	}
	for _, row := range []struct {
		name   string
		flags  []string
		ends   ending
		status int
		stderr string
	}{
		{"the turn has started", nil, deliver("user"), exitFine, ""},
		{"after it was folded into a newer one", nil, newer, exitFine, ""},
		{"no transcript", nil, deliver(""), exitFailed, ": delivered, unproven\n"},
		{"expired", []string{"--expires", "1ms"}, func(t *testing.T, q *wake.Queue) { q.Claim(t.Context()) }, exitFailed, ": dropped, "},
		{"nobody takes it", []string{"--wait=200ms"}, func(*testing.T, *wake.Queue) {}, exitFailed, ": no turn has started within 200ms\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("VEXILLUM_HOME", t.TempDir())
			dir, err := state.Open()
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			q := wake.Open(dir.Project(root))
			cmd := vx(t, append([]string{"wake", "send", "--title", "t", "--key", "k", "--project", root, "--wait=1m"}, row.flags...)...)
			cmd.Env = os.Environ()
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for n := 0; n == 0 && !t.Failed(); time.Sleep(5 * time.Millisecond) {
				if n, err = q.Count(); err != nil {
					t.Fatal(err)
				}
				if n > 0 {
					row.ends(t, q)
				}
			}
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != row.status || !strings.Contains(stderr.String(), row.stderr) {
				t.Errorf("status %d, %q", got, stderr.String())
			}
		})
	}
}

func TestADeliveredWakeIsShownByWhatBecameOfIt(t *testing.T) {
	t.Setenv("VEXILLUM_HOME", t.TempDir())
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	q := wake.Open(dir.Project(root))
	w, err := q.Put(t.Context(), wake.Wake{Title: "the deploy"})
	if err != nil {
		t.Fatal(err)
	}
	deliver("user")(t, q)
	if err := q.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd := vx(t, "wake", "show", w.ID, "--project", root)
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"stage:    gone\n", "title:    the deploy\n", " put\n", " claimed\n", " emitted ", " delivered   (turn started)"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, no %q in:\n%s", err, want, out)
		}
	}
}
