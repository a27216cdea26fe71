package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
	"vx/settings"
)

func TestAWakeThatComesIsPrintedAndEndsTheAwaitWithTwo(t *testing.T) {
	w := newWorld(t)
	h := w.start("await", stop("s1", false))
	e := w.waitFor(1)[0]
	if want, _ := proc.Find(os.Getpid()); e.Client != want {
		t.Errorf("its client is %v, want %v", e.Client, want)
	}
	if e.Session != "s1" || e.Pane != "p1" || e.Socket != "/none.sock" || e.Harness != "claude" || e.Project != w.project.Root {
		t.Errorf("its record says %+v", e.Record)
	}
	w.put("the tests are green")
	delivers(t, h.wait(), "the tests are green")
	w.holds(0, 0, 1)
	w.waitFor(0)
}

func TestAWakeThatWaitedIsDeliveredAtOnce(t *testing.T) {
	w := newWorld(t)
	w.put("old news")
	delivers(t, w.start("await", stop("s1", false)).wait(), "old news")
}

func TestAnAwaitPreparesTheDeliveryAndLeavesNothingPrepared(t *testing.T) {
	w := newWorld(t)
	prepared := func() (tokens []string) {
		entries, _ := os.ReadDir(w.project.Join("wakes", ".tmp"))
		for _, e := range entries {
			tokens = append(tokens, e.Name())
		}
		return tokens
	}
	h := w.start("await", stop("s1", false))
	eventually(t, "a prepared delivery", func() bool { return len(prepared()) == 1 })
	token := prepared()[0]
	w.put("news")
	r := h.wait()
	delivers(t, r, "news")
	if !strings.Contains(r.Stderr, token) {
		t.Errorf("delivery %s was prepared, not this one: %s", token, r.Stderr)
	}
	h = w.start("await", stop("s1", false))
	eventually(t, "another prepared delivery", func() bool { return len(prepared()) == 1 })
	w.terminate()
	silent(t, h.wait())
	if left := prepared(); len(left) > 0 {
		t.Errorf("it leaves %s", left)
	}
}

func TestTheRegisteredCommandDeliversUnderEachShell(t *testing.T) {
	for _, shell := range []string{"dash", "bash"} {
		t.Run(shell, func(t *testing.T) {
			w := newWorld(t)
			c := w.client(1, stop("s1", false), shell, "-c", settings.Command)
			if e := w.waitFor(1)[0]; e.Client != c.id {
				t.Errorf("its client is %v, want %v", e.Client, c.id)
			}
			w.put("done")
			delivers(t, c.next(), "done")
		})
	}
}

func TestNothingIsLeftWhenTheClientGoesAndTheWakeStays(t *testing.T) {
	for _, shell := range []string{"dash", "bash"} {
		for _, how := range []string{"client killed", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "hook killed"} {
			t.Run(shell+" "+how, func(t *testing.T) {
				w := newWorld(t)
				c := w.client(1, stop("s1", false), shell, "-c", settings.Command)
				e := w.waitFor(1)[0]
				sig, isSignal := map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP,
					"SIGINT": syscall.SIGINT, "SIGQUIT": syscall.SIGQUIT, "hook killed": syscall.SIGKILL}[how]
				if isSignal {
					syscall.Kill(e.Process.PID, sig)
					r := c.next()
					if sig != syscall.SIGKILL {
						quiet(t, r)
					} else if r.Status == 2 { // the shell says "Killed" on its own account
						t.Error("a killed await ended like a delivery")
					}
				} else {
					c.signal(syscall.SIGKILL)
				}
				gone(t, e.Process)
				gone(t, c.hooks[0])
				w.waitFor(0)
				w.put("for the next one")
				w.holds(1, 0, 0)
			})
		}
	}
}

func TestTheAwaitEndsWhenOneOfItsStreamsHangsUp(t *testing.T) {
	for name, hang := range map[string]func(*hookProcess){
		"stderr": func(h *hookProcess) { h.stderr.Close() },
		"stdout": func(h *hookProcess) { h.stdout.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.start("await", stop("s1", false))
			w.waitFor(1)
			hang(h)
			h.cmd.Wait()
			if got := h.cmd.ProcessState.ExitCode(); got != 0 {
				t.Errorf("it ended with %d", got)
			}
			w.put("for the next one")
			w.holds(1, 0, 0)
		})
	}
}

func TestTheEndOfStdinMeansNothing(t *testing.T) {
	w := newWorld(t)
	h := w.start("await", stop("s1", false)+"…")
	w.waitFor(1)
	h.in.Close()
	w.put("still here")
	delivers(t, h.wait(), "still here")
}

func TestAnAwaitWhoseParentEndsEndsToo(t *testing.T) {
	w := newWorld(t)
	// The parent hands its streams on and goes; nothing hangs up.
	cmd := exec.Command("sh", "-c", `"$0" sentinel await & read line`, os.Args[0])
	cmd.Dir, cmd.Env = w.project.Root, w.with()
	h := w.launch(cmd, "…")
	e := w.waitFor(1)[0]
	h.in.Close()
	gone(t, e.Process)
	w.put("for the next one")
	w.holds(1, 0, 0)
}

func TestAnAwaitWhoseClientEndsEndsTooThoughNothingHangsUp(t *testing.T) {
	w := newWorld(t)
	// The client's child is a shell that outlives it; the streams are held by another process, this one.
	cmd := exec.Command(os.Args[0], "sh", "-c", `"$0" sentinel await; exit`, os.Args[0])
	cmd.Dir, cmd.Env = w.project.Root, w.with("VXTEST_ROLE=parent")
	h := w.launch(cmd, stop("s1", false))
	e := w.waitFor(1)[0]
	if e.Client.PID != cmd.Process.Pid {
		t.Fatalf("its client is %v, want process %d", e.Client, cmd.Process.Pid)
	}
	cmd.Process.Kill()
	gone(t, e.Process)
	if log := w.log(); !strings.Contains(log, "the client ended") {
		t.Errorf("it ended for another reason: %s", log)
	}
	quiet(t, result{0, h.outs.String(), h.errs.String()})
}

func TestWhoLeavesRingsForTheNext(t *testing.T) {
	w := newWorld(t)
	h := w.start("await", stop("s1", false))
	w.waitFor(1)
	next, err := awaiter.Register(w.dir, w.project, awaiter.Record{Process: self(t), Project: w.project.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	h.cmd.Process.Signal(syscall.SIGTERM)
	quiet(t, h.wait())
	watch, err := newWatch(watched{bell: next.FD(), client: -1, signals: -1, orders: -1, out: streams{-1, -1}})
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := watch.wait(0); err != nil || !seen.rung {
		t.Error("the next one was not rung", err)
	}
}

func TestAStoppedClientIsGivenNothingAndKeepsItsAwait(t *testing.T) {
	w := newWorld(t)
	c := w.client(1, stop("s1", false), "dash", "-c", settings.Command)
	e := w.waitFor(1)[0]
	c.signal(syscall.SIGSTOP)
	eventually(t, "the client is stopped", func() bool { return c.id.Status() == proc.Stopped })
	w.put("patience")
	// Once it has been rung again and the bell is silent, it has looked at both.
	for range 2 {
		awaiter.Ring(w.dir, w.project)
		eventually(t, "the bell is answered", func() bool { return !w.ringing(e) })
	}
	w.holds(1, 0, 0)
	if e.Process.Status() != proc.Running {
		t.Error("the await is gone")
	}
	c.signal(syscall.SIGCONT)
	delivers(t, c.next(), "patience")
}

// ringing reports whether an awaiter's bell has not been answered yet.
func (w *world) ringing(e awaiter.Entry) bool {
	w.t.Helper()
	bells, err := filepath.Glob(fmt.Sprintf("%s/%s-%d-*.fifo", w.dir.Awaiters(), w.project.ID(), e.Process.PID))
	if err != nil || len(bells) != 1 {
		w.t.Fatal(bells, err)
	}
	fd, err := unix.Open(bells[0], unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer unix.Close(fd)
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return n == 1 && fds[0].Revents&unix.POLLIN != 0
}

func TestOfManyAwaitsForOneClientExactlyOneLives(t *testing.T) {
	w := newWorld(t)
	const many = 20
	c := w.client(many, stop("s1", false), "dash", "-c", settings.Command)
	for range many - 1 {
		quiet(t, c.next())
	}
	w.waitFor(1)
	w.put("for the one")
	delivers(t, c.next(), "for the one")
}

func TestTwoClientsOfOneProjectKeepTheirAwaits(t *testing.T) {
	w := newWorld(t)
	// The same session, resumed in two terminals.
	one := w.client(1, stop("s1", false), "dash", "-c", settings.Command)
	first := w.waitFor(1)[0]
	two := w.client(1, stop("s1", false), "dash", "-c", settings.Command)
	w.waitFor(2)
	two.signal(syscall.SIGKILL)
	if left := w.waitFor(1)[0]; left.Process != first.Process {
		t.Errorf("left is %v, want %v", left.Process, first.Process)
	}
	w.put("for the first")
	delivers(t, one.next(), "for the first")
}

func TestClearReplacesTheAwaitOfTheSameProcess(t *testing.T) {
	w := newWorld(t)
	old := w.start("await", stop("s1", false))
	w.waitFor(1)
	fresh := w.start("await", stop("s2", false))
	quiet(t, old.wait())
	if e := w.waitFor(1)[0]; e.Session != "s2" {
		t.Errorf("left is the await of session %q", e.Session)
	}
	w.put("after /clear")
	delivers(t, fresh.wait(), "after /clear")
	if log := w.log(); !strings.Contains(log, "a younger one waits") || strings.Contains(log, "SIGTERM") {
		t.Errorf("the old one did not leave by itself: %s", log)
	}
}

func TestAnAwaitWhoseRegistryIsGoneEndsWhenItLooks(t *testing.T) {
	w := newWorld(t)
	h := w.start("await", stop("s1", false))
	e := w.waitFor(1)[0]
	eventually(t, "it waits", func() bool { return !w.ringing(e) })
	records, err := filepath.Glob(w.dir.Awaiters() + "/*.json")
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	os.Remove(records[0])
	e.Tell()
	quiet(t, h.wait())
}

// deaf starts an await that hears no bell, for the given client.
func (w *world) deaf(root string, client proc.ID) *exec.Cmd {
	w.t.Helper()
	id, _ := json.Marshal(client)
	cmd := exec.Command(os.Args[0], "sentinel", "await")
	cmd.Env = w.with("VXTEST_ROLE=deaf", "VXTEST_PROJECT="+root, "VXTEST_CLIENT="+string(id))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var word string
	if _, err := fmt.Fscanln(out, &word); word != "ready" {
		w.t.Fatal(word, err)
	}
	return cmd
}

// endedBy waits for a process of ours and returns the signal that ended it.
func endedBy(cmd *exec.Cmd) syscall.Signal {
	cmd.Wait()
	return cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
}

func TestAnOlderAwaitThatDoesNotHearIsTerminated(t *testing.T) {
	w := newWorld(t)
	self, _ := proc.Find(os.Getpid())
	deaf := w.deaf(w.project.Root, self)
	h := w.start("await", stop("s1", false))
	if sig := endedBy(deaf); sig != syscall.SIGTERM {
		t.Errorf("it ended by %v", sig)
	}
	// A bell that the deaf one swallowed is looked after.
	w.put("swallowed")
	delivers(t, h.wait(), "swallowed")
}

func TestAnOrphanOfAnyProjectIsTerminatedAndNobodyElse(t *testing.T) {
	w := newWorld(t)
	ended := exec.Command("sleep", "60")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	client, err := proc.Find(ended.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	ended.Process.Kill()
	ended.Wait()
	self, _ := proc.Find(os.Getpid())
	orphan := w.deaf(w.repository("other"), client)
	served := w.deaf(w.repository("another"), self)
	unknown := w.deaf(w.repository("third"), proc.ID{})
	w.start("await", stop("s1", false))
	if sig := endedBy(orphan); sig != syscall.SIGTERM {
		t.Errorf("it ended by %v", sig)
	}
	w.waitFor(1)
	for _, cmd := range []*exec.Cmd{served, unknown} {
		if id, err := proc.Find(cmd.Process.Pid); err != nil || id.Status() != proc.Running {
			t.Error("an await whose client is not proven gone was ended", err)
		}
	}
}

func TestFiftyFiveMinutesCountSleep(t *testing.T) {
	w := newWorld(t)
	clock := filepath.Join(w.home, "clock")
	set := func(off string) {
		if err := os.WriteFile(clock, []byte(off), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("0s")
	outlived := filepath.Join(w.home, "outlived")
	h := w.start("await", stop("s1", false), "VXTEST_CLOCK="+clock, "VXTEST_OUTLIVED="+outlived, "HERDR_PANE_ID=p1", "HERDR_SOCKET_PATH=/run/herdr.sock")
	w.waitFor(1)
	// Two hours asleep; the wake rings at the very moment of waking.
	set("2h")
	w.put("too late for this one")
	quiet(t, h.wait())
	w.holds(1, 0, 0)
	if who, err := os.ReadFile(outlived); string(who) != "claude s1 p1 /run/herdr.sock" {
		t.Errorf("its client is kept as %q, %v", who, err)
	}
}

func TestAClockThatGoesBackEndsNothing(t *testing.T) {
	w := newWorld(t)
	clock := filepath.Join(w.home, "clock")
	if err := os.WriteFile(clock, []byte("2h"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := w.start("await", stop("s1", false), "VXTEST_CLOCK="+clock)
	w.waitFor(1)
	if err := os.WriteFile(clock, []byte("0s"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.put("still here")
	delivers(t, h.wait(), "still here")
}

func TestAMutedProjectKeepsItsWakesUntilItIsUnmuted(t *testing.T) {
	w := newWorld(t)
	mute := func(until time.Time) {
		if err := w.project.Update(func(c *state.Config) { c.MutedUntil = until }); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.project.Ensure(); err != nil {
		t.Fatal(err)
	}
	mute(time.Now().Add(time.Hour))
	w.put("not now")
	h := w.start("await", stop("s1", false))
	w.waitFor(1)
	quiet(t, w.start("drain", stop("s1", false)).wait())
	w.holds(1, 0, 0)
	mute(time.Time{})
	delivers(t, h.wait(), "not now")
}

func TestABellThatCannotBeAnsweredIsPassedOn(t *testing.T) {
	w := newWorld(t)
	// Two awaits of this very process, one of which may not deliver yet.
	newAwait := func() *await {
		a := &await{courier: &courier{call: &call{dir: w.dir, project: w.project}, queue: wake.Open(w.project)},
			clock: proc.SinceBoot, said: map[string]string{}}
		if err := a.register(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.bell.Close() })
		return a
	}
	w.put("for the other")
	a, b := newAwait(), newAwait()
	rung := func(x *await) bool {
		watch, err := newWatch(watched{bell: x.bell.FD(), client: -1, signals: -1, orders: -1, out: streams{-1, -1}})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := watch.wait(0)
		return err == nil && seen.rung
	}
	for _, x := range []*await{a, b} {
		x.retry = time.Now().Add(time.Hour)
		x.deliver(context.Background(), true)
	}
	// Passed on forward only: by whoever sorts first, to the other.
	if rung(a) == rung(b) {
		t.Errorf("rung: %v and %v, want one of them", rung(a), rung(b))
	}
	w.holds(1, 0, 0)
}

func TestTheLogHoldsNoEnvironment(t *testing.T) {
	w := newWorld(t)
	h := w.start("await", stop("s1", false), "CLAUDE_SECRET=hunter2", "VXTEST_AT=claimed=panic")
	w.waitFor(1)
	w.put("boom")
	silent(t, h.wait())
	if log := w.log(); strings.Contains(log, "hunter2") || !strings.Contains(log, "a panic that the test wants") {
		t.Errorf("the log says %q", log)
	}
}
