package hook

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"vx/internal/proc"
	"vx/internal/state"
)

func TestAHolderHasTheGateOfTheHook(t *testing.T) {
	const herdr = "HERDR_WORKSPACE_ID"
	for _, c := range []struct {
		name  string
		env   []string
		waits bool
	}{
		{"a commander's pane", nil, true},
		{"switched off", []string{"VX_HOOK=0"}, false},
		{"in no pane", []string{herdr}, false},
		{"told to wait, but in no pane", []string{"VX_AWAIT=1", herdr}, false},
		{"what says that Claude is headless", []string{"CLAUDE_CODE_SESSION_ATTENDED=0", "CLAUDE_CODE_ENTRYPOINT=sdk-ts", "CLAUDECODE=1"}, true},
		{"Claude's project", []string{"CLAUDE_PROJECT_DIR=/somewhere"}, true},
		{"a soldier's pane", []string{"HERDR_PANE_ID=w1:p2", "HERDR_SOCKET_PATH=/s", "VXTEST_SOLDIER=w1:p2 /s"}, false},
		{"a pane beside a soldier's", []string{"HERDR_PANE_ID=w1:p3", "HERDR_SOCKET_PATH=/s", "VXTEST_SOLDIER=w1:p2 /s"}, true},
		{"a watched session", []string{"VXTEST_WATCHED=" + strconv.Itoa(os.Getpid())}, false},
		{"a state directory that cannot be", []string{"VEXILLUM_HOME=relative"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			h := w.holder("pi", c.env...)
			if c.waits {
				w.waitFor(1)
				w.terminate()
			}
			h.ends()
			w.waitFor(0)
		})
	}
}

func TestAHolderInACampOrOutsideOfAnyProjectIsNotWanted(t *testing.T) {
	w := newWorld(t)
	camp, plain := w.project.Join("camps", "task-1"), filepath.Join(w.home, "plain")
	if err := errors.Join(os.MkdirAll(camp+"/.git", 0o700), os.Mkdir(plain, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{camp, plain} {
		cmd := exec.Command(os.Args[0], "sentinel", "await", "--hold", "pi")
		cmd.Dir, cmd.Env = dir, w.with()
		w.holderOf(cmd).ends()
	}
}

func TestAHolderOutsideOfPanesWaitsWhereItsProjectOptedIn(t *testing.T) {
	w := newWorld(t)
	if err := errors.Join(w.project.Ensure(), w.project.Update(func(c *state.Config) { c.Await = "always" })); err != nil {
		t.Fatal(err)
	}
	h := w.holder("pi", "HERDR_WORKSPACE_ID", "HERDR_PANE_ID")
	w.put("news")
	g := h.takes("news")
	h.say("ack " + g.Token + "\n")
	h.ends()
	// Claude's variable names this project, and the model of another one works elsewhere.
	cmd := exec.Command(os.Args[0], "sentinel", "await", "--hold", "pi")
	cmd.Dir, cmd.Env = w.repository("other"), w.with("HERDR_WORKSPACE_ID")
	w.holderOf(cmd).ends()
}

func TestNothingOnStdinKeepsAHolderFromItsWork(t *testing.T) {
	noise := make([]byte, 3<<20)
	rand.Read(noise)
	for name, input := range map[string]string{
		"Claude's JSON":         stop("s9", false),
		"binary":                string(noise),
		"one endless line":      strings.Repeat("x", 3<<20),
		"a million empty lines": strings.Repeat("\n", 1<<20),
		"a million commands":    strings.Repeat("ack 0123456789abcdef\n", 1<<16),
		"half a command":        "ack ",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.holder("pi")
			e := w.waitFor(1)[0]
			if e.Session != "s1" {
				t.Errorf("its session is %q", e.Session)
			}
			h.say(input)
			w.put("news")
			g := h.takes("news")
			h.say(input)
			h.say("\nack " + g.Token + "\n")
			h.ends()
			w.endedAs("news", "delivered acknowledged")
			if log := w.log(); len(log) > 64<<10 {
				t.Errorf("the log has %d bytes", len(log))
			}
		})
	}
}

func TestAClientThatTalksOnAndOnIsGone(t *testing.T) {
	w := newWorld(t)
	h := w.holder("pi")
	w.waitFor(1)
	go io.Copy(h.in, io.LimitReader(endless{}, 2*maxSaid)) // until nobody reads it
	h.ends()
	w.put("news")
	w.holds(1, 0, 0)
}

// endless are lines that mean nothing.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "y\n"[i%2]
	}
	return len(p), nil
}

func TestASecondAckAndWhatFollowsMeanNothing(t *testing.T) {
	w := newWorld(t)
	h := w.holder("pi")
	w.put("news")
	g := h.takes("news")
	h.say("ack " + g.Token + "\nack " + g.Token + "\nnack " + g.Token + "\n")
	h.ends()
	w.endedAs("news", "delivered acknowledged")
	w.holds(0, 0, 0)
}

// clock is a file by which a test moves the clocks of the processes that it starts.
func (w *world) clock() (env string, set func(by string)) {
	w.t.Helper()
	path := filepath.Join(w.home, "clock")
	set = func(by string) {
		if err := errors.Join(os.WriteFile(path+".new", []byte(by), 0o600), os.Rename(path+".new", path)); err != nil {
			w.t.Fatal(err)
		}
	}
	set("0s")
	return "VXTEST_CLOCK=" + path, set
}

// nudge makes the awaits look around.
func (w *world) nudge() {
	for _, e := range w.awaits() {
		e.Tell()
	}
}

func TestOpenCodeHasHalfAMinute(t *testing.T) {
	for _, c := range []struct {
		harness, after string
		released       bool
	}{
		{"opencode", "29s", false},
		{"opencode", "30s", true},
		{"pi", "2h", false},
		{"", "2h", false},
	} {
		t.Run(c.harness+" "+c.after, func(t *testing.T) {
			w := newWorld(t)
			env, set := w.clock()
			h := w.holder(c.harness, env)
			w.put("news")
			g := h.takes("news")
			set(c.after)
			w.nudge()
			if c.released {
				h.ends()
				w.endedAs("news", "released not acknowledged")
				w.holds(1, 0, 0)
				// The word that comes too late finds nobody, and is no other's.
				next := w.holder(c.harness)
				g2 := next.takes("news")
				next.say("ack " + g.Token + "\n" + "ack " + g2.Token + "\n")
				next.ends()
				w.endedAs("news", "delivered acknowledged")
				return
			}
			eventually(t, "the bell is answered", func() bool { return !w.ringing(w.awaits()[0]) })
			w.holds(0, 1, 0)
			h.say("ack " + g.Token + "\n")
			h.ends()
			w.endedAs("news", "delivered acknowledged")
		})
	}
}

func TestWhileOpenCodeIsStoppedItsTimeDoesNotRun(t *testing.T) {
	w := newWorld(t)
	env, set := w.clock()
	h := w.otherClient("opencode", env)
	w.put("news")
	g := h.takes("news")
	e := w.awaits()[0]
	h.cmd.Process.Signal(syscall.SIGSTOP)
	eventually(t, "it is stopped", func() bool { return e.Client.Status() == proc.Stopped })
	set("10m")
	w.nudge()
	eventually(t, "the bell is answered", func() bool { return !w.ringing(e) })
	w.holds(0, 1, 0)
	h.cmd.Process.Signal(syscall.SIGCONT)
	w.nudge()
	eventually(t, "the bell is answered", func() bool { return !w.ringing(e) })
	w.holds(0, 1, 0)
	h.say("ack " + g.Token + "\n")
	h.ends()
	w.endedAs("news", "delivered acknowledged")
}

func TestAHolderThatOnlyWaitsEndsAfter55MinutesAndOneThatHoldsDoesNot(t *testing.T) {
	w := newWorld(t)
	env, set := w.clock()
	h := w.holder("pi", env)
	w.waitFor(1)
	set("54m")
	w.nudge()
	eventually(t, "the bell is answered", func() bool { return !w.ringing(w.awaits()[0]) })
	w.put("news")
	g := h.takes("news")
	set("10h")
	w.nudge()
	eventually(t, "the bell is answered", func() bool { return !w.ringing(w.awaits()[0]) })
	w.holds(0, 1, 0)
	h.say("ack " + g.Token + "\n")
	h.ends()
	set("0s")
	h = w.holder("pi", env)
	w.waitFor(1)
	set("55m")
	w.put("too late for this one")
	h.ends()
	w.holds(1, 0, 0)
}

func TestALineOfOrdersMayComeInPieces(t *testing.T) {
	const token = "0123456789abcdef"
	for name, c := range map[string]struct {
		input string
		want  verdict
	}{
		"ack":                            {"ack " + token + "\n", acked},
		"nack":                           {"nack " + token + "\n", nacked},
		"the first counts":               {"nack " + token + "\nack " + token + "\n", nacked},
		"behind other lines":             {"x\n\n\nack y\nack " + token + "\n", acked},
		"with a carriage return":         {"ack " + token + "\r\n", acked},
		"without an end":                 {"ack " + token, acked},
		"another token":                  {"ack 0123456789abcdee\n", noVerdict},
		"upper case":                     {"ACK " + token + "\n", noVerdict},
		"more behind it":                 {"ack " + token + " please\n", noVerdict},
		"no space":                       {"ack" + token + "\n", noVerdict},
		"a space before it":              {" ack " + token + "\n", noVerdict},
		"the token alone":                {token + "\n", noVerdict},
		"at the end of a line too long":  {strings.Repeat("x", 2*maxOrder) + "ack " + token + "\n", noVerdict},
		"a line too long that begins so": {"ack " + token + strings.Repeat(" ", 2*maxOrder) + "\n", noVerdict},
		"behind a line too long":         {strings.Repeat("x", 2*maxOrder) + "\nack " + token + "\n", acked},
		"with a zero byte":               {"ack " + token + "\x00\n", noVerdict},
	} {
		for _, size := range []int{1, 7, len(c.input)} {
			var log bytes.Buffer
			o := &orders{log: slog.New(slog.NewTextHandler(&log, nil))}
			got := noVerdict
			for at := 0; at < len(c.input) && got == noVerdict; at += size {
				got = o.take([]byte(c.input[at:min(at+size, len(c.input))]), token)
			}
			if got == noVerdict {
				o.over = true
				got = o.of(token)
			}
			if got != c.want {
				t.Errorf("%s, in pieces of %d: %v, want %v", name, size, got, c.want)
			}
			if len(o.line) > maxOrder {
				t.Errorf("%s: %d bytes are kept", name, len(o.line))
			}
		}
	}
}
