//go:build e2e

package e2e

import (
	"strconv"
	"testing"

	"vx/internal/herdr/herdrtest"
	"vx/internal/task"
)

// Of sessions that are watched a commit is the proof, on the branch of where they work, and a question is none.
func TestACommitIsTheProofOfAWatchedSession(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newField(newCommand(t, version), 19)
		meadow, orchard := f.repository("meadow"), f.repository("orchard")
		// One that was started by another client keeps no record: its title and its screen are all there is.
		pane := f.herdr.Agent(herdrtest.Agent{Name: "mower", State: herdrtest.Unknown, CWD: meadow})
		mower := f.startIn(meadow, append(pane.Env(), "CLAUDE_CODE_CHILD_SESSION=1"))
		back(pane, mower)
		picker := f.startIn(orchard, nil)
		f.commandHere()

		turn := func(prompt string, ans answer, meanwhile func()) {
			f.t.Helper()
			ans.gate = make(chan struct{})
			f.api.when(prompt, ans)
			mower.prompt(prompt)
			f.eventually("herdr sees it work", func() bool { return pane.Status() == herdrtest.Working })
			meanwhile()
			close(ans.gate)
		}
		mowing := ""
		turn("mow the meadow", answer{bash: "echo meadow-is-mown"}, func() {
			mowing = f.hands("watch", pane.CurrentID(), "--title", "the meadow")
		})
		if s := mower.status(); s != "" {
			f.t.Fatalf("it keeps a record (%s): this test shows nothing", s)
		}

		// With a record, but without a turn since it is watched.
		picking := f.hands("watch", strconv.Itoa(picker.proc.pid), "--title", "the orchard")
		f.commit(orchard)
		f.told(picking, "running -> done", "")
		// Its first turn: 2.1.197 may write the answer before the prompt.
		gate := make(chan struct{})
		f.api.when("pick the apples", answer{say: "needs-decision: Shall the green ones be picked?\n\n- all\n- none of them", gate: gate})
		picker.prompt("pick the apples")
		f.eventually("it is seen to work again", func() bool { return f.tasks()[picking].Status == task.Running })
		close(gate)
		n := f.told(picking, "running -> blocked", "pick the apples")
		f.says(n, "Shall the green ones be picked?")
		f.says(n, "none of them")

		n = f.told(mowing, "running -> unconfirmed", "meadow-is-mown")
		f.says(n, "no commit since")
		turn("rake the meadow", answer{bash: aCommit + "; echo meadow-is-raked"}, func() {
			f.eventually("it is seen to work again", func() bool { return f.tasks()[mowing].Status == task.Running })
		})
		f.told(mowing, "running -> done", "meadow-is-raked")
		f.nothing(picking)
		f.nothing(mowing)
	})
}
