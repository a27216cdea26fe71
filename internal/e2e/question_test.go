//go:build e2e

package e2e

import (
	"strconv"
	"testing"
)

// A question that the model asks by its tool is a dialog, which waits for a person. The commander is told of it once, and
// then of the end: by a soldier in a pane of a newer herdr's, and by one that no herdr shows.
func TestTheCommanderIsToldOfAQuestionInADialog(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newField(newCommand(t, version), 22)
		roofer := f.startIn(f.repository("field"), nil)
		f.commandHere()

		wall := choice{"Shall the wall be of stone?", []string{"granite", "oak"}}
		f.api.when("build the wall", answer{asks: &wall})
		walls, mason := f.dispatch("the wall", "build the wall")
		roof := choice{"Shall the roof be of straw?", []string{"reed", "slate"}}
		gate := make(chan struct{})
		f.api.when("make the roof", answer{asks: &roof, gate: gate})
		roofer.prompt("make the roof")
		roofer.becomes("busy") // no Enter is on its way any more, which would answer
		close(gate)
		roofs := f.hands("watch", strconv.Itoa(roofer.proc.pid), "--title", "the roof")

		n := f.told(walls, "waits at a dialog in pane "+f.tasks()[walls].Herdr.Pane, "build the wall")
		for _, words := range append(wall.options, wall.question) {
			f.says(n, words)
		}
		n = f.told(roofs, "waits at a dialog in process "+strconv.Itoa(roofer.proc.pid), "make the roof")
		for _, words := range append(roof.options, roof.question) {
			f.says(n, words)
		}
		f.sweeps(walls, roofs)

		f.api.when(wall.question, answer{bash: aCommit + "; echo wall-is-built"})
		mason.answers()
		f.told(walls, "running -> done", "wall-is-built")
		f.api.when(roof.question, answer{bash: "echo roof-is-made"})
		roofer.answers()
		f.told(roofs, "running -> done", "roof-is-made")
		f.nothing(walls)
		f.nothing(roofs)
	})
}

// answers is a person who takes the first of the answers of the dialog that the client waits at.
func (c *client) answers() {
	c.w.t.Helper()
	c.becomes("waiting")
	c.keys("Enter")
	c.w.eventually("the dialog is answered", func() bool { return c.status() != "waiting" })
}
