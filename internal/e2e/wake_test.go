//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAnIdleSessionIsWokenByASentWake(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		// --wait returns with the receipt: exit 0 when the model's turn has started.
		w.vx("wake", "send", "--title", "deploy finished", "--wait")
		w.woken("deploy finished")
		w.delivered("deploy finished", 1)
		story := w.story("deploy finished")
		for i, e := range story {
			if e.Time.IsZero() || i > 0 && e.Time.Before(story[i-1].Time) {
				t.Errorf("%s has the time %v", e.Event, e.Time)
			}
			if (e.Event == "emitted" || e.Event == "delivered") && e.Client != c.proc.pid {
				t.Errorf("%s went to process %d, want the client %d", e.Event, e.Client, c.proc.pid)
			}
			if e.Event == "emitted" && e.MS <= 0 {
				t.Error("emitted after no time at all")
			}
		}
	})
}

func TestAnIdleSessionIsWokenByTheEndOfARun(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.session()
		if _, status := w.tryVX("run", "--", "sh", "-c", "echo 3 tests failed; exit 3"); status != 3 {
			t.Errorf("vx run ended with %d, want the command's 3", status)
		}
		told := w.woken("3 tests failed")
		if !strings.Contains(told, "running -> failed (exit 3") {
			t.Errorf("the model was not told how the run ended: %s", told)
		}
		w.delivered("sh -c 'echo 3 tests failed; exit 3'", 1)
	})
}

func TestWakesFromBeforeTheFirstTurnComeTogetherAtItsEnd(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		for _, title := range []string{"first news", "second news", "third news"} {
			w.send(title)
		}
		c := w.start()
		if got := w.listing()["waiting"]; got != 3 {
			t.Errorf("%d wakes wait before the first turn, want 3", got)
		}
		c.prompt("hello there")
		told := w.woken("first news")
		first, second, third := strings.Index(told, "first news"), strings.Index(told, "second news"), strings.Index(told, "third news")
		if first < 0 || second < first || third < second {
			t.Errorf("the three wakes did not come in one message, oldest first: %s", told)
		}
		for _, title := range []string{"first news", "second news", "third news"} {
			w.delivered(title, 1)
		}
	})
}

// runTool leaves the client in the middle of a turn, a tool running until the returned function is called.
func (w *world) runTool(c *client) (finish func()) {
	w.t.Helper()
	reached, gate := w.path("tool.reached"), w.path("tool.gate")
	w.api.when("run the tool", answer{bash: "touch " + reached + "; while [ ! -e " + gate + " ]; do sleep 0.1; done; echo tool-done"})
	c.prompt("run the tool")
	w.eventually("the tool runs", func() bool { return exists(reached) })
	return func() { w.writeFile(gate, "", 0o600) }
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// A wake that comes while a tool runs goes into that turn. Nobody waits then until the turn's end: what comes meanwhile
// is delivered there, in one message.
func TestAWakeDuringAToolGoesIntoTheSameTurn(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		finish := w.runTool(c)
		w.send("news for the turn")
		w.inTranscript(`"enqueue"`, "news for the turn")
		w.send("more news")
		w.send("yet more news")
		if got := w.listing()["waiting"]; got != 2 {
			t.Errorf("%d wakes wait for the turn's end, want 2", got)
		}
		finish()
		w.woken("news for the turn")
		w.woken("more news")
		if told := w.api.told("yet more news"); !strings.Contains(told, "- message") || strings.Count(told, "- message ") != 2 {
			t.Errorf("the two wakes did not come in one message: %s", told)
		}
		for _, title := range []string{"news for the turn", "yet more news"} {
			w.delivered(title, 1)
		}
		if !w.api.together("tool-done", "news for the turn") {
			t.Error("the wake did not come with the tool's result")
		}
	})
}

func TestAWakeDuringAnAnswerGetsATurnOfItsOwn(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		gate := make(chan struct{})
		w.api.when("tell a story", answer{say: "once upon a time", gate: gate})
		c.prompt("tell a story")
		w.send("news in between")
		w.inTranscript(`"enqueue"`, "news in between")
		close(gate)
		w.woken("news in between")
		w.delivered("news in between", 1)
	})
}

func TestOneWakeStartsOneTurnInOneOfTwoSessions(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.session()
		w.session()
		for _, title := range []string{"one for either", "another for either"} {
			w.vx("wake", "send", "--title", title, "--wait")
			w.delivered(title, 2)
		}
	})
}

func TestAfterClearTheNewAwaitReplacesTheOld(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		before := c.session()
		c.enter("/clear", func() bool { return c.session() != before })
		// The old conversation's hook still waits, and wakes the new conversation.
		w.vx("wake", "send", "--title", "news after clear", "--wait")
		w.delivered("news after clear", 1)

		before = c.session()
		old := w.awaits()[0]
		c.enter("/clear", func() bool { return c.session() != before })
		c.prompt("hello again")
		w.eventually("the new await alone", func() bool { got := w.awaits(); return len(got) == 1 && got[0] != old })
		w.vx("wake", "send", "--title", "news for the new one", "--wait")
		w.delivered("news for the new one", 1)
	})
}

// The working directory of the client and its hooks follows the model's cd, here into another repository.
func TestAModelThatChangedItsFolderIsWokenForItsProject(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		vendor := filepath.Join(w.project, "vendor")
		if _, status := w.run("/usr/bin/git", "init", "-q", vendor); status != 0 {
			t.Fatal("git init")
		}
		w.api.when("go elsewhere", answer{bash: "cd vendor && pwd"})
		c := w.session()
		old := w.awaits()[0]
		c.prompt("go elsewhere")
		w.eventually("the new await alone", func() bool { got := w.awaits(); return len(got) == 1 && got[0] != old })
		if !worksIn(w.awaits()[0].pid, vendor) {
			t.Fatal("the hook's folder did not follow the model's cd: this test shows nothing")
		}
		w.vx("wake", "send", "--title", "news for the project", "--wait")
		w.delivered("news for the project", 1)
	})
}

func TestASessionInTwoTerminalsKeepsBothAwaits(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		first := w.session()
		second := w.session("--resume", first.session())
		if first.session() != second.session() {
			t.Fatalf("the sessions are %s and %s: this test shows nothing", first.session(), second.session())
		}
		for _, title := range []string{"news for one of them", "more news for one of them"} {
			w.vx("wake", "send", "--title", title, "--wait")
			w.delivered(title, 2)
			for _, c := range []*client{first, second} {
				if n := len(c.awaits()); n != 1 {
					t.Errorf("%d awaits serve client %d, want 1", n, c.proc.pid)
				}
			}
		}
	})
}

func TestPrintModeReturnsWithoutWaitingAndTakesNoWake(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.send("not for print mode")
		if _, status := w.run(clientBinary(t, version), "-p", "hello there"); status != 0 {
			t.Errorf("claude -p ended with %d", status)
		}
		if n := w.api.turns("hello there"); n != 1 {
			t.Errorf("the model was asked %d times, want once", n)
		}
		w.becomes("not for print mode", "put")
		if got := w.listing()["waiting"]; got != 1 {
			t.Errorf("%d wakes wait, want 1", got)
		}
	})
}

// A client that stands, as under Ctrl-Z, would be given a wake that nobody looks at.
func TestAStoppedClientIsGivenNothingUntilItGoesOn(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		goOn := c.stop()
		if _, status := w.tryVX("wake", "send", "--title", "news meanwhile", "--wait=3s"); status != 1 {
			t.Errorf("vx wake send --wait ended with %d though no turn can start, want 1", status)
		}
		w.becomes("news meanwhile", "put")
		w.awaiting(1)
		goOn()
		w.woken("news meanwhile")
		w.delivered("news meanwhile", 1)
	})
}

// stop stops the client; the returned function lets it go on.
func (c *client) stop() (goOn func()) {
	c.w.t.Helper()
	// tmux continues a child that stops, so it has to stand too.
	server := c.w.server()
	for _, p := range []process{server, c.proc} {
		p.signal(c.w.t, syscall.SIGSTOP)
		c.w.eventually("it stands", func() bool { return stat(p.pid, 3) == "T" })
	}
	return func() {
		c.proc.signal(c.w.t, syscall.SIGCONT)
		server.signal(c.w.t, syscall.SIGCONT)
	}
}
