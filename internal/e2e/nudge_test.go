//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"vx/internal/commander"
	"vx/internal/herdr/herdrtest"
)

// A nudged is a commander in a herdr's pane, into which the sentinel may type.
type nudged struct {
	*field
	pane *herdrtest.Pane
}

func newNudged(t *testing.T, version string) *nudged {
	f := &nudged{field: newField(newCommand(t, version), 20)}
	f.vx("init", "--nudge", "on", "--yes")
	f.commandHere()
	for _, p := range f.herdr.Panes() {
		if p.Name() == "commander" {
			f.pane = p
		}
	}
	// From here on it is known, whatever becomes of its await.
	f.eventually("the sentinel knows the commander's terminal", func() bool {
		var all []commander.Entry
		if err := json.Unmarshal([]byte(f.vx("commander", "list", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return len(all) == 1 && all[0].Typable()
	})
	return f
}

// interrupted ends a turn by Esc: the client is idle then, and nobody waits.
func (f *nudged) interrupted() {
	f.t.Helper()
	f.api.when("news that is interrupted", answer{say: "never said", gate: make(chan struct{})})
	f.send("news that is interrupted")
	f.inTranscript(`"type":"user"`, `"task-notification"`, "news that is interrupted")
	f.commander.keys("Escape")
	f.commander.becomes("idle")
	f.becomes("news that is interrupted", "put", "claimed", "emitted", "delivered (turn started)")
	f.awaiting(0)
}

// looks waits until the sentinel has looked at the commander's prompt so many times more, which it does only when it would
// type, or has typed.
func (f *nudged) looks(n int) {
	f.t.Helper()
	looks := func() int {
		n := 0
		for _, r := range f.herdr.Requests("pane.read") {
			if r.Param("pane_id") == f.pane.CurrentID() && r.Param("format") == "ansi" {
				n++
			}
		}
		return n
	}
	before := looks()
	f.within(3*time.Minute, "the sentinel looks at the prompt", func() bool { return looks() >= before+n || len(f.prompts()) > 0 }, f.log)
}

// typed waits until the news was typed, and checks that it was so once, with a receipt.
func (f *nudged) typed(title string) {
	f.t.Helper()
	f.within(3*time.Minute, "a turn with "+title, func() bool { return f.api.turns(title) > 0 }, f.log)
	prompts := f.prompts()
	if len(prompts) != 1 || !strings.Contains(prompts[0], title) || !strings.Contains(prompts[0], "(delivery ") {
		f.t.Errorf("herdr was given %q, want the news once, with its token", prompts)
	}
	f.delivered(title, 1) // its turn's end has brought an await back
}

func (f *nudged) prompts() []string {
	var all []string
	for _, p := range f.pane.Prompts() {
		all = append(all, p.Text)
	}
	return all
}

func TestAnIdleCommanderWithoutAnAwaitIsNudgedOnceItsPromptIsEmpty(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newNudged(t, version)
		f.interrupted()
		f.commander.keys("C-u") // the client may have given back what was interrupted
		f.commander.keys("-l", "--", "half a sentence")
		f.eventually("the half sentence", func() bool { return strings.Contains(f.commander.screen(), "half a sentence") })
		f.send("news for the idle")
		f.looks(2)
		if p := f.prompts(); len(p) > 0 {
			t.Errorf("typed into half a sentence: %q", p)
		}
		f.becomes("news for the idle", "put")
		if out := f.vx("status"); !strings.Contains(out, "1 wake waits; the sentinel types into pane "+f.pane.CurrentID()) {
			t.Errorf("vx status does not say what becomes of the wake:\n%s", out)
		}
		f.commander.keys("C-u")
		f.typed("news for the idle")
		if f.api.turns("half a sentence") > 0 {
			t.Errorf("the half sentence was sent\n%s", f.api.dump())
		}
		// Whoever waits is told by the await.
		f.vx("wake", "send", "--title", "news for the await", "--wait")
		f.woken("news for the await")
		f.delivered("news for the await", 1)
	})
}

func TestACommanderWhoseTurnHasFailedIsNudgedAMinuteLater(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newNudged(t, version)
		// The turn that its await began has failed, so that nobody waits.
		relent := f.api.refuse("news in a bad hour")
		began := time.Now()
		f.send("news in a bad hour")
		f.inTranscript(`"isApiErrorMessage":true`)
		f.commander.becomes("idle")
		relent()
		f.awaiting(0)
		f.send("news after the failure")
		f.typed("news after the failure")
		for _, e := range f.story("news after the failure") {
			if e.Event == "emitted" && e.Time.Sub(began) < time.Minute {
				t.Errorf("the wake was typed %s after the failure, want a minute at least", e.Time.Sub(began))
			}
		}
	})
}
