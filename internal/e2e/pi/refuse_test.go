//go:build e2e

package pi

import (
	"strings"
	"testing"
	"time"

	"vx/internal/e2e/clients"
	"vx/internal/e2e/openai"
)

// Pi refuses what it is given while it compacts, and tells nobody but its screen.
func TestAWakeDuringCompactionIsHeldUntilItsEnd(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		w.model.Open(2)
		for _, text := range []string{"GATE2 one", "GATE2 two", "GATE2 three"} {
			p.Say(text + strings.Repeat(" and so on", 10))
			w.eventually("the turn", func() bool { return w.model.Turns(text) == 1 })
			w.eventually("its end", func() bool { return strings.Count(p.Screen(), "mock reply") >= len(w.model.Requests()) })
		}
		w.model.Shut(2)
		p.Say("/compact")
		w.model.Wait(t, func(all []openai.Request) bool { return all[len(all)-1].Tools == 0 }, "the summary is asked for")
		w.send("deploy finished")
		w.held()
		time.Sleep(5 * time.Second) // for what must not happen: offers every two seconds
		if s := p.Screen(); strings.Contains(s, "Error") || strings.Contains(s, "in progress") {
			t.Errorf("the wake was offered and refused:\n%s", s)
		}
		w.becomes("deploy finished", "put", "claimed")
		w.model.Open(2)
		w.delivered("deploy finished")
	})
}

// Without a model every message is refused, and nothing says so but an error that a program sees.
func TestAWakeThatPiCannotTakeGoesToTheNextPi(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		clients.PiConfig(t, w.home, "")
		p := w.drive(w.project)
		w.awaiting(1)
		w.send("deploy finished")
		w.held()
		w.eventually("the refusal", func() bool { return p.count("extension_error") > 0 })
		time.Sleep(7 * time.Second) // for what must not happen: an offer every two seconds
		if n := p.count("extension_error"); n != 1 {
			t.Errorf("it was refused %d times in seven seconds, want once", n)
		}
		w.becomes("deploy finished", "put", "claimed")
		p.end()
		w.becomes("deploy finished", "put", "claimed", "released")
		clients.PiConfig(t, w.home, w.model.URL)
		w.drive(w.project)
		w.becomes("deploy finished", append([]string{"put", "claimed", "released"}, acknowledged[1:]...)...)
		w.once("deploy finished")
	})
}
