package hook

import (
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

	"golang.org/x/sys/unix"

	"vx/internal/proc"
	"vx/internal/wake"
)

func TestDrainPrintsADecisionOnceAndEndsWithZero(t *testing.T) {
	w := newWorld(t)
	quiet(t, w.start("drain", stop("s1", false)).wait())
	w.put("drained")
	r := w.start("drain", stop("s1", false)).wait()
	if r.Status != 0 || r.Stderr != "" || strings.Count(r.Stdout, "\n") != 1 ||
		!strings.HasPrefix(r.Stdout, `{"decision":"block","reason":"`) || !strings.Contains(r.Stdout, "drained") {
		t.Errorf("%+v", r)
	}
	w.holds(0, 0, 1)
	quiet(t, w.start("drain", stop("s1", false)).wait())
}

func TestWhatIsNotNewsAnyMoreIsNotDelivered(t *testing.T) {
	for _, mode := range []string{"await", "drain"} {
		w := newWorld(t)
		w.put("the stale one")
		w.put("the fresh one")
		r := w.start(mode, stop("s1", false), "VXTEST_STALE=the stale one").wait()
		if !strings.Contains(r.Stdout, "the fresh one") || strings.Contains(r.Stdout, "the stale one") {
			t.Errorf("%s: it printed %q", mode, r.Stdout)
		}
		events, err := wake.Open(w.project).History(0)
		if err != nil || !slices.ContainsFunc(events, func(e wake.Event) bool {
			return e.Event == "dropped" && e.Title == "the stale one" && e.Why == "old in shop"
		}) {
			t.Errorf("%s: history %+v, %v", mode, events, err)
		}
	}
}

func TestDrainHasTheSameGate(t *testing.T) {
	w := newWorld(t)
	w.put("not for you")
	quiet(t, w.start("drain", stop("s1", false), "HERDR_WORKSPACE_ID").wait())
	quiet(t, w.start("drain", stop("s1", false), "CLAUDE_CODE_SESSION_ATTENDED=0").wait())
	w.holds(1, 0, 0)
}

func TestAReaderThatGoesBeforeThePrintingCostsNothing(t *testing.T) {
	for _, mode := range []string{"await", "drain"} {
		w := newWorld(t)
		w.put("for the next one")
		gate := filepath.Join(w.home, "gate")
		h := w.start(mode, stop("s1", false), "VXTEST_AT=printing=wait:"+gate)
		eventually(t, "it is about to print", func() bool { _, err := os.Lstat(gate); return err == nil })
		w.holds(0, 1, 0)
		h.hang()
		os.Remove(gate)
		h.cmd.Wait()
		if got := h.cmd.ProcessState.ExitCode(); got != 0 {
			t.Errorf("%s: it ended with %d, want 0", mode, got)
		}
		w.holds(1, 0, 0)
	}
}

func TestWithoutATranscriptTheReaderMustTakeItIn(t *testing.T) {
	w := newWorld(t)
	w.put("unread")
	h := w.start("await", stop("s1", false))
	h.cmd.Wait() // nobody reads
	if got := h.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("it ended with %d, want 0", got)
	}
	w.holds(1, 0, 0)
}

func TestWithATranscriptTheReaderMayTakeItsTime(t *testing.T) {
	w := newWorld(t)
	transcript := filepath.Join(w.home, "t.jsonl")
	if err := os.WriteFile(transcript, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.put("read later")
	h := w.start("await", `{"session_id":"s1","transcript_path":"`+transcript+`","hook_event_name":"Stop"}`)
	h.cmd.Wait()
	if got := h.cmd.ProcessState.ExitCode(); got != 2 {
		t.Errorf("it ended with %d, want 2", got)
	}
	w.holds(0, 0, 1)
}

func TestFromTheClaimToTheExitNoSignalIsActedOn(t *testing.T) {
	for _, step := range []wake.Step{wake.Claimed, wake.Noted, wake.Printing, wake.Printed, wake.Emitted} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t)
			w.put("undisturbed")
			h := w.start("await", stop("s1", false), "VXTEST_AT="+string(step)+"=signals")
			delivers(t, h.wait(), "undisturbed")
		})
	}
}

func TestNoFaultBeforeThePrintingLooksLikeADelivery(t *testing.T) {
	for _, fault := range []string{"panic", "fatal", "kill"} {
		for _, mode := range []string{"await", "drain"} {
			for _, step := range []wake.Step{wake.Making, wake.Made, wake.Claimed, wake.Noting, wake.Noted, wake.Printing} {
				t.Run(fault+" "+mode+" "+string(step), func(t *testing.T) {
					w := newWorld(t)
					w.put("not yet")
					h := w.start(mode, stop("s1", false), "VXTEST_AT="+string(step)+"="+fault)
					silent(t, h.wait())
					w.waitFor(0)
					// The next one gets it.
					delivers(t, w.start("await", stop("s1", false)).wait(), "not yet")
				})
			}
		}
	}
}

func TestOnceItIsPrintedTheExitIsTwoWhateverFails(t *testing.T) {
	for _, step := range []wake.Step{wake.Printed, wake.Emitted} {
		for _, fault := range []string{"panic", "enospc"} {
			w := newWorld(t)
			w.put("out")
			delivers(t, w.start("await", stop("s1", false), "VXTEST_AT="+string(step)+"="+fault).wait(), "out")
		}
	}
}

func TestAFullDiskKeepsTheAwaitWaitingAndTheWakeInTheQueue(t *testing.T) {
	for _, step := range []wake.Step{wake.Making, wake.Noting} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t)
			h := w.start("await", stop("s1", false), "VXTEST_AT="+string(step)+"=enospc")
			e := w.waitFor(1)[0]
			w.put("when there is room")
			eventually(t, "the log names it", func() bool { return strings.Contains(w.log(), "no space left") })
			eventually(t, "the wake is back", func() bool { n, err := wake.Open(w.project).Count(); return n == 1 && err == nil })
			if e.Process.Status() != proc.Running {
				t.Error("the await is gone")
			}
			w.terminate()
			quiet(t, h.wait())
			w.holds(1, 0, 0)
		})
	}
}

func TestFatalSignalsDoNotLookLikeADelivery(t *testing.T) {
	w := newWorld(t)
	// All at once, each in a project of its own: the runtime takes seconds to die.
	for _, sig := range []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGSYS, syscall.SIGTRAP, syscall.SIGILL} {
		w.project = w.dir.Project(w.repository(sig.String()))
		h := w.start("await", stop("s1", false), "CLAUDE_PROJECT_DIR="+w.project.Root)
		w.waitFor(1)
		h.cmd.Process.Signal(sig)
		defer func() {
			silent(t, h.wait())
			if !strings.Contains(w.log(), "goroutine") {
				t.Errorf("%v: the log has no trace of it: %q", sig, w.log())
			}
		}()
	}
}

func TestStateThatCannotBeUsedEndsWithALineInALog(t *testing.T) {
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	for _, c := range []struct {
		name  string
		spoil func(w *world) error
	}{
		{"open to others", func(w *world) error { return os.Chmod(w.dir.Path(), 0o777) }},
		{"another layout", func(w *world) error { return write(w.dir.Join("state.json"), `{"layout":99}`) }},
		{"another program's", func(w *world) error {
			return errors.Join(os.Remove(w.dir.Join("state.json")), write(w.dir.Join("photos"), ""))
		}},
		{"a file", func(w *world) error {
			return errors.Join(os.RemoveAll(w.dir.Path()), write(w.dir.Path(), ""))
		}},
		{"no place for projects", func(w *world) error {
			return errors.Join(os.RemoveAll(w.dir.Join("projects")), write(w.dir.Join("projects"), ""))
		}},
		{"no place for awaits", func(w *world) error {
			return errors.Join(os.RemoveAll(w.dir.Awaiters()), write(w.dir.Awaiters(), ""))
		}},
		{"no place for wakes", func(w *world) error {
			return errors.Join(w.project.Ensure(), write(w.project.Join("wakes"), ""))
		}},
		{"a project.json that is none", func(w *world) error {
			return errors.Join(w.project.Ensure(), write(w.project.Join("project.json"), "{"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if err := c.spoil(w); err != nil {
				t.Fatal(err)
			}
			for _, mode := range []string{"await", "drain"} {
				quiet(t, w.start(mode, stop("s1", false)).wait())
			}
			cached, _ := os.ReadFile(filepath.Join(w.home, ".cache", "vx", logName))
			if len(cached) == 0 && w.log() == "" {
				t.Error("no log says why")
			}
		})
	}
}

func TestWithoutAHomeTheHookIsSilent(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []string{"await", "drain"} {
		quiet(t, w.start(mode, stop("s1", false), "HOME", "VEXILLUM_HOME").wait())
	}
}

func TestPrintingNeverBlocksOnAFullPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	big := bytes.Repeat([]byte("x"), 1<<20)
	if err := writeWhole(int(w.Fd()), big, time.Now().Add(50*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nobody reads: %v", err)
	}
	if drained(int(w.Fd())) {
		t.Error("a full pipe counts as drained")
	}
	got := make(chan []byte)
	go func() {
		var all []byte
		buf := make([]byte, 1000)
		for !bytes.HasSuffix(all, []byte("end")) {
			n, err := r.Read(buf)
			if err != nil {
				break
			}
			all = append(all, buf[:n]...)
		}
		got <- all
	}()
	slow := append(bytes.Repeat([]byte("y"), 1<<20), "end"...)
	if err := writeWhole(int(w.Fd()), slow, time.Now().Add(patient)); err != nil {
		t.Errorf("a slow reader: %v", err)
	}
	if all := <-got; !bytes.HasSuffix(all, slow) {
		t.Errorf("a slow reader got %d bytes", len(all))
	}
	r.Close()
	if err := writeWhole(int(w.Fd()), big, time.Now().Add(patient)); !errors.Is(err, unix.EPIPE) {
		t.Errorf("no reader: %v", err)
	}
}

func TestWhatWasPrintedIsTakenOnlyWhileTheReaderStands(t *testing.T) {
	transcript := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(transcript, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead := self(t)
	dead.Start++
	for _, c := range []struct {
		name       string
		transcript string
		client     proc.ID
		hangUp     bool
		taken      bool
	}{
		{"all is well", "", self(t), false, true},
		{"all is well, with a transcript", transcript, self(t), false, true},
		{"hung up", "", self(t), true, false},
		{"hung up, with a transcript", transcript, self(t), true, false},
		{"the client is gone", "", dead, false, false},
		{"the client is gone, and its transcript tells", transcript, dead, false, true},
		{"a transcript that is not there", transcript + ".none", dead, false, false},
	} {
		ours, theirs, err := socketpair()
		if err != nil {
			t.Fatal(err)
		}
		fd := int(theirs.Fd())
		k := &courier{call: &call{}, client: c.client, out: streams{fd, fd}}
		k.Transcript = c.transcript
		w, err := newWatch(watched{bell: -1, client: -1, signals: -1, orders: -1, out: k.out})
		if err != nil {
			t.Fatal(err)
		}
		if c.hangUp {
			ours.Close()
		}
		if err := k.taken(w); (err == nil) != c.taken {
			t.Errorf("%s: %v", c.name, err)
		}
		ours.Close()
		theirs.Close()
	}
}

func TestAFatalErrorIsSilentEvenWhereNothingCanBeLogged(t *testing.T) {
	w := newWorld(t)
	if err := errors.Join(os.Mkdir(w.dir.Join(logName), 0o700), os.WriteFile(w.home+"/.cache", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.put("boom")
	for _, fault := range []string{"fatal", "panic"} {
		silent(t, w.start("await", stop("s1", false), "VXTEST_AT=claimed="+fault).wait())
	}
}

func TestAnAbortDumpsNoCore(t *testing.T) {
	w := newWorld(t)
	w.put("boom")
	cmd := exec.Command("sh", "-c", `ulimit -c unlimited 2>/dev/null; exec "$0" sentinel await`, os.Args[0])
	cmd.Dir, cmd.Env = w.project.Root, w.with("VXTEST_AT=claimed=fatal")
	h := w.launch(cmd, stop("s1", false))
	silent(t, h.wait())
	state := h.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signal() != syscall.SIGABRT || state.CoreDump() {
		t.Errorf("it ended by %v, core dumped: %v", state.Signal(), state.CoreDump())
	}
	if cores, _ := filepath.Glob(w.project.Root + "/core*"); len(cores) > 0 {
		t.Errorf("it left %q", cores)
	}
}

func TestASocketIsDrainedWhenTheOtherEndHasReadItAll(t *testing.T) {
	ours, theirs, err := socketpair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	fd := int(theirs.Fd())
	if !drained(fd) {
		t.Error("a new socket is not drained")
	}
	if _, err := theirs.WriteString("four"); err != nil {
		t.Fatal(err)
	}
	if drained(fd) {
		t.Error("what nobody has read counts as drained")
	}
	if n, err := ours.Read(make([]byte, 4)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if !drained(fd) {
		t.Error("what was read does not count as drained")
	}
}
