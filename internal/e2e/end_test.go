//go:build e2e

package e2e

import (
	"testing"
	"time"
)

func TestNoAwaitOutlivesItsClientAndTheNextWakeStays(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.alone() // a sentinel would end the awaits
		left := ""
		for _, how := range []string{"exit", "SIGTERM", "SIGKILL", "hang-up"} {
			c := w.session()
			if left != "" {
				w.delivered(left, 1) // at the end of this client's first turn
			}
			c.end(how)
			w.soonQuiet("after " + how)
			left = "news after " + how
			w.send(left)
			if got := w.listing()["waiting"]; got != 1 {
				t.Errorf("%d wakes wait after %s, want 1", got, how)
			}
		}
	})
}

// soonQuiet checks that nothing runs in the project any more by the time that a fortieth of a second has gone by two hundred
// times: on a machine that is so busy that an await is late, the looks are late too.
func (w *world) soonQuiet(when string) {
	w.t.Helper()
	for range 200 {
		if len(processesIn(w.project)) == 0 {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	for _, p := range processesIn(w.project) {
		w.t.Errorf("%s %d still runs: %s", when, p.pid, p.command())
	}
}

// The client had the wake in its own queue, as the transcript says, and never gave it to the model.
func TestAWakeThatDiedInTheClientsQueueIsGivenOnceMore(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		w.runTool(c)
		w.send("news that was lost")
		w.inTranscript(`"enqueue"`, "news that was lost")
		c.end("SIGKILL")
		w.awaiting(0)
		if n := w.api.turns("news that was lost"); n != 0 {
			t.Fatalf("the model was told in %d turns: this test shows nothing", n)
		}
		w.session("--continue")
		w.woken("news that was lost")
		w.becomes("news that was lost", "put", "claimed", "emitted", "put_back", "claimed", "emitted", "delivered (turn started)")
		w.awaiting(1)
		w.once("news that was lost")
	})
}

func TestAWakeWhoseTurnHadStartedIsNotGivenAgain(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		w.api.when("news that was read", answer{say: "never said", gate: make(chan struct{})})
		w.send("news that was read")
		w.inTranscript(`"type":"user"`, `"task-notification"`, "news that was read")
		c.end("SIGKILL")
		w.session("--continue")
		w.becomes("news that was read", "put", "claimed", "emitted", "delivered (turn started)")
		// One more delivery through the same queue, and nothing else came with it or before it.
		w.vx("wake", "send", "--title", "the next news", "--wait")
		w.delivered("the next news", 1)
		w.becomes("news that was read", "put", "claimed", "emitted", "delivered (turn started)")
	})
}

func TestATurnThatDiedOfAnErrorIsNotedAndNotRepeated(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.alone() // a sentinel that looks between the turn's start and its error is content with the start
		c := w.session()
		// 2.1.197 writes a session's first rows late, and what comes before them would stand above them.
		w.inTranscript(`"type":"assistant"`, "mock reply")
		relent := w.api.refuse("news in a bad hour")
		w.send("news in a bad hour")
		w.inTranscript(`"isApiErrorMessage":true`)
		// After an API error the client runs no Stop hook: the next turn's end brings the next await.
		relent()
		c.prompt("hello again")
		w.awaiting(1)
		w.becomes("news in a bad hour", "put", "claimed", "emitted", "delivered (turn failed)")
	})
}
