package soldier

import (
	"strings"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/task"
)

func TestWorkInTheBackgroundHoldsWhateverWasDelivered(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	w.text.Text = busyScreen
	w.state(herdr.Idle)
	w.sweep(30 * time.Minute)
	w.is(task.Running)
	w.woke()
	if w.task.BackgroundSince.IsZero() {
		t.Error("no stamp")
	}
	w.sweep(10 * time.Second)
	w.is(task.Unconfirmed)
	w.woke("unconfirmed")
	lines := strings.Split(w.task.Output, "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "still showed running work after 30 minutes") || !strings.Contains(last, "report may not exist") {
		t.Errorf("the last line is %q", last)
	}
	w.sweep(time.Hour)
	w.is(task.Unconfirmed)
	w.woke("unconfirmed")
}

func TestOneHeldTooLongGoesOnWhenSomethingMoves(t *testing.T) {
	for name, move := range map[string]func(*world){
		"its state alone": func(w *world) {
			w.agent.Seq += 2
			w.sweep(5 * time.Second)
			w.is(task.Running)
			w.text.Text = idleScreen
		},
		"its state": func(w *world) {
			w.state(herdr.Working)
			w.sweep(5 * time.Second)
			w.text.Text = idleScreen
			w.state(herdr.Idle)
		},
		"the marks leave":   func(w *world) { w.text.Text = idleScreen },
		"it delivers again": func(w *world) { w.commits(); w.sweep(5 * time.Second); w.is(task.Running); w.text.Text = idleScreen },
	} {
		t.Run(name, func(t *testing.T) {
			w := dispatched(t)
			w.works()
			w.commits()
			w.text.Text = busyScreen
			w.state(herdr.Idle)
			w.sweep(31 * time.Minute)
			w.is(task.Unconfirmed)
			move(w)
			w.sweep(20 * time.Second)
			w.is(task.Done)
			w.woke("unconfirmed", "done")
		})
	}
}

func TestMarksThatLeaveBeforeTheEndOfTheWaitSettleNormally(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.text.Text = busyScreen
	w.state(herdr.Idle)
	w.sweep(29 * time.Minute)
	w.text.Text = idleScreen
	w.sweep(25 * time.Second)
	w.is(task.Running)
	if !w.task.BackgroundSince.IsZero() {
		t.Error("the stamp stands")
	}
	w.sweep(15 * time.Second)
	w.is(task.Unconfirmed)
	w.woke("unconfirmed")
}

func TestAFinishedTaskThatWorksAgainRunsWithoutAWake(t *testing.T) {
	for _, status := range []task.Status{task.Done, task.Blocked, task.Unconfirmed, task.Shipped} {
		t.Run(string(status), func(t *testing.T) {
			w := dispatched(t)
			w.works()
			w.commits()
			w.state(herdr.Idle)
			w.sweep(10 * time.Second)
			w.is(task.Done)
			finished := w.wall
			w.task.Status = status
			w.sweep(time.Minute)
			w.is(status)
			w.state(herdr.Working)
			w.sweep(5 * time.Second)
			w.is(task.Running)
			if w.asked&NeedAgain == 0 {
				t.Error("it was probed once only")
			}
			w.woke("done")
			// Its next end is a transition like any other, and what it delivered before proves nothing.
			if w.task.Head != w.proof.Head || w.task.PromptedAt.After(finished) {
				t.Errorf("head %s, prompted %v", w.task.Head, w.task.PromptedAt)
			}
			w.commits()
			w.state(herdr.Idle)
			w.sweep(10 * time.Second)
			w.is(task.Done)
			w.woke("done", "done")
		})
	}
}

func TestAFollowUpWithoutACommitIsNotDoneByTheOldOne(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Done)
	w.state(herdr.Working)
	w.sweep(10 * time.Second)
	w.is(task.Running)
	w.proof.Commit = w.proof.Head != w.task.Head
	w.state(herdr.Idle)
	w.sweep(40 * time.Second)
	w.is(task.Unconfirmed)
}

func TestAHeadThatCouldNotBeReadAtTheEndIsReadWhenItWorksAgain(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	head := w.proof.Head
	w.proof = Proof{Report: true, At: w.wall}
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Done)
	w.proof = Proof{Head: head}
	w.state(herdr.Working)
	w.sweep(10 * time.Second)
	w.is(task.Running)
	if w.task.Head != head {
		t.Errorf("it works again from %q on, want %q: what it had delivered would be new", w.task.Head, head)
	}
}

func TestBlipsDoNotReopen(t *testing.T) {
	w := dispatched(t)
	w.task.Status = task.Done
	w.sweep(10 * time.Second)
	for range 5 {
		w.state(herdr.Working)
		w.pass(5 * time.Second)
		Judge(&w.task, &Look{Now: w.now, Wall: w.wall, Agent: w.agent, Proof: &w.proof}, w.m)
		w.state(herdr.Idle)
		w.sweep(5 * time.Second)
	}
	w.state(herdr.Working)
	o := &Look{Now: w.now, Wall: w.wall, Agent: w.agent, Proof: &w.proof}
	if v := Judge(&w.task, o, w.m); v.Need != NeedAgain {
		t.Errorf("need %v, to %q", v.Need, v.To)
	}
}

func TestOneBlipDoesNotReopen(t *testing.T) {
	w := dispatched(t)
	w.task.Status = task.Done
	w.sweep(10 * time.Second)
	w.state(herdr.Working)
	o := &Look{Now: w.now, Wall: w.wall, Agent: w.agent, Proof: &w.proof}
	if v := Judge(&w.task, o, w.m); v.Need != NeedAgain {
		t.Fatalf("need %v", v.Need)
	}
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Done)
}

func TestAnotherAgentInThePaneDoesNotReopen(t *testing.T) {
	for name, other := range map[string]func(*herdr.Agent){
		"of another kind": func(a *herdr.Agent) { a.Kind = "codex" },
		"somewhere else":  func(a *herdr.Agent) { a.Name, a.CWD = "", "/campsite" },
	} {
		w := dispatched(t)
		w.task.Status = task.Done
		w.sweep(5 * time.Second)
		other(w.agent)
		w.state(herdr.Working)
		w.sweep(30 * time.Second)
		if w.task.Status != task.Done {
			t.Errorf("%s: %s", name, w.task.Status)
		}
	}
}

func TestAnInterruptedTaskIsNotReopened(t *testing.T) {
	w := dispatched(t)
	w.task.Status = task.Interrupted
	w.state(herdr.Working)
	w.sweep(time.Minute)
	w.is(task.Interrupted)
}
