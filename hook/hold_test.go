package hook

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"vx/internal/proc"
	"vx/internal/wake"
)

// A holder is an await with --hold, and the client's ends of its streams.
type holder struct {
	*hookProcess
	t     *testing.T
	lines *bufio.Reader
}

// given is the line that a holder prints.
type given struct{ Token, Text string }

// holder starts `vx sentinel await --hold`; the test process is its client.
func (w *world) holder(harness string, changes ...string) *holder {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], "sentinel", "await", "--hold", harness)
	cmd.Dir, cmd.Env = w.project.Root, w.with(changes...)
	return w.holderOf(cmd)
}

func (w *world) holderOf(cmd *exec.Cmd) *holder {
	w.t.Helper()
	h := w.launch(cmd, "…")
	return &holder{h, w.t, bufio.NewReader(h.stdout)}
}

// otherClient puts a program that is no shell between the test and the hold, which is the client then.
func (w *world) otherClient(harness string, changes ...string) *holder {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], os.Args[0], "sentinel", "await", "--hold", harness)
	cmd.Dir, cmd.Env = w.project.Root, w.with(append(changes, "VXTEST_ROLE=parent")...)
	return w.holderOf(cmd)
}

func (h *holder) say(text string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, text); err != nil {
		h.t.Fatal(err)
	}
}

// takes reads the line that the hold prints.
func (h *holder) takes(titles ...string) given {
	h.t.Helper()
	h.stdout.SetReadDeadline(time.Now().Add(patient))
	line, err := h.lines.ReadString('\n')
	var g given
	if err == nil {
		err = json.Unmarshal([]byte(line), &g)
	}
	if err != nil || g.Token == "" || !strings.Contains(g.Text, g.Token) {
		h.t.Fatalf("it printed %q: %v", line, err)
	}
	for _, title := range titles {
		if !strings.Contains(g.Text, title) {
			h.t.Errorf("the text lacks %q: %q", title, g.Text)
		}
	}
	return g
}

// ends checks that it ends with 0 and prints nothing more.
func (h *holder) ends() {
	h.t.Helper()
	rest, _ := h.lines.Peek(h.lines.Buffered())
	r := h.wait()
	r.Stdout = string(rest) + r.Stdout
	quiet(h.t, r)
}

// ended is what the history says last of the wake with that title.
func (w *world) ended(title string) string {
	w.t.Helper()
	events, err := wake.Open(w.project).History(0)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; e.Title == title {
			return strings.TrimSpace(strings.Join([]string{e.Event, e.Why, e.Proof}, " "))
		}
	}
	return ""
}

func (w *world) endedAs(title, want string) {
	w.t.Helper()
	if got := w.ended(title); strings.Join(strings.Fields(got), " ") != want {
		w.t.Errorf("%s: the last of it is %q, want %q", title, got, want)
	}
}

func TestADeliveryThatIsAcknowledgedIsOver(t *testing.T) {
	for _, harness := range []string{"pi", "opencode", ""} {
		t.Run(harness, func(t *testing.T) {
			w := newWorld(t)
			h := w.holder(harness)
			e := w.waitFor(1)[0]
			if want, _ := proc.Find(os.Getpid()); e.Client != want || e.Harness != harness || e.Session != "s1" || e.Pane != "p1" {
				t.Errorf("its record says %+v", e.Record)
			}
			w.put("news")
			g := h.takes("news")
			w.holds(0, 1, 0)
			h.say("ack " + g.Token + "\n")
			h.ends()
			w.holds(0, 0, 0)
			w.endedAs("news", "delivered acknowledged")
			events, err := wake.Open(w.project).History(2)
			if err != nil || events[0].Event != "emitted" || events[0].Harness != harness || events[0].Client != os.Getpid() || events[0].Session != "s1" {
				t.Errorf("history %+v, %v", events, err)
			}
		})
	}
}

func TestADeliveryThatIsNotTakenGoesBack(t *testing.T) {
	for name, c := range map[string]struct {
		do  func(h *holder, g given)
		why string
	}{
		"nack":            {func(h *holder, g given) { h.say("nack " + g.Token + "\n") }, "the client could not take them"},
		"end of input":    {func(h *holder, g given) { h.in.Close() }, "the client closed stdin"},
		"stdout hung up":  {func(h *holder, g given) { h.stdout.Close() }, "the client hung up"},
		"SIGTERM":         {func(h *holder, g given) { h.cmd.Process.Signal(syscall.SIGTERM) }, "a signal"},
		"SIGINT":          {func(h *holder, g given) { h.cmd.Process.Signal(syscall.SIGINT) }, "a signal"},
		"SIGHUP":          {func(h *holder, g given) { h.cmd.Process.Signal(syscall.SIGHUP) }, "a signal"},
		"another's ack":   {func(h *holder, g given) { h.say("ack 0000000000000000\n"); h.in.Close() }, "the client closed stdin"},
		"half an ack":     {func(h *holder, g given) { h.say("ack " + g.Token[:8]); h.in.Close() }, "the client closed stdin"},
		"a longer ack":    {func(h *holder, g given) { h.say("ack " + g.Token + "0\n"); h.in.Close() }, "the client closed stdin"},
		"nack, then ack":  {func(h *holder, g given) { h.say("nack " + g.Token + "\nack " + g.Token + "\n") }, "the client could not take them"},
		"another command": {func(h *holder, g given) { h.say("ACK " + g.Token + "\nack\n\nack  " + g.Token + "\n"); h.in.Close() }, "the client closed stdin"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.holder("pi")
			w.put("news")
			g := h.takes("news")
			c.do(h, g)
			if name == "stdout hung up" {
				h.cmd.Wait()
				if got := h.cmd.ProcessState.ExitCode(); got != 0 {
					t.Errorf("it ended with %d", got)
				}
			} else {
				h.ends()
			}
			w.holds(1, 0, 0)
			w.endedAs("news", "released "+c.why)
			w.waitFor(0)
		})
	}
}

func TestAnAckThatIsInThePipeCountsWhateverEndsTheHold(t *testing.T) {
	for name, end := range map[string]func(h *holder){
		"end of input":             func(h *holder) { h.in.Close() },
		"SIGTERM":                  func(h *holder) { h.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGTERM and end of input": func(h *holder) { h.cmd.Process.Signal(syscall.SIGTERM); h.in.Close() },
		"the streams hang up":      func(h *holder) { h.hang(); h.in.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.holder("pi")
			w.put("news")
			g := h.takes("news")
			// Both are there before it can look at either.
			h.cmd.Process.Signal(syscall.SIGSTOP)
			id, err := proc.Find(h.cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is stopped", func() bool { return id.Status() == proc.Stopped })
			h.say("nonsense\nack other\nack " + g.Token + "\r\n")
			end(h)
			h.cmd.Process.Signal(syscall.SIGCONT)
			h.cmd.Wait()
			if got := h.cmd.ProcessState.ExitCode(); got != 0 {
				t.Errorf("it ended with %d", got)
			}
			w.holds(0, 0, 0)
			w.endedAs("news", "delivered acknowledged")
		})
	}
}

func TestAnAckWithoutAnEndOfLineCountsWhenTheHoldIsEnded(t *testing.T) {
	w := newWorld(t)
	h := w.holder("pi")
	w.put("news")
	g := h.takes("news")
	h.say("ack " + g.Token)
	h.cmd.Process.Signal(syscall.SIGTERM)
	h.ends()
	w.holds(0, 0, 0)
	w.endedAs("news", "delivered acknowledged")
}

func TestAnAckWithoutAnEndOfLineCountsAtTheEndOfInput(t *testing.T) {
	w := newWorld(t)
	h := w.holder("pi")
	w.put("news")
	g := h.takes("news")
	h.say("ack " + g.Token)
	h.in.Close()
	h.ends()
	w.endedAs("news", "delivered acknowledged")
}
