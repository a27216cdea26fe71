package hook

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/wake"
)

// session writes Pi's session file, with a message of the user for each text.
func (w *world) session(texts ...string) string {
	w.t.Helper()
	path := filepath.Join(w.home, "session.jsonl")
	data := []byte(`{"type":"session","version":3}` + "\n")
	for _, text := range texts {
		row, err := json.Marshal(map[string]any{"type": "message", "message": map[string]any{"role": "user", "content": text}})
		if err != nil {
			w.t.Fatal(err)
		}
		data = append(append(data, row...), '\n')
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// A holder that dies, whatever it was at, loses nothing: the next one gets the wake.
func TestAWakeSurvivesTheDeathOfItsHolderAtEveryStep(t *testing.T) {
	for _, fault := range []string{"kill", "panic", "fatal", "enospc"} {
		for _, step := range []wake.Step{wake.Making, wake.Made, wake.Claimed, wake.Noting, wake.Noted, wake.Printing, wake.Printed} {
			if fault == "enospc" && step != wake.Printing && step != wake.Printed {
				continue // then it goes on waiting: TestAFullDiskKeepsTheAwaitWaitingAndTheWakeInTheQueue
			}
			t.Run(fault+" "+string(step), func(t *testing.T) {
				w := newWorld(t)
				w.put("news")
				h := w.holder("opencode", "VXTEST_AT="+string(step)+"="+fault)
				if step == wake.Printing && fault == "enospc" {
					eventually(t, "it is put back", func() bool { return strings.HasPrefix(w.ended("news"), "released") })
					h.in.Close()
				}
				r := h.wait()
				if r.Status == 2 || r.Stderr != "" || fault != "kill" && fault != "fatal" && r.Status != 0 {
					t.Errorf("it ended with %d, stderr %q", r.Status, r.Stderr)
				}
				if printed := strings.Contains(r.Stdout, "news"); printed != (step == wake.Printed) {
					t.Errorf("at %s it had printed %q", step, r.Stdout)
				}
				w.waitFor(0)
				next := w.holder("opencode")
				g := next.takes("news")
				next.say("ack " + g.Token + "\n")
				next.ends()
				w.holds(0, 0, 0)
			})
		}
	}
}

func TestASignalOnTheWayIsActedOnOnlyOnceTheClientCouldHaveSpoken(t *testing.T) {
	for _, step := range []wake.Step{wake.Claimed, wake.Noted, wake.Printing, wake.Printed} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t)
			w.put("news")
			h := w.holder("pi", "VXTEST_AT="+string(step)+"=signals")
			h.takes("news")
			h.ends()
			w.holds(1, 0, 0)
			w.endedAs("news", "released a signal")
		})
	}
}

func TestWhatDoesNotFitIsLeftToTheNextOne(t *testing.T) {
	w := newWorld(t)
	for i := range 120 {
		w.put(fmt.Sprintf("wake %03d %s", i, strings.Repeat("x", 100)))
	}
	var all []*holder
	var tokens []string
	for told := 0; told < 120; {
		h := w.holder("pi")
		g := h.takes()
		if n := strings.Count(g.Text, ": wake "); n == 0 || len(g.Text) >= 10_000 {
			t.Fatalf("%d wakes in %d bytes", n, len(g.Text))
		} else {
			told += n
		}
		all, tokens = append(all, h), append(tokens, g.Token)
	}
	if len(all) < 3 {
		t.Errorf("%d deliveries", len(all))
	}
	for i, h := range all {
		h.say("ack " + tokens[i] + "\n")
		h.ends()
	}
	w.holds(0, 0, 0)
}

func TestAnAckThatWasHeardCountsAfterADeathAtEachStep(t *testing.T) {
	for step, again := range map[wake.Step]bool{
		wake.Accepting: true, // nobody but the dead has heard it, and OpenCode keeps no session that could be read
		wake.Accepted:  false,
		wake.Emitted:   false,
		wake.Settling:  false,
	} {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t)
			h := w.holder("opencode", "VXTEST_AT="+string(step)+"=kill")
			w.put("news")
			g := h.takes("news")
			h.say("ack " + g.Token + "\n")
			h.wait()
			w.waitFor(0)
			next := w.holder("opencode")
			if again {
				next.takes("news")
				return
			}
			eventually(t, "it is settled", func() bool { return strings.HasPrefix(w.ended("news"), "delivered") })
			w.endedAs("news", "delivered acknowledged")
			next.in.Close()
			next.ends()
			w.holds(0, 0, 0)
		})
	}
}

func TestAfterTheDeathOfItsHolderPisSessionTellsWhetherTheModelHasIt(t *testing.T) {
	w := newWorld(t)
	h := w.holder("pi", "VXTEST_TRANSCRIPT="+w.session(), "VXTEST_AT=printed=wait:"+filepath.Join(w.home, "gate"))
	w.put("news")
	g := h.takes("news")
	w.session(g.Text)
	h.cmd.Process.Kill()
	h.wait()
	w.waitFor(0)
	next := w.holder("pi", "VXTEST_TRANSCRIPT="+w.session(g.Text))
	eventually(t, "it is settled", func() bool { return w.ended("news") == "delivered  turn started" })
	next.in.Close()
	next.ends()
	w.holds(0, 0, 0)
}

func TestWhatPisSessionShowsIsNotGivenBackForWantOfAnAck(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(h *holder, g given)
		last string
	}{
		{"end of input", func(h *holder, g given) { h.in.Close() }, "delivered turn started"},
		{"SIGTERM", func(h *holder, g given) { h.cmd.Process.Signal(syscall.SIGTERM) }, "delivered turn started"},
		{"nack", func(h *holder, g given) { h.say("nack " + g.Token + "\n") }, "released the client could not take them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.holder("pi", "VXTEST_TRANSCRIPT="+w.session())
			w.put("news")
			g := h.takes("news")
			w.session(g.Text)
			c.end(h, g)
			h.ends()
			w.endedAs("news", c.last)
		})
	}
}

func TestAHolderWhoseClientIsKilledGivesItBack(t *testing.T) {
	for _, said := range []bool{false, true} {
		t.Run(fmt.Sprint("acknowledged ", said), func(t *testing.T) {
			w := newWorld(t)
			h := w.otherClient("pi")
			e := w.waitFor(1)[0]
			if e.Client.PID != h.cmd.Process.Pid {
				t.Fatalf("its client is %v, want process %d", e.Client, h.cmd.Process.Pid)
			}
			w.put("news")
			g := h.takes("news")
			if said {
				// The client's last word, and both before the hold can look.
				if err := syscall.Kill(e.Process.PID, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				h.say("ack " + g.Token + "\n")
			}
			h.cmd.Process.Kill()
			h.cmd.Wait()
			syscall.Kill(e.Process.PID, syscall.SIGCONT)
			gone(t, e.Process)
			if said {
				w.holds(0, 0, 0)
				w.endedAs("news", "delivered acknowledged")
				return
			}
			w.holds(1, 0, 0)
			if got := w.ended("news"); !strings.HasPrefix(got, "released the ") {
				t.Errorf("the last of it is %q", got)
			}
		})
	}
}

func TestAHundredHoldersNeitherLoseNorShareAWake(t *testing.T) {
	const holders, wakes = 100, 60
	w := newWorld(t)
	var mu sync.Mutex
	told := map[string]int{}
	var done sync.WaitGroup
	for i := range holders {
		h := w.otherClient("pi")
		if i%10 == 9 {
			w.waitFor(i + 1)
		}
		done.Go(func() {
			line, err := h.lines.ReadString('\n')
			if err != nil {
				return // the end of the test
			}
			var g given
			if err := json.Unmarshal([]byte(line), &g); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			mu.Lock()
			for i := range wakes {
				if strings.Contains(g.Text, fmt.Sprintf(": wake %03d\n", i)) {
					told[fmt.Sprint(i)]++
				}
			}
			mu.Unlock()
			h.in.WriteString("ack " + g.Token + "\n")
			h.lines.ReadString('\n') // it ends
		})
	}
	for i := range wakes {
		w.put(fmt.Sprintf("wake %03d", i))
	}
	eventually(t, "all are told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == wakes
	})
	eventually(t, "and settled", func() bool {
		l, err := wake.Open(w.project).List(0)
		return err == nil && len(l.Waiting)+len(l.Claimed)+len(l.Emitted)+len(l.Bad) == 0
	})
	w.terminate()
	done.Wait()
	w.waitFor(0)
	for i, n := range told {
		if n != 1 {
			t.Errorf("wake %s was told %d times", i, n)
		}
	}
	events, err := wake.Open(w.project).History(0)
	if err != nil {
		t.Fatal(err)
	}
	delivered := 0
	for _, e := range events {
		if e.Event == "delivered" && e.Proof == "acknowledged" {
			delivered++
		}
	}
	if delivered != wakes {
		t.Errorf("%d of %d wakes are acknowledged in the history", delivered, wakes)
	}
}

func TestAYoungerAwaitLeavesAHolderAloneAndWaitsBesideIt(t *testing.T) {
	w := newWorld(t)
	first := w.holder("pi")
	e := w.waitFor(1)[0]
	if _, holding := e.Holding(); holding {
		t.Error("it holds nothing yet")
	}
	w.put("the first")
	g := first.takes("the first")
	since, holding := w.awaits()[0].Holding()
	if !holding || time.Since(since) > patient {
		t.Errorf("since %v it holds %v", since, holding)
	}
	second := w.holder("pi")
	w.waitFor(2)
	w.put("the second")
	g2 := second.takes("the second")
	// Longer than an older await is let be.
	third := w.holder("pi")
	eventually(t, "the third has waited out", func() bool {
		all := w.awaits()
		return len(all) == 3 && time.Since(all[2].Since) > patience+time.Second
	})
	if strings.Contains(w.log(), "SIGTERM") {
		t.Errorf("a holder was told to leave: %s", w.log())
	}
	first.say("ack " + g.Token + "\n")
	first.ends()
	second.say("nack " + g2.Token + "\n")
	second.ends()
	w.endedAs("the first", "delivered acknowledged")
	g3 := third.takes("the second")
	third.say("ack " + g3.Token + "\n")
	third.ends()
	w.waitFor(0)
	entries, err := os.ReadDir(w.dir.Awaiters())
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.Contains(e.Name(), w.project.ID()) }) {
		t.Errorf("it leaves %v, %v", entries, err)
	}
}

func TestAnOlderAwaitThatOnlyWaitsIsReplacedAsEver(t *testing.T) {
	w := newWorld(t)
	first := w.holder("pi")
	w.waitFor(1)
	second := w.holder("pi")
	first.ends()
	w.put("news")
	g := second.takes("news")
	second.say("ack " + g.Token + "\n")
	second.ends()
}

func TestAHolderPassesTheBellOn(t *testing.T) {
	w := newWorld(t)
	h := w.holder("pi")
	e := w.waitFor(1)[0]
	w.put("news")
	g := h.takes("news")
	// Its name comes behind all others: a bell that is passed on does not go round in circles.
	next, err := awaiter.Register(w.dir, w.project, awaiter.Record{Process: proc.ID{PID: 99999999, Start: 1}, Project: w.project.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	watch, err := newWatch(watched{bell: next.FD(), client: -1, signals: -1, orders: -1, out: streams{-1, -1}})
	if err != nil {
		t.Fatal(err)
	}
	e.Tell()
	eventually(t, "the next one rings", func() bool { s, err := watch.wait(0); return err == nil && s.rung })
	h.say("ack " + g.Token + "\n")
	h.ends()
}

func TestAHolderThatLeavesSomeRingsForTheNextOne(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.put(fmt.Sprintf("wake %02d", i))
	}
	next, err := awaiter.Register(w.dir, w.project, awaiter.Record{Process: proc.ID{PID: 99999999, Start: 1}, Project: w.project.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	watch, err := newWatch(watched{bell: next.FD(), client: -1, signals: -1, orders: -1, out: streams{-1, -1}})
	if err != nil {
		t.Fatal(err)
	}
	h := w.holder("pi")
	g := h.takes("more")
	eventually(t, "the next one rings", func() bool { s, err := watch.wait(0); return err == nil && s.rung })
	h.say("ack " + g.Token + "\n")
	h.ends()
}

func TestWithNobodyAtStdoutNothingIsClaimed(t *testing.T) {
	for _, redirection := range []string{"1>&-", "1>/dev/null"} {
		w := newWorld(t)
		w.put("unread")
		cmd := exec.Command("sh", "-c", `exec "$0" sentinel await --hold pi `+redirection, os.Args[0])
		cmd.Dir, cmd.Env = w.project.Root, w.with()
		h := w.holderOf(cmd)
		quiet(t, h.wait())
		w.holds(1, 0, 0)
	}
}

func TestWithoutAStdinTheClientCountsAsGone(t *testing.T) {
	for _, redirection := range []string{"0<&-", "</dev/null"} {
		w := newWorld(t)
		w.put("unread")
		cmd := exec.Command("sh", "-c", `exec "$0" sentinel await --hold pi `+redirection, os.Args[0])
		cmd.Dir, cmd.Env = w.project.Root, w.with()
		quiet(t, w.holderOf(cmd).wait())
		w.holds(1, 0, 0)
	}
}

func TestStderrIsNeverWrittenToAndNeedNotBeThere(t *testing.T) {
	for _, redirection := range []string{"2>&-", "2>/dev/null"} {
		w := newWorld(t)
		cmd := exec.Command("sh", "-c", `exec "$0" sentinel await --hold pi `+redirection, os.Args[0])
		cmd.Dir, cmd.Env = w.project.Root, w.with()
		h := w.holderOf(cmd)
		w.put("news")
		g := h.takes("news")
		h.say("ack " + g.Token + "\n")
		h.ends()
		w.endedAs("news", "delivered acknowledged")
	}
}

func TestAReaderThatLeavesRightBeforeThePrintTakesNothing(t *testing.T) {
	w := newWorld(t)
	gate := filepath.Join(w.home, "gate")
	h := w.holder("pi", "VXTEST_AT=printing=wait:"+gate)
	w.put("news")
	eventually(t, "it is about to print", func() bool { _, err := os.Lstat(gate); return err == nil })
	h.stdout.Close()
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	h.cmd.Wait()
	if got := h.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("it ended with %d", got)
	}
	w.holds(1, 0, 0)
}
