package dispatch

import (
	"os"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/task"
)

// finished is a task that has come to that status as tasks do.
func (w *world) finished(as task.Status) (task.Task, *herdrtest.Pane) {
	w.Helper()
	switch as {
	case task.Running:
		return w.dispatched(Order{})
	case task.Shipped, task.Landed:
		t, pane := w.ended(task.Done)
		return w.become(t, as), pane
	case task.Struck:
		t, pane := w.ended(task.Interrupted)
		return w.become(t, as), pane
	}
	return w.ended(as)
}

func TestAFinishedSoldierIsGivenMoreToDo(t *testing.T) {
	for _, from := range []task.Status{task.Done, task.Unconfirmed, task.Shipped} {
		t.Run(string(from), func(t *testing.T) {
			w := newWorld(t)
			was, pane := w.finished(from)
			w.write(w.pauseFile(was), "")
			seq := pane.Seq()
			r, err := w.Prompt(t.Context(), was.ID[:6], "and one for 0.3\x1b")
			if err != nil {
				t.Fatal(err)
			}
			got := w.get(was.ID)
			if got.Status != task.Running || r.Task.Status != task.Running || !got.PromptedAt.After(was.PromptedAt) {
				t.Errorf("the task is %+v", got)
			}
			if got.Head == was.Head || got.Head != w.git(w.repo, "rev-parse", was.Camp.Branch) || got.Herdr.StateChangeSeq != seq {
				t.Errorf("what was there already is not noted: head %s, sequence %d", got.Head, got.Herdr.StateChangeSeq)
			}
			if len(got.Amendments) != 1 || got.Amendments[0].Text != "and one for 0.3" {
				t.Errorf("the amendments are %+v", got.Amendments)
			}
			w.until("the prompt arrives", func() bool { return len(pane.Prompts()) == 2 })
			if said := pane.Prompts()[1].Text; said != "and one for 0.3" {
				t.Errorf("it was told %q", said)
			}
			if _, err := os.Stat(w.pauseFile(was)); err == nil {
				t.Error("its pause still stands")
			}
			if w.ensured != 2 {
				t.Error("nobody sees that a sentinel runs")
			}
		})
	}
}

func TestWhoeverPromptsIsWoken(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	notes := t.TempDir()
	other := w.herdr.Agent(herdrtest.Agent{CWD: notes})
	a, err := awaiter.Register(w.dir, w.dir.Project(notes), awaiter.Record{Process: proc.Self(), Project: notes, Pane: other.ID, Socket: w.herdr.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	w.env["HERDR_PANE_ID"] = other.ID
	if r, err := w.Prompt(t.Context(), was.ID, "more"); err != nil || r.Task.CommanderProject != notes || r.Task.CommanderPane != other.ID {
		t.Errorf("%+v, %v", r.Task, err)
	}
	// From outside of herdr nothing changes.
	delete(w.env, "HERDR_PANE_ID")
	w.become(w.get(was.ID), task.Blocked)
	w.herdr.Pane(was.Herdr.Pane).Idle()
	if r, err := w.Dismiss(t.Context(), was.ID); err != nil || r.Task.CommanderProject != notes {
		t.Errorf("%+v, %v", r.Task, err)
	}
}

// A refusal names the command that does go with the task.
func TestEachRefusalNamesTheRightCommand(t *testing.T) {
	hint := map[task.Status]string{
		task.Running: "you are woken", task.Blocked: "vx decide", task.Interrupted: "vx redispatch",
		task.Done: "vx prompt", task.Unconfirmed: "vx prompt", task.Shipped: "vx prompt", task.Landed: "vx strike", task.Struck: "vx dispatch",
	}
	orders := map[string]struct {
		give func(w *world, id string) error
		goes []task.Status
	}{
		"prompt":     {func(w *world, id string) error { _, err := w.Prompt(w.Context(), id, "x"); return err }, []task.Status{task.Done, task.Unconfirmed, task.Shipped}},
		"decide":     {func(w *world, id string) error { _, err := w.Decide(w.Context(), id, "x"); return err }, []task.Status{task.Blocked}},
		"dismiss":    {func(w *world, id string) error { _, err := w.Dismiss(w.Context(), id); return err }, []task.Status{task.Blocked}},
		"redispatch": {func(w *world, id string) error { _, err := w.Redispatch(w.Context(), id, nil); return err }, []task.Status{task.Interrupted}},
		"land":       {func(w *world, id string) error { _, err := w.Land(w.Context(), id); return err }, []task.Status{task.Done, task.Unconfirmed, task.Shipped}},
		"ship":       {func(w *world, id string) error { _, err := w.Ship(w.Context(), id); return err }, []task.Status{task.Done}},
	}
	for status, want := range hint {
		w := newWorld(t)
		tk, _ := w.finished(status)
		before := w.everything()
		for name, order := range orders {
			goes := false
			for _, s := range order.goes {
				goes = goes || s == status
			}
			if goes {
				continue
			}
			t.Run(name+" "+string(status), func(t *testing.T) {
				w.T = t
				w.refused(order.give(w, tk.ID), "it is "+string(status), want)
			})
		}
		if after := w.everything(); after != before {
			t.Errorf("%s: before:\n%s\nafter:\n%s", status, before, after)
		}
	}
}

func TestATaskThatIsNotThereIsNamed(t *testing.T) {
	w := newWorld(t)
	_, err := w.Prompt(t.Context(), "0123", "x")
	w.refused(err, "0123", "vx status --all")
}

// Whatever keeps the text from the soldier, the task is as it was.
func TestARefusedDeliveryRestoresTheTask(t *testing.T) {
	for name, fail := range map[string]func(*world, *herdrtest.Pane){
		"refused": func(w *world, _ *herdrtest.Pane) {
			w.herdr.Inject(herdrtest.Fault{Method: "agent.prompt", Error: &herdrtest.Error{Code: "agent_not_ready", Message: "no"}})
		},
		"no herdr":                   func(w *world, _ *herdrtest.Pane) { w.herdr.Stop() },
		"herdr does not answer":      func(w *world, _ *herdrtest.Pane) { w.herdr.Inject(herdrtest.Fault{Method: "agent.list", Drop: true}) },
		"the agent is gone":          func(_ *world, p *herdrtest.Pane) { p.Gone() },
		"the pane is gone":           func(_ *world, p *herdrtest.Pane) { p.Close() },
		"a dialog":                   func(_ *world, p *herdrtest.Pane) { p.Blocked(); p.Show(dialogScreen) },
		"a dialog that herdr misses": func(_ *world, p *herdrtest.Pane) { p.Show(dialogScreen) },
	} {
		for _, from := range []task.Status{task.Done, task.Blocked} {
			t.Run(name+" "+string(from), func(t *testing.T) {
				w := newWorld(t)
				was, pane := w.finished(from)
				was = w.get(was.ID)
				fail(w, pane)
				var err error
				if from == task.Blocked {
					_, err = w.Decide(t.Context(), was.ID, "x")
				} else {
					_, err = w.Prompt(t.Context(), was.ID, "x")
				}
				if err == nil {
					t.Fatal("it was prompted all the same")
				}
				got := w.get(was.ID)
				was.UpdatedAt, got.UpdatedAt = time.Time{}, time.Time{}
				if got.Status != from || len(got.Amendments) != 0 || !got.PromptedAt.Equal(was.PromptedAt) || got.Head != was.Head || *got.Herdr != *was.Herdr ||
					got.Decision != nil && !got.Decision.AnsweredAt.IsZero() {
					t.Errorf("%v: it was\n%+v, and is\n%+v", err, was, got)
				}
				if len(pane.Prompts()) != 1 {
					t.Errorf("it was told %+v", pane.Prompts())
				}
			})
		}
	}
}

// typing is a prompt box with that in it, as a terminal gives it with its colours.
func typing(text string) string {
	rule := strings.Repeat("─", 60)
	return "\n" + rule + "\n❯\u00a0" + text + "\x1b[7m \x1b[0m\n" + rule + "\n  ⏸ manual mode on\n"
}

// An Esc before the first word of an answer puts the prompt back, and a person may have begun to type.
func TestATextIsNotAppendedToOneThatWasNotSent(t *testing.T) {
	for _, from := range []task.Status{task.Done, task.Blocked} {
		t.Run(string(from), func(t *testing.T) {
			w := newWorld(t)
			was, pane := w.finished(from)
			pane.Show(typing("Add a \x1b[36mchangelog\x1b[39m entry"))
			tell := func() error {
				var err error
				if from == task.Blocked {
					_, err = w.Decide(t.Context(), was.ID, "x")
				} else {
					_, err = w.Prompt(t.Context(), was.ID, "x")
				}
				return err
			}
			w.refused(tell(), "its prompt in pane "+pane.ID+` holds text that was not sent: "Add a changelog entry"`, "send or clear that there")
			if got := w.get(was.ID); got.Status != from || len(got.Amendments) != 0 || len(pane.Prompts()) != 1 {
				t.Errorf("it is %+v, and was told %+v", got, pane.Prompts())
			}
			pane.Show(typing(""))
			if err := tell(); err != nil {
				t.Fatal(err)
			}
			w.until("it is told", func() bool { return len(pane.Prompts()) == 2 })
		})
	}
}

func TestWhatIsOnlySuggestedOrNotKnownKeepsNoTextBack(t *testing.T) {
	for name, show := range map[string]func(*world, *herdrtest.Pane){
		"a suggestion": func(_ *world, p *herdrtest.Pane) { p.Show(typing("\x1b[2mRun the tests\x1b[0m")) },
		"no colours": func(w *world, p *herdrtest.Pane) {
			p.Show(typing("Run the tests"))
			w.herdr.Inject(herdrtest.Fault{Method: "pane.read", When: func(r herdrtest.Request) bool { return r.Param("format") == "ansi" },
				Error: &herdrtest.Error{Code: "invalid_request", Message: "no"}})
		},
		"a screen of something else": func(_ *world, p *herdrtest.Pane) { p.Show("\x1b[1m$ Run the tests\x1b[0m\n") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was, pane := w.finished(task.Done)
			show(w, pane)
			if _, err := w.Prompt(t.Context(), was.ID, "more"); err != nil {
				t.Fatal(err)
			}
			w.until("it is told", func() bool { return len(pane.Prompts()) == 2 })
		})
	}
}

// A task that a land or a strike ends meanwhile stays ended.
func TestAnEndInBetweenWins(t *testing.T) {
	w := newWorld(t)
	was, _ := w.finished(task.Done)
	lift := w.herdr.Inject(herdrtest.Fault{Method: "agent.list", When: func(herdrtest.Request) bool {
		w.become(w.get(was.ID), task.Landed)
		return false
	}})
	_, err := w.Prompt(t.Context(), was.ID, "more")
	lift()
	w.refused(err, "it is landed by now, not done")
	if got := w.get(was.ID); got.Status != task.Landed || len(w.herdr.Requests("agent.prompt")) != 1 {
		t.Errorf("it is %s", got.Status)
	}
}

func TestASoldierIsFoundAfterARestartOfHerdr(t *testing.T) {
	for name, after := range map[string]herdrtest.After{"resumed": herdrtest.Resumed, "nameless": herdrtest.Nameless} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was, pane := w.finished(task.Done)
			w.herdr.Restart(after)
			w.until("the agent is back", func() bool { return pane.Status() == herdrtest.Idle || pane.Status() == herdrtest.Done })
			r, err := w.Prompt(t.Context(), was.ID, "more")
			if err != nil {
				t.Fatal(err)
			}
			if r.Task.Herdr.TerminalID == was.Herdr.TerminalID || r.Task.Herdr.Agent != was.Herdr.Agent {
				t.Errorf("it runs in %+v, and ran in %+v", r.Task.Herdr, was.Herdr)
			}
		})
	}
}

func TestTheDecisionIsTold(t *testing.T) {
	w := newWorld(t)
	was, pane := w.finished(task.Blocked)
	r, err := w.Decide(t.Context(), was.ID, "keep them")
	if err != nil || r.Task.Status != task.Running || r.Task.Decision.Answer != "keep them" || r.Task.Decision.AnsweredAt.IsZero() {
		t.Fatalf("%+v, %v", r.Task.Decision, err)
	}
	w.until("the answer arrives", func() bool { return len(pane.Prompts()) == 2 })
	if said := pane.Prompts()[1].Text; said != "You asked: Keep the fields?\nThe decision: keep them" || r.Task.Amendments[0].Text != said {
		t.Errorf("it was told %q", said)
	}
}

func TestADismissedQuestionLeavesTheSoldierInPeace(t *testing.T) {
	w := newWorld(t)
	was, pane := w.finished(task.Blocked)
	r, err := w.Dismiss(t.Context(), was.ID)
	if err != nil || r.Task.Status != task.Running || !r.Task.Decision.Dismissed || r.Task.Decision.Answer != "" {
		t.Fatalf("%+v, %v", r.Task, err)
	}
	// What it has delivered is still news.
	if !r.Task.PromptedAt.Equal(was.PromptedAt) || r.Task.Head != was.Head || len(pane.Prompts()) != 1 || w.ensured != 2 {
		t.Errorf("the task is %+v, the soldier was told %+v", r.Task, pane.Prompts())
	}
}

func TestAnInterruptedTaskGoesToAnotherAgentInTheSameCamp(t *testing.T) {
	w := newWorld(t)
	was, pane := w.finished(task.Interrupted)
	pane.Gone()
	w.write(w.pauseFile(was), "")
	r, err := w.Redispatch(t.Context(), was.ID, []string{"--verbose"})
	if err != nil {
		t.Fatal(err)
	}
	got := w.get(was.ID)
	if got.Status != task.Running || got.Herdr.Pane == was.Herdr.Pane || got.Herdr.Agent == was.Herdr.Agent || *got.Camp != *was.Camp || len(got.Redispatches) != 1 {
		t.Errorf("the task is %+v", got)
	}
	if got.Head != w.git(w.repo, "rev-parse", was.Camp.Branch) || !got.PromptedAt.After(was.PromptedAt) {
		t.Errorf("what was there already is not noted: %+v", got)
	}
	next := w.herdr.Pane(r.Task.Herdr.Pane)
	w.until("the prompt arrives", func() bool { return len(next.Prompts()) == 1 })
	if said := next.Prompts()[0].Text; said != w.again(got) {
		t.Errorf("it was told %q", said)
	}
	if _, err := os.Stat(w.pauseFile(was)); err == nil {
		t.Error("the old pause still stands")
	}
}

func TestThePaneOfTheSoldierBeforeIsClosedIfNothingIsInIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, *herdrtest.Pane)
		stays  string
	}{
		"its shell":        {func(_ *world, p *herdrtest.Pane) {}, ""},
		"another terminal": {func(w *world, _ *herdrtest.Pane) { w.herdr.Restart(herdrtest.Shells) }, "it has another terminal now"},
		"what begins meanwhile": {func(w *world, p *herdrtest.Pane) {
			p.ShellPID(7)
			w.herdr.OnLaunch("claude", func(_ *herdrtest.Pane, _ herdrtest.Launch) []herdrtest.Step {
				p.Foreground(herdrtest.Process{PID: 8, Name: "vim"})
				return []herdrtest.Step{{State: herdrtest.Idle, Screen: idleScreen}}
			})
		}, `"vim" runs`},
		"a herdr that fails": {func(w *world, _ *herdrtest.Pane) {
			w.herdr.Inject(herdrtest.Fault{Method: "pane.close", Error: &herdrtest.Error{Code: "internal_error", Message: "no"}})
		}, "was not closed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was, pane := w.finished(task.Interrupted)
			pane.Gone()
			c.change(w, pane)
			r, err := w.Redispatch(t.Context(), was.ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			if closed := strings.Contains(r.Did, ", closed pane "+was.Herdr.Pane); closed != (c.stays == "") || w.paneStands(was.Herdr.Pane) == closed {
				t.Errorf("%q; it stands: %v", r.Did, w.paneStands(was.Herdr.Pane))
			}
			if c.stays != "" {
				w.warned(r, c.stays)
				w.warned(r, "pane "+was.Herdr.Pane)
			} else if len(r.Warnings) > 0 {
				t.Errorf("warned of %q", r.Warnings)
			}
			if !w.paneStands(r.Task.Herdr.Pane) {
				t.Error("the new one was closed")
			}
		})
	}
}

func TestTheSuccessorIsGivenTheArgumentsOfTheOneBefore(t *testing.T) {
	w := newWorld(t)
	was, pane := w.dispatched(Order{Args: []string{"--permission-mode", "plan"}})
	started := ""
	w.herdr.OnLaunch("claude", func(_ *herdrtest.Pane, l herdrtest.Launch) []herdrtest.Step {
		_, started, _ = strings.Cut(strings.Join(l.Args, " "), was.Herdr.Agent)
		return []herdrtest.Step{{State: herdrtest.Idle, Screen: idleScreen}}
	})
	for _, c := range []struct {
		args []string
		want string
	}{{nil, "--permission-mode plan"}, {[]string{"--verbose"}, "--verbose"}, {nil, "--verbose"}, {[]string{}, ""}, {nil, ""}} {
		pane.Gone()
		w.become(w.get(was.ID), task.Interrupted)
		r, err := w.Redispatch(t.Context(), was.ID, c.args)
		if err != nil {
			t.Fatal(err)
		}
		if _, args, _ := strings.Cut(started, " "); args != c.want || strings.Join(r.Task.Args, " ") != c.want {
			t.Errorf("with %q it was started with %q, and keeps %q; want %q", c.args, args, r.Task.Args, c.want)
		}
		pane = w.herdr.Pane(r.Task.Herdr.Pane)
	}
}

func TestARedispatchThatFailsIsUndone(t *testing.T) {
	for name, fail := range map[string]herdrtest.Fault{
		"the pane":   {Method: "tab.create", Error: &herdrtest.Error{Code: "internal_error"}},
		"the start":  {Method: "agent.start", Error: &herdrtest.Error{Code: "unsupported_agent_kind"}},
		"the prompt": {Method: "agent.prompt", Error: &herdrtest.Error{Code: "agent_blocked"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was, pane := w.finished(task.Interrupted)
			pane.Gone()
			before := w.get(was.ID)
			panes := len(w.herdr.Panes())
			w.herdr.Inject(fail)
			if _, err := w.Redispatch(t.Context(), was.ID, nil); err == nil {
				t.Fatal("it was redispatched all the same")
			}
			after := w.get(was.ID)
			if after.Status != task.Interrupted || *after.Herdr != *before.Herdr || len(after.Redispatches) != 0 || len(w.herdr.Panes()) != panes {
				t.Errorf("it was\n%+v, and is\n%+v, with %d panes", before, after, len(w.herdr.Panes()))
			}
			if _, err := os.Stat(was.Camp.Path); err != nil {
				t.Error("the camp is gone")
			}
		})
	}
}

func TestASoldierThatOnlySeemedToBeGoneIsNotDoubled(t *testing.T) {
	w := newWorld(t)
	was, pane := w.finished(task.Interrupted)
	pane.Working()
	_, err := w.Redispatch(t.Context(), was.ID, nil)
	w.refused(err, "its claude is working still", was.Herdr.Pane)
	pane.Gone()
	pane.ShellPID(7)
	pane.Foreground(herdrtest.Process{PID: 8, Name: "claude"})
	_, err = w.Redispatch(t.Context(), was.ID, nil)
	w.refused(err, `"claude" runs still`, was.Herdr.Pane)
}
