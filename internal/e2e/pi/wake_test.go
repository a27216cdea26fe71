//go:build e2e

package pi

import (
	"strings"
	"testing"
)

func TestAnIdleCommanderIsWoken(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		first := w.awaiting(1)[0]
		if first.Harness != "pi" || first.Session == "" || first.Client != p.Process() {
			t.Errorf("the await is of %s, session %q, client %v, want pi, a session and %v", first.Harness, first.Session, first.Client, p.Process())
		}
		w.send("deploy finished")
		w.delivered("deploy finished")
		if second := w.awaiting(1)[0]; second.Process == first.Process {
			t.Error("the await is the one that has delivered")
		}
		w.send("tests finished")
		w.delivered("tests finished")
	})
}

func TestHalfTypedTextStaysWhenAWakeComes(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		p.Type("half typed")
		p.WaitScreen(t, "half typed")
		w.send("deploy finished")
		w.delivered("deploy finished")
		w.awaiting(1)
		p.Type(" and whole")
		p.WaitScreen(t, "half typed and whole")
		p.Keys("Enter")
		w.eventually("the person's own turn", func() bool { return w.model.Turns("half typed and whole") == 1 })
	})
}

// busy leaves Pi in the middle of an answer that ends when gate 1 is opened.
func (w *world) busy(say func(string)) {
	w.t.Helper()
	w.model.Shut(1)
	before := w.model.Turns("GATE1")
	say("GATE1 please")
	w.eventually("the turn", func() bool { return w.model.Turns("GATE1") > before })
}

// held waits until an await holds a delivery.
func (w *world) held() {
	w.t.Helper()
	w.eventually("a delivery in hand", func() bool {
		for _, e := range w.awaits(w.project) {
			if _, holding := e.Holding(); holding {
				return true
			}
		}
		return false
	})
}

func TestAWakeDuringAnAnswerIsHeldUntilItsTurn(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		w.busy(p.Say)
		w.send("deploy finished")
		w.held()
		p.WaitScreen(t, "Follow-up")
		w.send("tests finished")
		w.becomes("deploy finished", "put", "claimed")
		w.becomes("tests finished", "put")
		w.model.Open(1)
		w.delivered("deploy finished")
		w.delivered("tests finished")
	})
}

func TestAWakeDuringAToolFollowsTheTurn(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		p.Say("TOOL3 please")
		w.eventually("the turn", func() bool { return w.model.Turns("TOOL3") == 1 })
		w.send("deploy finished")
		w.delivered("deploy finished")
		requests := w.model.Requests()
		if last := requests[len(requests)-1]; !strings.Contains(last.Last, "deploy finished") {
			t.Errorf("the last turn is another: %q", last.Last)
		}
	})
}

func TestEscapeGivesAQueuedWakeToThePerson(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		w.busy(p.Say)
		w.send("deploy finished")
		w.held()
		p.WaitScreen(t, "Follow-up")
		p.Keys("Escape")
		w.becomes("deploy finished", acknowledged...)
		w.awaiting(1)
		if n := w.model.Turns("deploy finished"); n != 0 {
			t.Errorf("the model was told in %d turns though the text was given back", n)
		}
		w.model.Open(1)
		p.Keys("Enter") // the text is in the editor
		w.once("deploy finished")
		w.send("tests finished")
		w.delivered("tests finished")
		w.once("deploy finished")
	})
}

func TestAnAwaitThatEndsIsFollowedByAnother(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.start()
		first := w.awaiting(1)[0]
		if err := first.Terminate(); err != nil {
			t.Fatal(err)
		}
		w.eventually("another await", func() bool {
			live := w.awaits(w.project)
			return len(live) == 1 && live[0].Process != first.Process
		})
		w.send("deploy finished")
		w.delivered("deploy finished")
	})
}
