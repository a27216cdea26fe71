package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// The leaderless child has to end its first thread; init still runs on it.
	runtime.LockOSThread()
}

// leaderless ends the process's first thread and goes on in the others.
func leaderless() {
	go func() {
		for len(waitState()) == 0 {
			time.Sleep(time.Millisecond)
		}
		os.Stdout.WriteString("ready\n")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// waitState is the state of this process's first thread once that is a zombie.
func waitState() string {
	line, _ := os.ReadFile("/proc/self/stat")
	if _, rest, ok := strings.Cut(string(line), ") Z "); ok {
		return rest
	}
	return ""
}

func TestAProcessWhoseFirstThreadEndedStillRuns(t *testing.T) {
	id := child(t, "leaderless", exec.Command(os.Args[0]))
	if got := id.Status(); got != Running {
		t.Fatalf("%v, want running", got)
	}
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if readable(t, h, 0) {
		t.Fatal("its handle says that it has ended")
	}
}

func TestStatOfAnUnknownFormIsUnknownNotGone(t *testing.T) {
	for _, line := range []string{"", "1", "1 (a", ")1 (", "1 (a) R", "1 (a) R 1 2 3\n", strings.Repeat("9", 1024)} {
		if e, err := parseStat([]byte(line), nil); err == nil || errors.Is(err, ErrGone) {
			t.Errorf("%q: %+v, %v, want an error that is not ErrGone", line, e, err)
		}
	}
}

func TestStatStates(t *testing.T) {
	for state, want := range map[string]Status{"R": Running, "S": Running, "D": Running, "I": Running, "T": Stopped, "t": Stopped, "Z": Gone, "X": Gone} {
		line := fmt.Sprintf("7 (x) (y) %s 5 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 99 1 18446744073709551615\n", state)
		var name string
		e, err := parseStat([]byte(line), &name)
		if err != nil {
			t.Fatal(err)
		}
		if e != (entry{987654321, 5, want}) || name != "x) (y" {
			t.Errorf("%s: %+v of %q, want %v", state, e, name, want)
		}
	}
}

func TestAProcessThatProcDoesNotShowIsNotGone(t *testing.T) {
	if err := missing(os.Getpid(), unix.ENOENT); errors.Is(err, ErrGone) {
		t.Error("this process is alive, though /proc has no entry")
	}
	if err := missing(os.Getpid(), unix.EACCES); errors.Is(err, ErrGone) {
		t.Error("this process is alive, though its entry is closed")
	}
}

func TestALookAllocatesNextToNothing(t *testing.T) {
	id := Self()
	if n := testing.AllocsPerRun(100, func() { id.Status() }); n > 2 {
		t.Errorf("%v allocations a look, want 2 at most", n)
	}
}

func BenchmarkStatus(b *testing.B) {
	id := Self()
	b.ReportAllocs()
	for b.Loop() {
		if id.Status() != Running {
			b.Fatal("not running")
		}
	}
}
