//go:build e2e

package e2e

import "testing"

// Scouts, in the panes of the oldest herdr.
func TestTheCommanderIsToldOfAScoutsReport(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newField(newCommand(t, version), 17)
		// Where the report goes stands in what the scout is told; the mock does not read that.
		f.writeFile(f.path("report"), "#!/bin/sh\nfor project in \"$VEXILLUM_HOME\"/projects/*; do\n\techo all is well >\"$project/reports/$VX_TASK.md\"\ndone\n", 0o700)
		f.commandHere()

		reached, gate := f.path("reached"), f.path("gate")
		f.api.when("spy out the land", answer{bash: f.path("report") + "; touch " + reached + "; while [ ! -e " + gate + " ]; do sleep 0.2; done; echo land-is-seen"})
		land, _ := f.dispatch("the land", "--kind=scout", "spy out the land")
		f.eventually("the report is written", func() bool { return exists(reached) })
		f.api.when("spy out the sea", answer{bash: aCommit + "; echo sea-is-seen"})
		sea, sailor := f.dispatch("the sea", "--kind=scout", "spy out the sea")

		f.sweeps(land) // a report alone is no end
		f.writeFile(gate, "", 0o600)
		n := f.told(land, "running -> done", "land-is-seen")
		f.says(n, "see: "+f.tasks()[land].ReportPath)

		n = f.told(sea, "running -> unconfirmed", "sea-is-seen")
		f.says(n, "there is no report since it was prompted, though its branch has new commits")
		f.turn(sea, sailor, answer{bash: f.path("report") + "; echo sea-is-told-of"}, "prompt", sea, "write your report")
		n = f.told(sea, "running -> done", "sea-is-told-of")
		f.says(n, "see: "+f.tasks()[sea].ReportPath)
		f.nothing(land)
		f.nothing(sea)
	})
}
