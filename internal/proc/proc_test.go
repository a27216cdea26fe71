package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also the processes that the tests look at: VX_TEST_CHILD says what to be.
func TestMain(m *testing.M) {
	switch os.Getenv("VX_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "wait": // until stdin ends
		os.Stdout.WriteString("ready\n")
		io.Copy(io.Discard, os.Stdin)
	case "ancestors":
		json.NewEncoder(os.Stdout).Encode(Ancestors())
	case "leaderless":
		leaderless()
	}
	os.Exit(0)
}

// child starts a process that waits until the test ends; it has started its program when child returns.
func child(t *testing.T, what string, cmd *exec.Cmd) ID {
	t.Helper()
	cmd.Env = append(os.Environ(), "VX_TEST_CHILD="+what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("child says %q, %v", line, err)
	}
	id, err := Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func waiting(t *testing.T, args ...string) (*exec.Cmd, ID) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	return cmd, child(t, "wait", cmd)
}

func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func readable(t *testing.T, h *Handle, wait time.Duration) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(h.FD()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(wait.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
}

func TestALiveProcessIsRunning(t *testing.T) {
	_, id := waiting(t)
	if got := id.Status(); got != Running {
		t.Errorf("child: %v, want running", got)
	}
	if got := Self().Status(); got != Running {
		t.Errorf("self: %v, want running", got)
	}
	if self, err := Find(os.Getpid()); err != nil || self != Self() {
		t.Errorf("Find(self) = %v, %v, want %v", self, err, Self())
	}
	if !id.Younger(Self()) {
		t.Errorf("a child is not younger than its parent: %v, %v", id, Self())
	}
}

func TestAStoppedProcessIsStoppedUntilItGoesOn(t *testing.T) {
	_, id := waiting(t)
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Signal(int(syscall.SIGSTOP)); err != nil {
		t.Fatal(err)
	}
	await(t, "stopped", func() bool { return id.Status() == Stopped })
	if err := h.Signal(int(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	await(t, "running again", func() bool { return id.Status() == Running })
}

func TestAZombieIsGone(t *testing.T) {
	_, id := waiting(t)
	early, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	if readable(t, early, 0) {
		t.Fatal("the handle of a live process is readable")
	}
	if err := early.Signal(int(syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	// Nobody has waited for the child: it stays a zombie until the test ends.
	if !readable(t, early, 20*time.Second) {
		t.Fatal("the handle of a dead process is not readable")
	}
	await(t, "gone", func() bool { return id.Status() == Gone })
	if _, err := Find(id.PID); !errors.Is(err, ErrGone) {
		t.Errorf("Find: %v, want ErrGone", err)
	}
	if _, err := Open(id); !errors.Is(err, ErrGone) {
		t.Errorf("Open: %v, want ErrGone", err)
	}
	if _, err := Args(id); !errors.Is(err, ErrGone) {
		t.Errorf("Args: %v, want ErrGone", err)
	}
	if err := early.Signal(int(syscall.SIGTERM)); !errors.Is(err, ErrGone) {
		t.Errorf("Signal: %v, want ErrGone", err)
	}
}

func TestAProcessThatWasWaitedForIsGone(t *testing.T) {
	cmd, id := waiting(t)
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if got := id.Status(); got != Gone {
		t.Errorf("%v, want gone", got)
	}
	if err := h.Signal(int(syscall.SIGTERM)); !errors.Is(err, ErrGone) {
		t.Errorf("Signal: %v, want ErrGone", err)
	}
	if _, err := Open(id); !errors.Is(err, ErrGone) {
		t.Errorf("Open: %v, want ErrGone", err)
	}
}

// A pid that was reused looks like this: the pid is alive, the start time is another.
func TestAReusedPidIsAnotherProcess(t *testing.T) {
	_, id := waiting(t)
	for _, was := range []ID{{id.PID, id.Start - 1}, {id.PID, id.Start + 1}} {
		if got := was.Status(); got != Gone {
			t.Errorf("Status: %v, want gone", got)
		}
		if _, err := Args(was); !errors.Is(err, ErrGone) {
			t.Errorf("Args: %v, want ErrGone", err)
		}
		if h, err := Open(was); !errors.Is(err, ErrGone) {
			t.Errorf("Open: %v, %v, want ErrGone", h, err)
		}
	}
	// A handle that was taken before, whose process has been replaced: the signal must not reach the new one.
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.id.Start--
	if err := h.Signal(int(syscall.SIGKILL)); !errors.Is(err, ErrGone) {
		t.Errorf("Signal: %v, want ErrGone", err)
	}
	if got := id.Status(); got != Running {
		t.Errorf("the new owner of the pid was signalled: %v", got)
	}
}

func TestAnIDWithoutAStartTimeProvesNothing(t *testing.T) {
	_, id := waiting(t)
	for _, unsure := range []ID{{}, {PID: id.PID}, {PID: -1, Start: 1}, {PID: 0, Start: 1}} {
		if got := unsure.Status(); got != Unknown {
			t.Errorf("%v: %v, want unknown", unsure, got)
		}
		if h, err := Open(unsure); err == nil || errors.Is(err, ErrGone) {
			t.Errorf("Open(%v) = %v, %v, want an error that is not ErrGone", unsure, h, err)
		}
	}
	for _, pid := range []int{0, -1, -id.PID} {
		if got, err := Find(pid); !errors.Is(err, ErrGone) {
			t.Errorf("Find(%d) = %v, %v, want ErrGone", pid, got, err)
		}
	}
}

func TestSignalWithoutAPidfdStillChecksTheStartTime(t *testing.T) {
	_, id := waiting(t)
	if err := (&Handle{ID{id.PID, id.Start + 1}, -1}).Signal(int(syscall.SIGKILL)); !errors.Is(err, ErrGone) {
		t.Fatalf("Signal: %v, want ErrGone", err)
	}
	if got := id.Status(); got != Running {
		t.Fatalf("another process was signalled: %v", got)
	}
	h := &Handle{id, -1}
	if err := h.Signal(int(syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	await(t, "gone", func() bool { return id.Status() == Gone })
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestArgsAreWhatTheProcessWasStartedWith(t *testing.T) {
	want := []string{"sentinel await", "two\nlines", "", "tab\there", `quo"te`, "é", "-x=(y) z", ""}
	cmd, id := waiting(t, want...)
	got, err := Args(id)
	if err != nil {
		t.Fatal(err)
	}
	if want := append([]string{cmd.Path}, want...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestANameMayHoldAnything(t *testing.T) {
	for _, name := range []string{"a) R 1 (b", "two\nlines", "x) Z 1 1", "((("} {
		copied := filepath.Join(t.TempDir(), name)
		copyFile(t, os.Args[0], copied)
		id := child(t, "wait", exec.Command(copied))
		if got := id.Status(); got != Running {
			t.Errorf("%q: %v, want running", name, got)
		}
		var got string
		e, err := look(id.PID, &got)
		if err != nil || got != name || e.parent != os.Getpid() {
			t.Errorf("%q: name %q, parent %d, %v; want parent %d", name, got, e.parent, err, os.Getpid())
		}
		if !id.Younger(Self()) {
			t.Errorf("%q: start time %d is not after our own %d", name, id.Start, Self().Start)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAncestorsAreNearestFirst(t *testing.T) {
	// The last command keeps the shell from replacing itself.
	cmd := exec.Command("/bin/sh", "-c", `"$0" "an arg"; :`, os.Args[0])
	cmd.Env = append(os.Environ(), "VX_TEST_CHILD=ancestors")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []Info
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if len(got) < 2 {
		t.Fatalf("got %d ancestors, want the shell and this test at least", len(got))
	}
	if !slices.Equal(got[0].Args, cmd.Args) || got[0].Name != "sh" && got[0].Name != "dash" && got[0].Name != "bash" || got[0].ID.PID != cmd.Process.Pid {
		t.Errorf("nearest: %+v, want the shell, pid %d", got[0], cmd.Process.Pid)
	}
	if !slices.Equal(got[1].Args, os.Args) || got[1].ID != Self() || !strings.HasPrefix(filepath.Base(os.Args[0]), got[1].Name) {
		t.Errorf("next: %+v, want this test, %v", got[1], Self())
	}
	mine := Ancestors()
	if len(got) != len(mine)+2 {
		t.Fatalf("%d ancestors above this test, want %d", len(got)-2, len(mine))
	}
	for i, a := range mine {
		if a.ID != got[i+2].ID || a.ID.PID <= 1 {
			t.Errorf("ancestor %d: %v, want %v", i, got[i+2].ID, a.ID)
		}
	}
}

func TestYoungerIsAnOrder(t *testing.T) {
	old, young, sameTick := ID{900, 10}, ID{17, 11}, ID{901, 10}
	for _, pair := range [][2]ID{{young, old}, {young, sameTick}, {sameTick, old}} {
		if !pair[0].Younger(pair[1]) || pair[1].Younger(pair[0]) {
			t.Errorf("%v is to be younger than %v, and not the other way", pair[0], pair[1])
		}
	}
	if old.Younger(old) {
		t.Error("younger than itself")
	}
	if old.IsZero() || !(ID{}).IsZero() {
		t.Error("only the zero ID is no process")
	}
}

func TestClocksGoForwardAndSleepCountsInOneOnly(t *testing.T) {
	awake, boot := Awake(), SinceBoot()
	if awake <= 0 || boot < awake {
		t.Fatalf("awake %v, since boot %v: time asleep would be negative", awake, boot)
	}
	if Awake() < awake || SinceBoot() < boot {
		t.Fatal("a clock went back")
	}
}

func TestBootIDIsOneForAllOfABoot(t *testing.T) {
	if id := BootID(); id == "" || id != BootID() || strings.TrimSpace(id) != id {
		t.Fatalf("boot id %q, then %q", id, BootID())
	}
	if read, err := bootID(); err != nil || read != BootID() {
		t.Fatalf("boot id %q, and the kernel says %q, %v", BootID(), read, err)
	}
}
