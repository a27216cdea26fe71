package run

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vx/internal/wake"
)

func TestTheExitStatusIsTheCommandsAndTheWakeSaysHowItEnded(t *testing.T) {
	w := newWorld(t)
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(w.project, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, row := range []struct {
		name    string
		args    []string
		status  int
		verdict string
		outcome string // up to the duration
	}{
		{"success", []string{"true"}, 0, "done", "exit 0, "},
		{"failure", []string{"sh", "-c", "exit 3"}, 3, "failed", "exit 3, "},
		{"exit status 2", []string{"sh", "-c", "exit 2"}, 2, "failed", "exit 2, "},
		{"killed", []string{"sh", "-c", "kill -9 $$"}, 137, "interrupted", "SIGKILL, "},
		{"terminated", []string{"sh", "-c", "kill $$"}, 143, "interrupted", "SIGTERM, "},
		{"crashed", []string{"sh", "-c", "kill -SEGV $$"}, 139, "failed", "SIGSEGV, "},
		{"unknown command", []string{"no-such-command"}, 127, "failed", "exit 127, command not found"},
		{"missing file", []string{"./missing"}, 127, "failed", "exit 127, command not found"},
		{"file that is not executable", []string{file("plain", "", 0o600)}, 126, "failed", "exit 126, permission denied"},
		{"directory", []string{w.project}, 126, "failed", "exit 126, "},
		{"script without an interpreter's line", []string{file("script", "exit 4\n", 0o700)}, 4, "failed", "exit 4, "},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			cmd := w.vx(Command{Args: row.args})
			cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != row.status {
				t.Errorf("exit status %d, want %d", got, row.status)
			}
			got := w.only()
			if got.Kind != wake.KindRun || got.Key != "run-"+got.TaskID || got.OldStatus != "running" ||
				got.NewStatus != row.verdict || !strings.HasPrefix(got.Outcome, row.outcome) {
				t.Errorf("the wake is %+v, want %s, %s", got, row.verdict, row.outcome)
			}
			if !strings.Contains(got.Title, filepath.Base(row.args[0])) {
				t.Errorf("the title %q does not name the command", got.Title)
			}
		})
	}
}

func TestOutputIsPassedOnAndItsLastLinesAreInTheWake(t *testing.T) {
	w := newWorld(t)
	c := sh("echo one; echo two >&2; echo three; exit 1")
	c.Title, c.Key, c.Tail = "a title", "a key", 2
	cmd := w.vx(c)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	if stdout.String() != "one\nthree\n" || stderr.String() != "two\n" {
		t.Errorf("stdout %q, stderr %q: they are to stay apart", stdout.String(), stderr.String())
	}
	if got := w.only(); got.Title != "a title" || got.Key != "a key" || len(strings.Split(got.Detail, "\n")) != 2 {
		t.Errorf("the wake is %+v", got)
	}
}

func TestWhatGoesToOnePlaceKeepsItsOrder(t *testing.T) {
	w := newWorld(t)
	cmd := w.vx(sh("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"))
	out, err := cmd.CombinedOutput()
	want := ""
	for _, i := range "123456789" {
		want += "o" + string(i) + "\ne" + string(i) + "\n"
	}
	if err != nil || string(out) != want {
		t.Errorf("%v, %q", err, out)
	}
}

func TestEveryByteOfALongOutputArrives(t *testing.T) {
	w := newWorld(t)
	var out bytes.Buffer
	cmd := w.vx(sh("seq 1 300000"))
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command("seq", "1", "300000").Output()
	if err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%d bytes, want %d", out.Len(), len(want))
	}
	if got := w.only().Detail; !strings.HasSuffix(got, "299999\n300000") {
		t.Errorf("the detail ends with %q", got)
	}
}

func TestStdinIsTheCommands(t *testing.T) {
	w := newWorld(t)
	cmd := w.vx(Command{Args: []string{"cat"}})
	cmd.Stdin = strings.NewReader("through")
	if out, err := cmd.Output(); err != nil || string(out) != "through" {
		t.Errorf("%v, %q", err, out)
	}
}

func TestACommandWhoseReaderLeavesIsTold(t *testing.T) {
	w := newWorld(t)
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.vx(Command{Args: []string{"yes"}})
	cmd.Stdout = p
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Close()
	r.Close()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 128+int(syscall.SIGPIPE) {
		t.Errorf("exit status %d, want that of SIGPIPE", got)
	}
	if got := w.only(); got.NewStatus != "failed" {
		t.Errorf("the wake is %+v", got)
	}
}

func TestWithNoOutputTheCommandHasVxsOwnDescriptors(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.project, "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := sh("readlink /proc/self/fd/1")
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		c = sh("echo " + path)
	}
	c.Direct = true
	cmd := w.vx(c)
	cmd.Stdout = f
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if out, err := os.ReadFile(path); err != nil || string(out) != path+"\n" {
		t.Errorf("%v, the command prints to %q, want %q", err, out, path)
	}
	if got := w.only().Detail; got != "" {
		t.Errorf("the wake has the lines %q", got)
	}
}

func TestWhatTheCommandLeavesBehindKeepsItsReaderButNotVx(t *testing.T) {
	w := newWorld(t)
	gate := filepath.Join(w.project, "gate")
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := w.vx(sh("(while ! test -e " + gate + "; do sleep 0.05; done; echo late && echo alive >" + gate + ") & echo early"))
	cmd.Stdout = p
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if got := w.only(); got.NewStatus != "done" || got.Detail != "early" {
		t.Errorf("the wake is %+v", got)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(r); err != nil || out.String() != "early\nlate\n" {
		t.Errorf("%v, %q arrives", err, out.String())
	}
	if got, err := os.ReadFile(gate); err != nil || string(got) != "alive\n" {
		t.Errorf("%v, %q: what was left behind did not survive its late output", err, got)
	}
}

func TestAWakeThatCannotBePutIsSaidAndTheStatusStays(t *testing.T) {
	w := newWorld(t)
	if err := w.queue.Project.Ensure(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.queue.Dir(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := w.vx(sh("exit 5"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit status %d, want 5", got)
	}
	if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "no wake was put") {
		t.Errorf("stderr says %q", got)
	}
}

func TestAFullDiskUnderTheOutputIsSaid(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full on this system")
	}
	defer full.Close()
	w := newWorld(t)
	cmd := w.vx(sh("echo lost"))
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	cmd.Run()
	if got := stderr.String(); !strings.Contains(got, "stdout: no space left on device") {
		t.Errorf("stderr says %q", got)
	}
	if got := w.only().Detail; got != "lost" {
		t.Errorf("the detail is %q", got)
	}
}
