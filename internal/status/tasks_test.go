package status

import (
	"testing"
	"time"

	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

func TestATaskSaysWhatItWaitsFor(t *testing.T) {
	now := time.Now()
	at := ", since " + now.Local().Format("15:04")
	pane := &task.Herdr{Pane: "w1:p3"}
	for _, c := range []struct {
		task task.Task
		want string
	}{
		{task.Task{Status: task.Pending, UpdatedAt: now}, "its agent to start"},
		{task.Task{Status: task.Pending, UpdatedAt: now.Add(-time.Hour)}, "you to strike it: its dispatch was cut short"},
		{task.Task{Status: task.Running}, "the end of its turn"},
		{task.Task{Status: task.Running, Herdr: pane, DialogSince: now, BackgroundSince: now}, "you, at a dialog in pane w1:p3" + at},
		{task.Task{Status: task.Running, DialogSince: now}, "you, at a dialog" + at},
		{task.Task{Status: task.Running, AgentNotFoundSince: now}, "its agent, which is nowhere to be seen" + at},
		{task.Task{Status: task.Running, BackgroundSince: now}, "what runs in its background" + at},
		{task.Task{Status: task.Running, PauseSeenAt: now, Evidence: &task.Evidence{State: "idle"}}, "what it has paused for" + at},
		{task.Task{Status: task.Running, PauseSeenAt: now, Evidence: &task.Evidence{State: "working"}}, "the end of its turn"},
		{task.Task{Status: task.Blocked, Decision: &task.Decision{Question: "Keep them?"}}, "your decision: Keep them?"},
		{task.Task{Status: task.Blocked}, "your decision"},
		{task.Task{Status: task.Done, Camp: &task.Camp{}}, "land, ship or prompt"},
		{task.Task{Status: task.Done, Kind: wake.KindScout, ReportPath: "/r/1.md", Camp: &task.Camp{}}, "you to read 1.md"},
		{task.Task{Status: task.Done}, "you"},
		{task.Task{Status: task.Unconfirmed}, "you to look at it"},
		{task.Task{Status: task.Interrupted}, "redispatch or strike"},
		{task.Task{Status: task.Shipped}, "its review"},
		{task.Task{Status: task.Landed}, "strike"},
		{task.Task{Status: task.Struck}, ""},
		{task.Task{Status: "from the future"}, ""},
	} {
		if got := Waits(c.task); got != c.want {
			t.Errorf("%+v waits for %q, want %q", c.task, got, c.want)
		}
	}
}

func TestTasksThatAreOverAreCountedOrShown(t *testing.T) {
	d, err := state.OpenAt(t.TempDir() + "/state")
	if err != nil {
		t.Fatal(err)
	}
	p := d.Project("/home/u/shop")
	for _, s := range []task.Status{task.Running, task.Struck, task.Landed} {
		if _, err := task.Open(p).Add(t.Context(), task.Task{Title: string(s), Status: s, Herdr: &task.Herdr{Pane: "w1:p3"}}); err != nil {
			t.Fatal(err)
		}
	}
	r := Of(t.Context(), p, false)
	if len(r.Tasks) != 1 || r.Over != 2 || r.Tasks[0].Title != "running" || r.Tasks[0].Pane != "w1:p3" {
		t.Errorf("the tasks are %+v, over are %d", r.Tasks, r.Over)
	}
	if r := Of(t.Context(), p, true); len(r.Tasks) != 3 || r.Over != 0 {
		t.Errorf("all tasks are %+v, over are %d", r.Tasks, r.Over)
	}
}

// What a running task was last told is older than what was last seen of it.
func TestTheAgeOfARunningTaskIsThatOfItsTurn(t *testing.T) {
	first, later := time.Unix(1000, 0), time.Unix(2000, 0)
	running := task.Task{Status: task.Running, PromptedAt: first, UpdatedAt: later}
	done := task.Task{Status: task.Done, PromptedAt: first, UpdatedAt: later}
	if !Since(running).Equal(first) || !Since(done).Equal(later) {
		t.Errorf("they are since %v and %v", Since(running), Since(done))
	}
}
