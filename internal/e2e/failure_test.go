//go:build e2e

package e2e

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// waitsOn is what the hook's log says of wakes that wait because of failed turns.
const waitsOn = "wakes wait after a failed turn"

// hookLog returns the lines of the hook's log that hold all the parts.
func (w *world) hookLog(parts ...string) []string {
	w.t.Helper()
	data, err := os.ReadFile(w.path("state/hook.log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			found = append(found, line)
		}
	}
	return found
}

// fails has the client's turn die of an error of the service.
func (c *client) fails(status int, line string) {
	c.w.t.Helper()
	before := c.w.rows(`"isApiErrorMessage":true`)
	relent := c.w.api.refuseWith(status, line)
	defer relent()
	c.prompt(line)
	c.w.eventually("the turn has failed", func() bool { return c.w.rows(`"isApiErrorMessage":true`) > before })
	c.becomes("idle")
}

// rows counts the rows of all transcripts that hold the part.
func (w *world) rows(part string) int {
	w.t.Helper()
	n := 0
	for _, text := range w.transcripts() {
		for line := range strings.Lines(text) {
			if strings.Contains(line, part) {
				n++
			}
		}
	}
	return n
}

// A service that fails would burn the wakes, so they wait for a minute, and for two after the second failure; a turn that
// works ends that.
func TestAfterAFailedTurnWakesWaitAndAreToldOnce(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		w.vx("init", "--after-failure", "on", "--yes")
		c := w.startIn(w.project, []string{"CLAUDE_CODE_MAX_RETRIES=1"}) // else an overloaded service is asked for minutes
		began := time.Now()
		c.fails(overloaded, "hello there") // its first turn: no Stop hook has run
		w.awaiting(1)
		w.send("news after a failure")
		w.eventually("the await leaves the wake", func() bool { return len(w.hookLog(waitsOn, "in_a_row=1")) > 0 })
		w.becomes("news after a failure", "put")
		w.within(3*time.Minute, "the wake's turn", func() bool { return w.api.turns("news after a failure") > 0 }, w.api.dump)
		w.woken("news after a failure")
		w.delivered("news after a failure", 1)
		for _, e := range w.story("news after a failure") {
			if e.Event == "emitted" && e.Time.Sub(began) < time.Minute {
				t.Errorf("the wake was delivered %s after the failure, want a minute at least", e.Time.Sub(began))
			}
		}

		c.fails(http.StatusInternalServerError, "plough the sea")
		c.fails(http.StatusBadRequest, "plough it again")
		w.awaiting(1)
		w.send("news after two failures")
		w.eventually("the await leaves the wake", func() bool { return len(w.hookLog(waitsOn, "in_a_row=2")) > 0 })
		w.becomes("news after two failures", "put")
		if out := w.vx("status"); !strings.Contains(out, "the last 2 turns of client") {
			t.Errorf("vx status does not say why the wake waits:\n%s", out)
		}
		if out, _ := w.tryVX("doctor"); !strings.Contains(out, "2 in a row: no wake for it until") {
			t.Errorf("vx doctor does not say why the wake waits:\n%s", out)
		}
		c.prompt("hello again")
		w.woken("news after two failures") // before the two minutes are over
		w.delivered("news after two failures", 1)
		w.vx("wake", "send", "--title", "news after a good turn", "--wait")
		w.delivered("news after a good turn", 1)
	})
}

func TestWithoutAHookForFailedTurnsNewsWaitsForTheNextTurnAndItIsSaid(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		c := w.session()
		relent := w.api.refuse("news in a bad hour")
		w.send("news in a bad hour")
		w.inTranscript(`"isApiErrorMessage":true`)
		c.becomes("idle")
		relent()
		w.send("the first news")
		w.send("the second news")
		says := regexp.MustCompile(`no await since \d\d:\d\d, 2 wakes wait; delivered at the end of the next turn`)
		if out := w.vx("status"); !says.MatchString(out) {
			t.Errorf("vx status does not say what becomes of the wakes:\n%s", out)
		}
		if out, _ := w.tryVX("doctor"); !says.MatchString(out) {
			t.Errorf("vx doctor does not say what becomes of the wakes:\n%s", out)
		}
		w.awaiting(0)
		for _, title := range []string{"the first news", "the second news"} {
			w.becomes(title, "put")
		}
		c.prompt("hello again")
		w.woken("the first news")
		for _, title := range []string{"the first news", "the second news"} {
			w.delivered(title, 1)
		}
	})
}
