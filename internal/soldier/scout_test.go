package soldier

import (
	"strings"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/task"
)

func TestACommitOfAScoutsIsNoReport(t *testing.T) {
	w := dispatched(t)
	w.task.Kind, w.task.ReportPath = "scout", "/reports/fix.md"
	w.works()
	w.state(herdr.Done)
	w.commits()
	note := ""
	for range 9 {
		w.pass(5 * time.Second)
		if v := w.look(); v.To != "" {
			note = v.Note
		}
	}
	w.is(task.Unconfirmed)
	if !strings.Contains(note, "there is no report since it was prompted, though its branch has new commits") {
		t.Errorf("the note is %q", note)
	}
	w.proof.Report = true
	w.state(herdr.Working)
	w.sweep(10 * time.Second)
	w.is(task.Running)
	w.state(herdr.Done)
	w.sweep(25 * time.Second)
	w.is(task.Done)
}
