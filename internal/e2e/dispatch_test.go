//go:build e2e

package e2e

import "testing"

// Two soldiers in a herdr's panes: while one of them works, the other ends its turns without having delivered anything.
func TestTheCommanderIsToldTheTruthAboutSoldiersInPanes(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newField(newCommand(t, version), 20)
		f.commandHere()
		var good, bad string
		var worker, idler *client

		f.step("a silent tool of half a minute is no end, and Esc is none that delivers", func() {
			f.api.when("count the sheep", answer{say: "never said", gate: make(chan struct{})})
			bad, idler = f.dispatch("bad work", "count the sheep")
			idler.becomes("busy")
			f.api.when("haul the stone", answer{bash: f.path("slow") + "; " + aCommit + "; echo stone-is-hauled"})
			good, worker = f.dispatch("good work", "haul the stone")
			f.nothing(bad)
			idler.keys("Escape")
			f.told(good, "running -> done", "stone-is-hauled")
			n := f.told(bad, "running -> unconfirmed", "count the sheep")
			f.says(n, "no commit nor report")
		})
		f.step("a dialog waits for a person", func() {
			idler.keys("C-c") // clears what the client may have given back, of several lines
			relent := f.api.refuse("sea-is-ploughed")
			f.turn(bad, idler, answer{bash: "echo sea-is-ploughed"}, "prompt", bad, "plough the sea")
			idler.becomes("idle")
			relent() // the commander will be shown the same words
			f.turn(good, worker, answer{bash: "mkdir well && " + aCommit + " && echo well-is-dug"}, "prompt", good, "dig the well")
			n := f.told(good, "waits at a dialog in pane "+f.tasks()[good].Herdr.Pane, "dig the well")
			f.says(n, "mkdir well")
			f.mustBe(worker, "waiting")
			worker.keys("Enter")
			f.told(good, "running -> done", "well-is-dug")
		})
		f.step("a question is answered, and an API error is no end that delivers", func() {
			f.turn(good, worker, answer{say: "I looked at it.\n\nneeds-decision: Shall the wall be of stone?\n\n- stone\n- wood"}, "prompt", good, "build the wall")
			n := f.told(good, "running -> blocked", "build the wall")
			f.says(n, "Shall the wall be of stone?")
			f.says(n, "wood")
			f.turn(good, worker, answer{bash: aCommit + "; echo wall-is-built"}, "decide", good, "of wood, then")
			f.told(good, "running -> done", "wall-is-built")
			n = f.told(bad, "running -> unconfirmed", "sea-is-ploughed")
			f.says(n, "no commit nor report")
		})
		f.nothing(good)
		f.nothing(bad)
	})
}

// What a soldier in a pane leaves behind: a shell, another session, nothing.
func TestTheCommanderIsToldTheTruthAboutWhatSoldiersLeaveBehind(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newField(newCommand(t, version), 20)
		f.commandHere()
		var keeper, sower string
		var atFire, inField *client

		f.step("a shell in the background is no end, even with a commit, and after /clear it is the same soldier", func() {
			gate := f.path("gate")
			f.api.when("light the fire", answer{bash: aCommit + "; while [ ! -e " + gate + " ]; do sleep 0.2; done; echo fire-is-out", behind: true})
			keeper, atFire = f.dispatch("the fire", "light the fire")
			f.api.when("plough the field", answer{bash: aCommit + "; echo field-is-ploughed"})
			sower, inField = f.dispatch("the field", "plough the field")
			atFire.becomes("shell")
			f.told(sower, "running -> done", "field-is-ploughed")
			before := inField.session()
			inField.enter("/clear", func() bool { return inField.session() != before })
			f.turn(sower, inField, answer{bash: aCommit + "; echo field-is-sown"}, "prompt", sower, "sow the field")
			f.told(sower, "running -> done", "field-is-sown")
			f.nothing(keeper) // though the sentinel has looked at all for twice as long as it waits after a prompt
			f.writeFile(gate, "", 0o600)
			f.told(keeper, "running -> done", fireIsOut)
			f.mustBe(atFire, "idle")
		})
		f.step("a kill is no end but an interruption, and another soldier goes on", func() {
			reached := f.path("reached")
			f.turn(keeper, atFire, answer{bash: aCommit + "; touch " + reached + "; " + f.path("slow")}, "prompt", keeper, "guard the gate")
			f.eventually("the tool runs", func() bool { return exists(reached) })
			atFire.end("SIGKILL")
			n := f.told(keeper, "running -> interrupted", "guard the gate")
			f.says(n, "process has ended")
			f.api.when("Another session began this task", answer{bash: aCommit + "; echo gate-is-guarded"})
			f.order("redispatch", keeper)
			f.told(keeper, "running -> done", "gate-is-guarded")
		})
		f.nothing(keeper)
		f.nothing(sower)
	})
}
