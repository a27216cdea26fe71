//go:build e2e

package e2e

import (
	"strconv"
	"testing"

	"vx/internal/task"
)

// A watched is a session in any terminal that is watched without a herdr: its own record says what it does.
type watched struct {
	*command
	soldier *client
	id      string // "" before its first turn
}

func newWatched(t *testing.T, version string) *watched {
	f := &watched{command: newCommand(t, version)}
	f.soldier = f.startIn(f.repository("field"), nil)
	f.commander = f.session()
	return f
}

// begin gives the soldier a turn that lasts at least until it is seen. In its first one it is begun to be watched.
func (f *watched) begin(prompt string, ans answer) (goOn func()) {
	f.t.Helper()
	gate := make(chan struct{})
	ans.gate = gate
	f.api.when(prompt, ans)
	f.soldier.prompt(prompt)
	if f.id == "" {
		f.soldier.becomes("busy")
		f.id = f.hands("watch", strconv.Itoa(f.soldier.proc.pid), "--title", "work in the field")
	}
	f.eventually("the soldier is seen to work", func() bool { return f.tasks()[f.id].Status == task.Running })
	return func() { close(gate) }
}

func (f *watched) turn(prompt string, ans answer) {
	f.t.Helper()
	f.begin(prompt, ans)()
}

func TestTheCommanderIsToldTheTruthAboutASessionWithoutHerdr(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newWatched(t, version)
		f.step("a silent tool of half a minute is no end", func() {
			f.turn("haul the stone", answer{bash: f.path("slow") + "; echo stone-is-hauled"})
			f.told(f.id, "running -> done", "stone-is-hauled")
		})
		f.step("a shell in the background is no end", func() {
			gate := f.path("gate")
			f.turn("light the fire", answer{bash: "while [ ! -e " + gate + " ]; do sleep 0.2; done; echo fire-is-out", behind: true})
			f.soldier.becomes("shell")
			f.sweeps(f.id)
			f.writeFile(gate, "", 0o600)
			f.told(f.id, "running -> done", fireIsOut)
			f.mustBe(f.soldier, "idle")
		})
		f.step("a dialog waits for a person", func() {
			f.turn("dig the well", answer{bash: "mkdir well && echo well-is-dug"})
			n := f.told(f.id, "waits at a dialog in process "+strconv.Itoa(f.soldier.proc.pid), "dig the well")
			f.says(n, "Bash: mkdir well")
			f.mustBe(f.soldier, "waiting")
			f.soldier.keys("Enter")
			f.told(f.id, "running -> done", "well-is-dug")
		})
		f.nothing(f.id)
	})
}

func TestTheCommanderIsToldOfTheEndsOfASessionWithoutHerdr(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newWatched(t, version)
		f.step("Esc ends the turn", func() {
			f.begin("count the sheep", answer{say: "never said"})
			f.soldier.keys("Escape")
			f.told(f.id, "running -> done", "count the sheep")
			f.mustBe(f.soldier, "idle")
		})
		f.step("an API error ends the turn", func() {
			relent := f.api.refuse("sea-is-ploughed")
			f.turn("plough the sea", answer{bash: "echo sea-is-ploughed"})
			f.soldier.becomes("idle")
			relent()
			f.told(f.id, "running -> done", "sea-is-ploughed")
			if !f.hasRow(`"isApiErrorMessage":true`) {
				f.t.Error("the turn did not end by an error: this shows nothing")
			}
		})
		f.step("after /clear it is the same soldier", func() {
			before := f.soldier.session()
			f.soldier.enter("/clear", func() bool { return f.soldier.session() != before })
			f.sweeps(f.id)
			f.turn("sow the field", answer{bash: "echo field-is-sown"})
			f.told(f.id, "running -> done", "field-is-sown")
		})
		f.step("a question", func() {
			f.turn("build the wall", answer{say: "I looked at it.\n\nneeds-decision: Shall the wall be of stone?\n\n- stone\n- wood"})
			n := f.told(f.id, "running -> blocked", "build the wall")
			f.says(n, "Shall the wall be of stone?")
			f.says(n, "wood")
		})
		f.step("a kill is no end but an interruption", func() {
			f.turn("guard the gate", answer{bash: f.path("slow")})
			f.soldier.end("SIGKILL")
			f.told(f.id, "running -> interrupted", "guard the gate")
		})
		f.nothing(f.id)
	})
}

// fireIsOut is how the clients tell the model that a shell in the background has ended.
const fireIsOut = `Background command "mock" completed`

// mustBe checks that what the commander was just told of the soldier is so.
func (f *command) mustBe(c *client, status string) {
	f.t.Helper()
	if got := c.status(); got != status {
		f.t.Errorf("the soldier is %s, want %s", got, status)
	}
}
