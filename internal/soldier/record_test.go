package soldier

import (
	"strings"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/screen"
	"vx/internal/task"
)

// claudes is a mission of Claude Code's, whose client keeps a record.
func claudes(t *testing.T, status string) *world {
	w := dispatched(t)
	w.task.Agent, w.agent.Kind = "claude", "claude"
	w.client = &Client{State: ClientAlive, Status: status, ID: "1 1"}
	return w
}

func (w *world) record(status string) {
	w.client = &Client{State: ClientAlive, Status: status, Changed: w.wall, ID: w.client.ID}
}

func TestTheRecordWinsOverEverythingElse(t *testing.T) {
	for name, c := range map[string]struct {
		record, waiting string
		title           string
		text            string
		herdr           herdr.Status
		want            screen.State
	}{
		"busy":                   {"busy", "", "✳ Fix", idleScreen, herdr.Idle, screen.Working},
		"idle":                   {"idle", "", "◐ Fix", busyScreen, herdr.Working, screen.Idle},
		"shell":                  {"shell", "", "✳ Fix", idleScreen, herdr.Idle, screen.Background},
		"waiting":                {"waiting", "permission prompt", "✳ Fix", idleScreen, herdr.Idle, screen.Blocked},
		"a picker":               {"waiting", "dialog open", "◐ Fix", idleScreen, herdr.Idle, screen.Working},
		"a status of tomorrow":   {"pondering", "", "◐ Fix", idleScreen, herdr.Idle, screen.Working},
		"no status":              {"", "", "◐ Fix", idleScreen, herdr.Idle, screen.Working},
		"no status and no title": {"", "", "", "", herdr.Working, screen.Working},
	} {
		t.Run(name, func(t *testing.T) {
			w := claudes(t, c.record)
			w.client.Waiting, w.agent.Title, w.agent.Status = c.waiting, c.title, c.herdr
			o := &Look{Agent: w.agent, Client: w.client}
			if c.text != "" {
				o.Text = &Text{Text: c.text, Stable: true}
			}
			if e := weigh(&w.task, o); e.State != c.want {
				t.Errorf("%+v, want %s", e.Task(w.wall), c.want)
			}
		})
	}
}

func TestEvidenceSaysWhatTheOthersSaid(t *testing.T) {
	w := claudes(t, "busy")
	w.agent.Title = "✳ Fix"
	got := weigh(&w.task, &Look{Agent: w.agent, Client: w.client}).Task(w.wall)
	if got.State != "working" || got.By != "record" || strings.Join(got.Says, "; ") != "record: working (busy); herdr: idle" {
		t.Errorf("%+v", got)
	}
}

func TestWhileHerdrAndTheTitleAgreeNothingIsAsked(t *testing.T) {
	w := claudes(t, "busy")
	w.state(herdr.Working)
	w.agent.Title = "◐ Fix"
	w.sweep(time.Minute)
	if w.asked != 0 {
		t.Errorf("asked for %b", w.asked)
	}
}

func TestARecordThatIsBusyHoldsWhatHerdrTakesForIdle(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.commits()
	w.state(herdr.Idle)
	w.sweep(29 * time.Minute)
	w.is(task.Running)
	if w.asked&NeedText != 0 {
		t.Error("the pane was read though the record says enough")
	}
	w.record("idle")
	w.sweep(5 * time.Second)
	w.is(task.Done)
	w.woke("done")
}

func TestAShellInTheBackgroundIsWaitedForHalfAnHour(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.commits()
	w.record("shell")
	w.state(herdr.Idle)
	w.sweep(30 * time.Minute)
	w.is(task.Running)
	w.sweep(10 * time.Second)
	w.is(task.Unconfirmed)
	w.record("idle")
	w.sweep(20 * time.Second)
	w.is(task.Done)
	w.woke("unconfirmed", "done")
}

func TestARecordThatIsIdleIsBelievedAtOnceWithoutHerdrsExplanation(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.commits()
	w.record("idle")
	w.fallback = true
	w.text.Text = alien
	w.state(herdr.Idle)
	w.sweep(5 * time.Second)
	w.is(task.Done)
	if w.asked&NeedExplain != 0 {
		t.Error("herdr was asked to explain")
	}
}

func TestAnIdleRecordIsNotEnoughWhileHerdrSeesWork(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.commits()
	w.record("idle")
	w.agent.Title = "✳ Fix"
	w.sweep(25 * time.Second)
	w.is(task.Running)
	w.sweep(15 * time.Second)
	w.is(task.Done)
	if !strings.Contains(w.task.Output, MayLack) {
		t.Errorf("output %q", w.task.Output)
	}
}

func TestADialogOfTheRecordIsToldWhateverHerdrSays(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.client = &Client{State: ClientAlive, Status: "waiting", Waiting: "permission prompt", ID: "1 1"}
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.woke("dialog")
	w.record("busy")
	w.state(herdr.Working)
	w.sweep(5 * time.Second)
	if !w.task.DialogSince.IsZero() {
		t.Error("the dialog is gone, and the stamp stands")
	}
}

func TestAProcessThatEndedIsGoneThoughHerdrListsIt(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.commits()
	w.client = &Client{State: ClientGone}
	w.state(herdr.Idle)
	w.sweep(10 * time.Second)
	w.is(task.Running)
	w.sweep(10 * time.Second)
	w.is(task.Interrupted)
	w.woke("interrupted")
	if !strings.Contains(w.task.Note, "new commits") {
		t.Errorf("note %q", w.task.Note)
	}
}

func TestAClientThatHerdrLostIsNotGone(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.agent = nil
	w.sweep(10 * time.Minute)
	w.is(task.Running)
	w.commits()
	w.record("idle")
	w.sweep(10 * time.Second)
	w.is(task.Done)
}

// A herdr that was restarted may list an agent as idle that it has restored in the middle of its work.
func TestWhatWasThereWhileItWorkedIsNoEndAfterARestart(t *testing.T) {
	restart := func(w *world) {
		w.agent = &herdr.Agent{TerminalID: "term_2", PaneID: "w1:p2", Name: "fix", Kind: "pi", Status: herdr.Idle, HasSeq: true, CWD: "/camp"}
	}
	t.Run("proof from before", func(t *testing.T) {
		w := dispatched(t)
		w.works()
		w.commits()
		w.sweep(10 * time.Second)
		restart(w)
		w.sweep(20 * time.Second)
		w.is(task.Running)
		w.sweep(40 * time.Second)
		w.is(task.Unconfirmed)
		if !strings.Contains(w.task.Note, "restarted") {
			t.Errorf("note %q", w.task.Note)
		}
	})
	t.Run("proof from then", func(t *testing.T) {
		w := dispatched(t)
		w.works()
		w.pass(time.Second)
		w.commits()
		restart(w)
		w.sweep(19 * time.Second)
		w.is(task.Running)
		w.sweep(10 * time.Second)
		w.is(task.Done)
	})
	t.Run("it worked on", func(t *testing.T) {
		w := dispatched(t)
		w.works()
		w.commits()
		w.sweep(10 * time.Second)
		restart(w)
		w.state(herdr.Working)
		w.sweep(20 * time.Second)
		w.state(herdr.Idle)
		w.sweep(10 * time.Second)
		w.is(task.Done)
	})
	t.Run("the same terminal", func(t *testing.T) {
		w := dispatched(t)
		w.works()
		w.commits()
		w.sweep(10 * time.Second)
		restart(w)
		w.agent.TerminalID = "term_1"
		w.sweep(30 * time.Second)
		w.is(task.Done)
	})
	t.Run("the same process", func(t *testing.T) {
		w := claudes(t, "busy")
		w.works()
		w.agent.Title = "✳ Fix"
		w.sweep(10 * time.Second)
		w.commits()
		w.sweep(10 * time.Second)
		restart(w)
		w.agent.Kind = "claude"
		w.record("idle")
		w.sweep(30 * time.Second)
		w.is(task.Done)
	})
}

func TestDecisionsAreHeldAfterANewTerminalOrASequenceThatRanBack(t *testing.T) {
	for name, change := range map[string]func(*world){
		"terminal": func(w *world) { w.agent.TerminalID = "term_2" },
		"sequence": func(w *world) { w.agent.Seq = 0 },
	} {
		w := dispatched(t)
		w.works()
		w.state(herdr.Idle)
		w.look()
		w.commits()
		change(w)
		w.sweep(15 * time.Second)
		if w.task.Status != task.Running {
			t.Errorf("%s: %s within 15 s", name, w.task.Status)
		}
		w.sweep(15 * time.Second)
		if w.task.Status != task.Done {
			t.Errorf("%s: %s afterwards", name, w.task.Status)
		}
	}
}

func TestNothingIsDecidedWhileTheSocketIsHeld(t *testing.T) {
	w := dispatched(t)
	w.works()
	w.commits()
	w.held = true
	w.state(herdr.Idle)
	w.sweep(time.Minute)
	w.agent = nil
	w.sweep(time.Minute)
	w.is(task.Running)
}

// What is asked stands above the answers, and the session's name in the rule below them.
func TestADialogIsToldWhole(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	rule := strings.Repeat("─", 80)
	w.text.Text = "● I begin.\n\n" + rule + "\n Bash command\n\n   mkdir well && git commit\n   Dig it\n\n This command needs approval\n\n" +
		" Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and don't ask again\n   3. No\n\n Esc to cancel · Tab to amend\n" + rule + " fix ─\n"
	w.client = &Client{State: ClientAlive, Status: "waiting", Waiting: "permission prompt", ID: "1 1"}
	w.state(herdr.Blocked)
	told := ""
	for range 4 {
		w.pass(5 * time.Second)
		if v := w.look(); v.Dialog {
			told = v.Note
		}
	}
	if !strings.Contains(told, "mkdir well") || strings.Contains(told, "─") {
		t.Errorf("told %q", told)
	}
}

// session is a client that no herdr shows.
func session(t *testing.T, status string) *world {
	w := claudes(t, status)
	w.task.Herdr, w.task.Camp, w.task.Dir, w.agent = nil, nil, "/proj", nil
	w.task.Session = &task.Session{PID: 1, Start: 1}
	return w
}

func TestTheEndOfAWatchedTurnIsProof(t *testing.T) {
	w := session(t, "busy")
	w.sweep(2 * time.Hour)
	w.is(task.Running)
	w.record("idle")
	w.pass(time.Second)
	w.look()
	w.is(task.Done)
	if w.asked&NeedAgain == 0 {
		t.Error("it was not looked at twice")
	}
	if w.asked&(NeedText|NeedPane|NeedExplain) != 0 {
		t.Errorf("asked herdr, %b", w.asked)
	}
	w.woke("done")
	w.record("busy")
	w.sweep(5 * time.Second)
	w.is(task.Running)
	w.record("idle")
	w.sweep(5 * time.Second)
	w.woke("done", "done")
}

func TestAWatchedSessionIsGivenEightSeconds(t *testing.T) {
	w := session(t, "busy")
	w.look()
	w.record("idle")
	w.pass(5 * time.Second)
	w.look()
	w.is(task.Running)
	w.pass(5 * time.Second)
	w.look()
	w.is(task.Done)
}

func TestAnIdleMissionOfClaudesIsNotDoneByTheEndOfItsTurn(t *testing.T) {
	w := claudes(t, "busy")
	w.works()
	w.record("idle")
	w.state(herdr.Idle)
	w.sweep(25 * time.Second)
	w.is(task.Running)
	w.sweep(15 * time.Second)
	w.is(task.Unconfirmed)
}

func TestAWatchedSessionThatEndsIsInterruptedAtOnce(t *testing.T) {
	w := session(t, "busy")
	w.sweep(20 * time.Second)
	w.client = &Client{State: ClientGone}
	w.sweep(time.Second)
	w.is(task.Interrupted)
	w.woke("interrupted")
}

func TestAWatchedSessionThatWaitsIsToldOnce(t *testing.T) {
	w := session(t, "busy")
	w.sweep(20 * time.Second)
	w.client = &Client{State: ClientAlive, Status: "waiting", Waiting: "permission prompt", ID: "1 1"}
	w.sweep(time.Minute)
	w.woke("dialog")
}

func TestAWatchedSessionsDialogIsToldByWhatTheModelCalled(t *testing.T) {
	for pending, want := range map[string]string{
		"":                                "permission prompt",
		"Of stone?\n- granite\n- oak":     "Of stone?\n- granite\n- oak",
		"Top" + strings.Repeat("\n.", 99): "Top" + strings.Repeat("\n.", dialogLines-1),
	} {
		w := session(t, "busy")
		w.pending = pending
		w.sweep(20 * time.Second)
		w.client = &Client{State: ClientAlive, Status: "waiting", Waiting: "permission prompt", ID: "1 1"}
		told := ""
		for range 4 {
			w.pass(5 * time.Second)
			if v := w.look(); v.Dialog {
				told = v.Note
			}
		}
		if told != want {
			t.Errorf("told %q, want %q", told, want)
		}
	}
}

func TestAWatchedSessionWithAShellIsWaitedFor(t *testing.T) {
	w := session(t, "busy")
	w.sweep(20 * time.Second)
	w.record("shell")
	w.sweep(10 * time.Minute)
	w.is(task.Running)
	w.record("idle")
	w.sweep(5 * time.Second)
	w.is(task.Done)
}

func TestAWatchedSessionThatAsksIsBlocked(t *testing.T) {
	w := session(t, "busy")
	w.sweep(20 * time.Second)
	w.answer = "I looked.\n\nneeds-decision: Keep them?\n- yes\n- no"
	w.record("idle")
	w.sweep(5 * time.Second)
	w.is(task.Blocked)
	if d := w.task.Decision; d.Question != "Keep them?" || len(d.Options) != 2 {
		t.Errorf("the decision is %+v", d)
	}
	if w.task.Output != w.answer {
		t.Errorf("its output is %q", w.task.Output)
	}
	w.record("busy")
	w.sweep(10 * time.Second)
	w.is(task.Running)
	w.answer = "Kept."
	w.record("idle")
	w.sweep(5 * time.Second)
	w.is(task.Done)
	w.woke("blocked", "done")
}

// The turn before it was too short to be seen.
func TestAFinishedSessionThatWaitsOrGoesOnInTheBackgroundRuns(t *testing.T) {
	for status, wake := range map[string]string{"waiting": "dialog", "shell": ""} {
		w := session(t, "busy")
		w.sweep(20 * time.Second)
		w.record("idle")
		w.sweep(10 * time.Second)
		w.is(task.Done)
		w.client = &Client{State: ClientAlive, Status: "waiting", Waiting: "dialog open", ID: "1 1"} // a picker of the person's
		w.sweep(time.Minute)
		w.is(task.Done)
		w.record(status)
		w.sweep(time.Minute)
		w.is(task.Running)
		w.record("idle")
		w.sweep(10 * time.Second)
		w.is(task.Done)
		if wake == "" {
			w.woke("done", "done")
		} else {
			w.woke("done", wake, "done")
		}
	}
}

func TestAWatchedSessionWithoutAReadableRecordIsUnknown(t *testing.T) {
	w := session(t, "busy")
	w.sweep(20 * time.Second)
	w.client = &Client{State: ClientNone}
	w.sweep(time.Hour)
	w.is(task.Running)
}
