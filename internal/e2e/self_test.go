//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"

	"vx/internal/task"
)

// A session that is watched in the commander's own project waited for news itself. That of its own end must not wake it: it
// would work again, and end again, without an end.
func TestAWatchedSessionIsNotWokenByItsOwnEnd(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newCommand(t, version)
		soldier := f.session()
		f.commander = f.session()
		for _, work := range []string{"haul the stone", "dig the well"} {
			gate := make(chan struct{})
			f.api.when(work, answer{say: "It is done.", gate: gate})
			soldier.prompt(work)
			id := ""
			for id = range f.tasks() {
				f.eventually("the soldier is seen to work again", func() bool { return f.tasks()[id].Status == task.Running })
			}
			if id == "" {
				id = f.hands("watch", strconv.Itoa(soldier.proc.pid), "--title", "work beside")
			}
			close(gate)
			f.told(id, "running -> done", work)
			f.awaiting(1)
			if len(f.commander.awaits()) != 1 {
				f.t.Error("it is not the commander who waits")
			}
			if s := soldier.screen(); strings.Contains(s, "Stop hook feedback") {
				f.t.Errorf("the soldier was woken by its own end\n%s", s)
			}
		}
	})
}
