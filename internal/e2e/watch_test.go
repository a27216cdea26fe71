//go:build e2e

package e2e

import (
	"strconv"
	"testing"

	"vx/internal/task"
)

// A session in any terminal, watched without a herdr: its own record says what it does.
func TestTheCommanderIsToldTheTruthAboutASessionWithoutHerdr(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newCommand(t, version)
		field := f.path("field")
		f.trust(field)
		f.mustRun("/usr/bin/git", "init", "-q", field)
		f.commit(field)
		soldier := f.startIn(field, nil)
		f.commander = f.session()
		id := ""

		f.step("a silent tool of half a minute is no end", func() {
			f.api.when("haul the stone", answer{bash: f.path("slow") + "; echo stone-is-hauled"})
			soldier.prompt("haul the stone")
			soldier.becomes("busy")
			id = f.hands("watch", strconv.Itoa(soldier.proc.pid), "--title", "work in the field")
			f.told(id, "running -> done", "stone-is-hauled")
		})
		// A turn that comes later, and lasts at least until it is seen.
		begin := func(prompt string, ans answer) (goOn func()) {
			f.t.Helper()
			gate := make(chan struct{})
			ans.gate = gate
			f.api.when(prompt, ans)
			soldier.prompt(prompt)
			f.eventually("the soldier is seen to work again", func() bool { return f.tasks()[id].Status == task.Running })
			return func() { close(gate) }
		}
		turn := func(prompt string, ans answer) {
			f.t.Helper()
			begin(prompt, ans)()
		}
		f.step("a shell in the background is no end", func() {
			gate := f.path("gate")
			turn("light the fire", answer{bash: "while [ ! -e " + gate + " ]; do sleep 0.2; done; echo fire-is-out", behind: true})
			soldier.becomes("shell")
			f.sweeps(id)
			f.writeFile(gate, "", 0o600)
			f.told(id, "running -> done", fireIsOut)
			f.mustBe(soldier, "idle")
		})
		f.step("a dialog waits for a person", func() {
			turn("dig the well", answer{bash: "mkdir well && echo well-is-dug"})
			f.told(id, "waits at a dialog in process "+strconv.Itoa(soldier.proc.pid), "dig the well")
			f.mustBe(soldier, "waiting")
			soldier.keys("Enter")
			f.told(id, "running -> done", "well-is-dug")
		})
		f.step("Esc ends the turn", func() {
			begin("count the sheep", answer{say: "never said"})
			soldier.keys("Escape")
			f.told(id, "running -> done", "count the sheep")
			f.mustBe(soldier, "idle")
		})
		f.step("an API error ends the turn", func() {
			relent := f.api.refuse("sea-is-ploughed")
			turn("plough the sea", answer{bash: "echo sea-is-ploughed"})
			soldier.becomes("idle")
			relent()
			f.told(id, "running -> done", "sea-is-ploughed")
			if !f.hasRow(`"isApiErrorMessage":true`) {
				f.t.Error("the turn did not end by an error: this shows nothing")
			}
		})
		f.step("after /clear it is the same soldier", func() {
			before := soldier.session()
			soldier.enter("/clear", func() bool { return soldier.session() != before })
			f.sweeps(id)
			turn("sow the field", answer{bash: "echo field-is-sown"})
			f.told(id, "running -> done", "field-is-sown")
		})
		f.step("a question", func() {
			turn("build the wall", answer{say: "I looked at it.\n\nneeds-decision: Shall the wall be of stone?\n\n- stone\n- wood"})
			n := f.told(id, "running -> blocked", "build the wall")
			f.says(n, "Shall the wall be of stone?")
			f.says(n, "wood")
		})
		f.step("a kill is no end but an interruption", func() {
			turn("guard the gate", answer{bash: f.path("slow")})
			soldier.end("SIGKILL")
			f.told(id, "running -> interrupted", "guard the gate")
		})
		f.nothing(id)
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
