//go:build e2e

package e2e

import (
	"regexp"
	"testing"
)

// A client is killed in a turn while a wake waits for the turn's end.
func TestAWakeThatWaitsAtTheClientsDeathIsToldByTheNextOne(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		for _, life := range []struct {
			title string
			args  []string
		}{
			{"news for the same session", []string{"--continue"}},
			{"news for another session", nil},
		} {
			w.runTool(c)
			w.send("in the turn: " + life.title)
			w.inTranscript(`"enqueue"`, "in the turn: "+life.title)
			w.awaiting(0)
			w.send(life.title)
			w.becomes(life.title, "put")
			c.end("SIGKILL")
			w.becomes(life.title, "put")
			says := regexp.MustCompile(`no await since \d\d:\d\d, [12] wakes? waits?; delivered at the end of the next turn`)
			if out := w.vx("status"); !says.MatchString(out) {
				t.Errorf("vx status does not say what becomes of the wakes:\n%s", out)
			}
			c = w.session(life.args...)
			w.woken(life.title)
			w.delivered(life.title, 1)
			w.becomes("in the turn: "+life.title, "put", "claimed", "emitted", "put_back", "claimed", "emitted", "delivered (turn started)")
			w.once("in the turn: " + life.title)
		}
	})
}
