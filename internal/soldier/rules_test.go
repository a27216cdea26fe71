package soldier

import (
	"strings"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/task"
)

func TestNothingIsDecidedInTheFirstEightSeconds(t *testing.T) {
	w := dispatched(t)
	w.state(herdr.Working)
	w.pass(time.Second)
	w.look()
	w.commits()
	w.state(herdr.Idle)
	w.pass(6 * time.Second)
	w.look()
	w.is(task.Running)
	w.pass(time.Second)
	w.look()
	w.is(task.Done)
}

func TestOneThatNeverStartsIsUnconfirmedAfterTwoMinutes(t *testing.T) {
	w := dispatched(t)
	w.text.Text = "Trust this folder?\n"
	w.sweep(119 * time.Second)
	w.is(task.Running)
	w.woke()
	w.sweep(8 * time.Second)
	w.is(task.Unconfirmed)
	w.woke("unconfirmed")
	for _, want := range []string{"never started", "Trust this folder?"} {
		if !strings.Contains(w.task.Note, want) {
			t.Errorf("the note %q lacks %q", w.task.Note, want)
		}
	}
	if !strings.Contains(w.task.Output, "Trust this folder?") {
		t.Errorf("the output %q is not the pane's text", w.task.Output)
	}
}

func TestASequenceThatMovedIsAStart(t *testing.T) {
	w := dispatched(t)
	w.agent.Seq += 2 // a whole turn between two looks
	w.commits()
	w.sweep(20 * time.Second)
	w.is(task.Done)
}

func TestWhatWasDeliveredBeforeAnyLookIsAStart(t *testing.T) {
	w := dispatched(t)
	w.agent.HasSeq = false
	w.commits()
	w.sweep(20 * time.Second)
	w.is(task.Done)
}

func TestARestartOfTheSentinelIsNoTwoMinutes(t *testing.T) {
	w := dispatched(t)
	w.pass(10 * time.Minute) // nobody watched
	w.look()
	w.sweep(20 * time.Second)
	w.is(task.Running)
	w.sweep(15 * time.Second)
	w.is(task.Unconfirmed)
}

func TestWorkClearsEveryStampButThatOfAPause(t *testing.T) {
	w := dispatched(t)
	w.works()
	at := w.wall
	w.task.AgentNotFoundSince, w.task.IdleUnconfirmedSince, w.task.BackgroundSince, w.task.DialogSince, w.task.PauseSeenAt = at, at, at, at, at
	w.sweep(5 * time.Second)
	want := Stamps{PauseSeen: at}
	if got := stampsOf(&w.task); got != want {
		t.Errorf("stamps %+v, want %+v", got, want)
	}
}

func TestUnknownDecidesNothing(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	for name, agent := range map[string]func(){
		"unknown status":     func() { w.agent.Status = herdr.Unknown },
		"status of tomorrow": func() { w.agent.Status = "pondering" },
		"launch pending":     func() { w.agent.Status, w.agent.LaunchPending = herdr.Idle, true },
		"a name only":        func() { w.agent.Status, w.agent.Kind = herdr.Idle, "" },
	} {
		kept := *w.agent
		agent()
		w.sweep(10 * time.Minute)
		if w.task.Status != task.Running || len(w.wakes) > 0 {
			t.Errorf("%s: %s, wakes %q", name, w.task.Status, w.wakes)
		}
		*w.agent = kept
	}
}

func TestAnAgentThatIsGoneForTenSecondsIsInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		pane Pane
		want string
	}{
		"closed": {PaneGone, "pane was closed"},
		"left":   {PaneEmpty, "left its pane"},
	} {
		t.Run(name, func(t *testing.T) {
			w := dispatched(t)
			w.works()
			agent := w.agent
			w.agent, w.pane = nil, c.pane
			w.pass(5 * time.Second)
			w.look()
			if w.task.AgentNotFoundSince.IsZero() {
				t.Error("no stamp")
			}
			w.pass(9 * time.Second)
			w.look()
			w.is(task.Running)
			w.agent = agent
			w.sweep(5 * time.Second)
			if !w.task.AgentNotFoundSince.IsZero() {
				t.Error("back in time, and the stamp stands")
			}
			w.agent = nil
			w.sweep(10 * time.Second)
			w.is(task.Running)
			w.sweep(5 * time.Second)
			w.is(task.Interrupted)
			w.woke("interrupted")
			if !strings.Contains(w.task.Note, c.want) {
				t.Errorf("note %q", w.task.Note)
			}
		})
	}
}

func TestOneLongGapIsNotTwoSweeps(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.agent = nil
	w.sweep(5 * time.Second)
	w.m.Unknown() // herdr did not answer
	w.pass(time.Minute)
	w.look()
	w.is(task.Running)
}

func TestAPaneThatCannotBeAskedForIsNotGone(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.agent, w.pane = nil, PaneUnknown
	w.sweep(10 * time.Minute)
	w.is(task.Running)
}

func TestASuspendConfirmsNothing(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Idle)
	w.pass(5 * time.Second)
	w.look()
	w.wall = w.wall.Add(2 * time.Hour) // asleep: the awake clock stood still
	w.pass(5 * time.Second)
	w.look()
	w.is(task.Running)
	w.agent = nil
	w.pass(5 * time.Second)
	w.look()
	w.wall = w.wall.Add(2 * time.Hour)
	w.pass(4 * time.Second)
	w.look()
	w.is(task.Running)
	w.woke()
}

func TestAClockThatJumpsChangesNoWindow(t *testing.T) {
	for _, jump := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		w := dispatched(t)
		w.look()
		w.wall = w.wall.Add(jump)
		w.sweep(110 * time.Second)
		w.is(task.Running)
		w.sweep(20 * time.Second)
		w.is(task.Unconfirmed)
	}
}

func TestADialogIsToldOnce(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Blocked)
	w.text.Text = "Do you want to run rm?\n❯ 1. Yes\n  2. No\n"
	w.sweep(5 * time.Second)
	w.woke()
	w.sweep(time.Minute)
	w.woke("dialog")
	w.is(task.Running)
	if w.task.DialogSince.IsZero() {
		t.Error("no stamp")
	}
	w.m = new(Memory) // the sentinel starts anew
	w.sweep(time.Minute)
	w.woke("dialog")
	w.state(herdr.Working)
	w.sweep(5 * time.Second)
	if !w.task.DialogSince.IsZero() {
		t.Error("the dialog is gone, and the stamp stands")
	}
	w.state(herdr.Blocked)
	w.sweep(10 * time.Second)
	w.woke("dialog", "dialog")
}

func TestADialogThatEndsInRestLeavesNoStamp(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Blocked)
	w.text.Text = alien
	w.sweep(15 * time.Second)
	w.woke("dialog")
	w.text.Text = idleScreen
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Running)
	if !w.task.DialogSince.IsZero() {
		t.Error("the dialog is gone, and the stamp stands")
	}
}

func TestADialogInTheWayOfAStartIsNoStart(t *testing.T) {
	w := dispatched(t)
	w.agent.Status = herdr.Blocked
	w.text.Text = "Trust this folder?\n"
	w.sweep(130 * time.Second)
	w.is(task.Unconfirmed)
	w.woke("dialog", "unconfirmed")
}

func TestLooksInOneSecondAreOneSweep(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Blocked)
	w.text.Text = alien
	for range 10 {
		w.pass(100 * time.Millisecond)
		w.look()
	}
	w.woke()
	w.sweep(5 * time.Second)
	w.woke("dialog")
}

func TestAGapLongerThanTheWindowIsStillOneSweep(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Idle)
	w.pass(5 * time.Second)
	w.look()
	w.m = new(Memory) // the sentinel starts anew, a minute later
	w.pass(time.Minute)
	w.look()
	w.is(task.Running)
	w.sweep(25 * time.Second)
	w.is(task.Running)
}

func TestAnAgentThatIsThereAgainBetweenTwoGapsIsNotGone(t *testing.T) {
	w := dispatched(t)
	w.works()
	agent := w.agent
	for range 20 {
		w.agent, w.pane = nil, PaneGone
		w.sweep(5 * time.Second)
		w.pane = PaneUnknown
		w.sweep(5 * time.Second)
		w.pane = PaneGone
		w.sweep(5 * time.Second)
	}
	w.agent = agent
	w.is(task.Running)
}

func TestWhatIsWrittenChangesOnlyWithTheEvidence(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.agent.Title = "π - proj"
	if v := w.look(); v.Changes(&w.task) {
		t.Errorf("still working, and %+v is to be written", v)
	}
	at := w.task.Evidence.At
	w.sweep(time.Minute)
	if !w.task.Evidence.At.Equal(at) {
		t.Error("written anew")
	}
	w.state(herdr.Idle)
	w.sweep(5 * time.Second)
	if e := w.task.Evidence; e.State != "idle" || e.By != "own line" {
		t.Errorf("evidence %+v", e)
	}
}

func TestOnlyWorkAndARestAfterTheEndNeedNoFurtherLooks(t *testing.T) {
	w := dispatched(t)
	settled := func() bool {
		w.pass(5 * time.Second)
		v := w.look()
		return v.Settled(&w.task)
	}
	if settled() {
		t.Error("idle before it has worked")
	}
	w.state(herdr.Working)
	if !settled() {
		t.Error("working")
	}
	w.state(herdr.Idle)
	if settled() {
		t.Error("idle without a proof")
	}
	w.state(herdr.Blocked)
	if settled() {
		t.Error("at a dialog")
	}
	w.commits()
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Done)
	if !settled() {
		t.Error("finished and at rest")
	}
}

func TestADialogTellsWhatItShows(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Blocked)
	w.text.Text = "Do you want to run rm?\n"
	w.pass(5 * time.Second)
	w.look()
	w.pass(5 * time.Second)
	v := w.look()
	if !v.Dialog || v.Note != "Do you want to run rm?" {
		t.Errorf("dialog %v, note %q", v.Dialog, v.Note)
	}
}

func TestADialogOfTheTitleIsToldThoughHerdrSeesNone(t *testing.T) {
	w := dispatched(t)
	w.task.Agent, w.agent.Kind = "codex", "codex"
	w.works()
	w.state(herdr.Idle)
	w.agent.Title = "[ ! ] Action Required | proj"
	w.sweep(15 * time.Second)
	w.woke("dialog")
}

func TestADialogThatOnlyHerdrSeesIsNone(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	w.state(herdr.Blocked)
	w.sweep(15 * time.Second)
	w.is(task.Done)
	w.woke("done")
}

func TestProofIsDone(t *testing.T) {
	for name, c := range map[string]struct {
		proof Proof
		kind  task.Kind
		want  task.Status
	}{
		"a commit":           {Proof{Head: "bbbb", Commit: true}, "mission", task.Done},
		"a report":           {Proof{Head: "aaaa", Report: true}, "scout", task.Done},
		"a moved head alone": {Proof{Head: "bbbb"}, "mission", task.Running},
		"nothing":            {Proof{Head: "aaaa"}, "mission", task.Running},
	} {
		t.Run(name, func(t *testing.T) {
			w := dispatched(t)
			w.task.Kind = c.kind
			w.works()
			w.state(herdr.Done)
			w.proof = c.proof
			w.sweep(25 * time.Second)
			w.is(c.want)
			if c.want == task.Done && w.task.Output != strings.TrimRight(idleScreen, "\n") {
				t.Errorf("output %q", w.task.Output)
			}
		})
	}
}

func TestAFallbackOfHerdrsNeedsOneMoreUnchangedSweep(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.fallback = true
	w.state(herdr.Idle)
	w.commits()
	w.sweep(5 * time.Second)
	w.is(task.Running)
	w.text.Text = strings.Replace(idleScreen, "Fixed", "Nearly fixed", 1)
	w.sweep(5 * time.Second)
	w.is(task.Running)
	w.sweep(5 * time.Second)
	w.is(task.Done)
}

func TestAnUnknownScreenNeedsOneMoreUnchangedSweep(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.text.Text = alien
	w.state(herdr.Idle)
	w.commits()
	w.sweep(5 * time.Second)
	w.is(task.Running)
	w.sweep(5 * time.Second)
	w.is(task.Done)
}

func TestAPaneThatCannotBeReadDecidesAllTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		text Text
		want string
	}{
		"unreadable": {Text{Err: "agent_not_idle"}, "could not be read (agent_not_idle)"},
		"unstable":   {Text{Text: idleScreen}, "had not come to rest"},
		"visible":    {Text{Text: idleScreen, Stable: true, Visible: true}, "only the visible part"},
	} {
		t.Run(name, func(t *testing.T) {
			w := dispatched(t)
			w.works()
			w.text = c.text
			w.commits()
			w.state(herdr.Idle)
			w.sweep(10 * time.Second)
			w.is(task.Done)
			lines := strings.Split(w.task.Output, "\n")
			last := lines[len(lines)-1]
			for _, want := range []string{MayLack, c.want, "vx prompt"} {
				if !strings.Contains(last, want) {
					t.Errorf("the last line %q lacks %q", last, want)
				}
			}
		})
	}
}

func TestAQuestionBlocks(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	w.text.Text = strings.Replace(idleScreen, " Fixed it.", " needs-decision: Postgres or SQLite?", 1)
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Blocked)
	w.woke("blocked")
	d := w.task.Decision
	if d == nil || d.Question != "Postgres or SQLite?" || !d.AskedAt.Equal(w.wall.Add(0)) && d.AskedAt.IsZero() {
		t.Fatalf("decision %+v", d)
	}
	// Answered, worked, and the question still stands on the screen.
	d.Answer = "SQLite"
	w.task.Status, w.task.PromptedAt, w.task.Head = task.Running, w.wall, w.proof.Head
	w.task.Herdr.StateChangeSeq = w.agent.Seq
	w.proof.Commit = false
	w.works()
	w.state(herdr.Idle)
	w.sweep(40 * time.Second)
	w.is(task.Unconfirmed)
}

func TestADismissedQuestionIsNotAskedAgain(t *testing.T) {
	w := dispatched(t)
	w.task.Decision = &task.Decision{Question: "Postgres or  SQLite?", Dismissed: true}
	w.works()
	w.commits()
	w.text.Text = strings.Replace(idleScreen, " Fixed it.", " needs-decision: Postgres or SQLite?", 1)
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Done)
}

func TestAPauseHoldsForHalfAnHour(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	w.state(herdr.Idle)
	w.pause = Pause{Declared: true, Modified: w.wall}
	w.sweep(30*time.Minute - 5*time.Second)
	w.is(task.Running)
	w.woke()
	if w.task.PauseSeenAt.IsZero() {
		t.Error("no stamp")
	}
	w.sweep(10 * time.Second)
	w.is(task.Done)
}

func TestASuspendDoesNotEndAPause(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	w.state(herdr.Idle)
	w.pause = Pause{Declared: true, Modified: w.wall}
	w.sweep(10 * time.Second)
	w.wall = w.wall.Add(2 * time.Hour)
	w.sweep(20 * time.Minute)
	w.is(task.Running)
}

func TestAnEndWithoutProofIsUnconfirmedAfterThirtySeconds(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Idle)
	w.pass(5 * time.Second)
	w.look()
	w.sweep(29 * time.Second)
	w.is(task.Running)
	if w.task.IdleUnconfirmedSince.IsZero() {
		t.Error("no stamp")
	}
	w.pass(time.Second)
	w.look()
	w.is(task.Unconfirmed)
	w.woke("unconfirmed")
	for _, want := range []string{"pane is idle", "no commit nor report", "herdr pane read", "Fixed it."} {
		if !strings.Contains(w.task.Note, want) {
			t.Errorf("the note %q lacks %q", w.task.Note, want)
		}
	}
}

func TestAPauseThatIsGoneIsTold(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.state(herdr.Idle)
	w.pause = Pause{Declared: true, Modified: w.wall}
	w.sweep(10 * time.Minute)
	w.pause = Pause{}
	w.works()
	w.state(herdr.Idle)
	w.sweep(time.Minute)
	w.is(task.Unconfirmed)
	if !strings.Contains(w.task.Note, "declared a pause that is gone") {
		t.Errorf("note %q", w.task.Note)
	}
}

func TestAPauseIsRememberedWhileWorkIsWaitedFor(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.text.Text = busyScreen
	w.state(herdr.Idle)
	w.pause = Pause{Declared: true, Modified: w.wall}
	w.sweep(10 * time.Second)
	if w.task.PauseSeenAt.IsZero() || w.task.BackgroundSince.IsZero() {
		t.Errorf("stamps %+v", stampsOf(&w.task))
	}
}

func TestABranchThatCannotBeReadIsNotCalledOneWithoutACommit(t *testing.T) {
	for proof, why := range map[Proof]string{{}: "its branch cannot be read.", {Gone: "/home/u/shop"}: "its repository is gone from /home/u/shop."} {
		t.Run(why, func(t *testing.T) { notKnown(t, proof, why) })
	}
}

func notKnown(t *testing.T, proof Proof, why string) {
	idle := dispatched(t)
	idle.works()
	idle.proof = proof
	idle.state(herdr.Idle)
	idle.sweep(40 * time.Second)
	idle.is(task.Unconfirmed)
	gone := dispatched(t)
	gone.works()
	gone.proof, gone.agent, gone.pane = proof, nil, PaneGone
	gone.sweep(20 * time.Second)
	gone.is(task.Interrupted)
	for _, w := range []*world{idle, gone} {
		if note := w.task.Note; !strings.Contains(note, "Whether there is a commit is not known: "+why) || strings.Contains(note, "there is no commit") {
			t.Errorf("%s: %q", w.task.Status, note)
		}
	}
}
