package dispatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

func TestASoldierIsDispatched(t *testing.T) {
	for _, profile := range []int{17, 19, 20, 22} {
		w := newWorldOf(t, profile)
		before := time.Now()
		var launch herdrtest.Launch
		w.herdr.OnLaunch("claude", func(p *herdrtest.Pane, l herdrtest.Launch) []herdrtest.Step {
			launch = l
			return []herdrtest.Step{{State: herdrtest.Idle, Screen: idleScreen}}
		})
		got, pane := w.dispatched(Order{Title: "Añade: una entrada!", Prompt: "Add a changelog entry.\nFor 0.2.", Model: "opus", Effort: "high", Args: []string{"--permission-mode", "plan"}})

		if got.Status != task.Running || got.Kind != wake.KindMission || got.Prompt != "Add a changelog entry.\nFor 0.2." {
			t.Errorf("the task is %+v", got)
		}
		if got.PromptedAt.Before(before) || got.Head != w.git(w.repo, "rev-parse", "main") || got.Agent != "claude" || got.Model != "opus" || got.Effort != "high" {
			t.Errorf("the task is %+v", got)
		}
		if want := "vx/anade-una-entrada-" + got.ID[:8]; got.Camp.Branch != want || got.Camp.Base != "main" || got.Camp.Path != w.Project.Join("camps", got.ID) {
			t.Errorf("the camp is %+v", got.Camp)
		}
		if at := w.git(got.Camp.Path, "symbolic-ref", "--short", "HEAD"); at != got.Camp.Branch {
			t.Errorf("the camp is on %s", at)
		}
		h := got.Herdr
		if h.Socket != w.herdr.Socket || h.Workspace != "w1" || h.TerminalID == "" || h.Agent != "anade-una-entrada-"+got.ID[:8] || h.StateChangeSeq == 0 || pane.Seq() <= h.StateChangeSeq {
			t.Errorf("it runs in %+v, whose state has moved to %d", h, pane.Seq())
		}
		if got.CommanderProject != w.repo || got.CommanderPane != w.commander.ID {
			t.Errorf("its commander is %q in %q", got.CommanderProject, got.CommanderPane)
		}
		if want := []string{"--name", h.Agent, "--model", "opus", "--effort", "high", "--permission-mode", "plan"}; strings.Join(launch.Args, " ") != strings.Join(want, " ") {
			t.Errorf("it was started with %q", launch.Args)
		}
		if launch.CWD != got.Camp.Path || launch.Env["VX_TASK"] != got.ID || launch.Env["VX_HOOK"] != "0" {
			t.Errorf("it was started in %s with %v", launch.CWD, launch.Env)
		}
		if child, set := launch.Env["CLAUDE_CODE_CHILD_SESSION"]; !set || child != "" {
			t.Error("a variable that switches its record off could come from the server")
		}
		if said := pane.Prompts()[0].Text; said != w.framed(got) {
			t.Errorf("it was told %q", said)
		}
		if w.ensured != 1 {
			t.Errorf("a sentinel was seen to %d times", w.ensured)
		}
		for _, r := range w.herdr.Requests("tab.create") {
			if strings.Contains(string(r.Params), `"focus":true`) {
				t.Error("it took the user's focus")
			}
		}
	}
}

func TestAScoutIsToldWhereItsReportGoes(t *testing.T) {
	w := newWorld(t)
	got, pane := w.dispatched(Order{Kind: wake.KindScout, Prompt: "Find out why"})
	if got.ReportPath != w.Project.Join("reports", got.ID+".md") || !isDir(filepath.Dir(got.ReportPath)) {
		t.Errorf("its report goes to %q", got.ReportPath)
	}
	if said := pane.Prompts()[0].Text; !strings.Contains(said, got.ReportPath) {
		t.Errorf("it was told %q", said)
	}
}

func TestTheBaseCanBeNamed(t *testing.T) {
	w := newWorld(t)
	w.git(w.repo, "branch", "old")
	w.commit(w.repo, "file", "two\n")
	got, _ := w.dispatched(Order{Base: "old"})
	if got.Camp.Base != "old" || got.Head != w.git(w.repo, "rev-parse", "old") {
		t.Errorf("the camp is %+v, from %s", got.Camp, got.Head)
	}
}

func TestInAProjectBelowTheRepositoryTheSoldierBeginsThere(t *testing.T) {
	w := newWorld(t)
	w.commit(w.repo, "web/file", "one\n")
	w.Project = w.dir.Project(filepath.Join(w.repo, "web"))
	got, pane := w.dispatched(Order{})
	var env []string
	for _, e := range pane.Env() {
		if strings.HasPrefix(e, "VX_TASK=") {
			env = append(env, e)
		}
	}
	for _, r := range w.herdr.Requests("tab.create") {
		if !strings.Contains(string(r.Params), filepath.Join(got.Camp.Path, "web")) {
			t.Errorf("the pane was made by %s", r.Params)
		}
	}
	if len(env) != 1 {
		t.Errorf("the pane's environment has %q", env)
	}
}

func TestTheOtherClientsAreToldInTheirWay(t *testing.T) {
	for kind, want := range map[string]string{
		"codex": "--model m -c model_reasoning_effort=high", "pi": "--model m --thinking high", "opencode": "--model m",
	} {
		w := newWorld(t)
		var args []string
		w.herdr.OnLaunch(kind, func(p *herdrtest.Pane, l herdrtest.Launch) []herdrtest.Step {
			args = l.Args
			return []herdrtest.Step{{State: herdrtest.Idle}}
		})
		o := Order{Agent: kind, Model: "m", Effort: "high"}
		if kind == "opencode" {
			_, err := w.Dispatch(t.Context(), Order{Agent: kind, Effort: "high", Prompt: "x"})
			w.refused(err, "--effort")
			o.Effort = ""
		}
		if w.dispatched(o); strings.Join(args, " ") != want {
			t.Errorf("%s was started with %q", kind, args)
		}
	}
}

// Whatever fails, nothing is left of the order.
func TestAStepThatFailsUndoesTheOnesBefore(t *testing.T) {
	refusal := &herdrtest.Error{Code: "internal_error", Message: "no"}
	for name, fail := range map[string]func(*world){
		"ping":                               func(w *world) { w.herdr.Inject(herdrtest.Fault{Method: "ping", Drop: true}) },
		"no herdr":                           func(w *world) { w.herdr.Stop() },
		"the pane":                           func(w *world) { w.herdr.Inject(herdrtest.Fault{Method: "tab.create", Error: refusal}) },
		"the start":                          func(w *world) { w.herdr.Inject(herdrtest.Fault{Method: "agent.start", Error: refusal}) },
		"a cut start":                        func(w *world) { w.herdr.Inject(herdrtest.Fault{Method: "agent.start", Drop: true}) },
		"never ready":                        func(w *world) { w.stays(herdrtest.Unknown, "loading") },
		"ends at once":                       func(w *world) { w.ends() },
		"a dialog":                           func(w *world) { w.stays(herdrtest.Blocked, dialogScreen) },
		"a dialog that herdr takes for rest": func(w *world) { w.stays(herdrtest.Idle, dialogScreen) },
		"the prompt": func(w *world) {
			w.herdr.Inject(herdrtest.Fault{Method: "agent.prompt", Error: &herdrtest.Error{Code: "agent_blocked", Message: "no"}})
		},
		"git": func(w *world) {
			hook := filepath.Join(w.repo, ".git", "hooks", "post-checkout")
			w.write(hook, "#!/bin/sh\nexit 1\n")
			if err := os.Chmod(hook, 0o700); err != nil {
				w.Fatal(err)
			}
		},
		"the camp's place": func(w *world) { w.write(w.Project.Join("camps"), "") },
		"a strike meanwhile": func(w *world) {
			w.herdr.OnLaunch("claude", func(p *herdrtest.Pane, l herdrtest.Launch) []herdrtest.Step {
				if _, err := w.Strike(w.Context(), l.Env["VX_TASK"], false); err != nil {
					w.Error(err)
				}
				return []herdrtest.Step{{State: herdrtest.Idle, Screen: idleScreen}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.times = times{look: 5 * time.Millisecond, start: 500 * time.Millisecond, answer: 500 * time.Millisecond, gone: 200 * time.Millisecond}
			if err := w.Project.Ensure(); err != nil {
				t.Fatal(err)
			}
			fail(w)
			before := w.everything()
			_, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
			if err == nil {
				t.Fatal("it was dispatched all the same")
			}
			if strings.Contains(err.Error(), "taking back") {
				t.Error(err)
			}
			if after := w.everything(); after != before {
				t.Errorf("%v; before:\n%s\nafter:\n%s", err, before, after)
			}
			if w.ensured != 0 {
				t.Error("a sentinel was started for nothing")
			}
		})
	}
}

// stays makes agents that never come to their prompt.
func (w *world) stays(in, screen string) {
	w.herdr.OnLaunch("claude", func(*herdrtest.Pane, herdrtest.Launch) []herdrtest.Step {
		return []herdrtest.Step{{State: in, Screen: screen}}
	})
}

// ends makes agents that end at once.
func (w *world) ends() {
	w.herdr.OnLaunch("claude", func(*herdrtest.Pane, herdrtest.Launch) []herdrtest.Step {
		return []herdrtest.Step{{Screen: "sh: claude: not found\n", Do: (*herdrtest.Pane).Gone}}
	})
}

func TestAFailedStartSaysWhatThePaneShows(t *testing.T) {
	w := newWorld(t)
	w.ends()
	_, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
	w.refused(err, "ended at once", "claude: not found")
	w.times.start = 200 * time.Millisecond
	w.stays(herdrtest.Unknown, "loading the world\n")
	_, err = w.Dispatch(t.Context(), Order{Prompt: "x"})
	w.refused(err, "does not come to its prompt", "loading the world")
}

func TestAHerdrThatIsNotUnderstoodIsNamed(t *testing.T) {
	w := newWorld(t)
	w.env["HERDR_SOCKET_PATH"], w.env["HERDR_SESSION"] = "", "../x"
	_, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
	w.refused(err, "HERDR_SESSION is no session's name", "unset it")
	w.env["HERDR_SOCKET_PATH"] = w.herdr.Socket
	lift := w.herdr.Inject(herdrtest.Fault{Method: "ping", Line: []byte("\x1b[31mwhat?")})
	_, err = w.Dispatch(t.Context(), Order{Prompt: "x"})
	w.refused(err, "does not answer as it should", w.herdr.Socket)
	lift()
	w.times.start = 200 * time.Millisecond
	w.herdr.Inject(herdrtest.Fault{Method: "agent.get", Line: []byte("what?")})
	_, err = w.Dispatch(t.Context(), Order{Prompt: "x"})
	w.refused(err, "does not come to its prompt", "nothing is heard of the agent", "not herdr's answer")
}

func TestAnInterruptedDispatchIsUndone(t *testing.T) {
	w := newWorld(t)
	if err := w.Project.Ensure(); err != nil {
		t.Fatal(err)
	}
	before := w.everything()
	ctx, cancel := context.WithCancel(t.Context())
	w.herdr.OnLaunch("claude", func(*herdrtest.Pane, herdrtest.Launch) []herdrtest.Step {
		cancel()
		return nil
	})
	if _, err := w.Dispatch(ctx, Order{Prompt: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if after := w.everything(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestADialogAtTheStartIsWaitedForAndTold(t *testing.T) {
	w := newWorld(t)
	w.herdr.OnLaunch("claude", func(p *herdrtest.Pane, _ herdrtest.Launch) []herdrtest.Step {
		return []herdrtest.Step{{State: herdrtest.Blocked, Screen: dialogScreen}}
	})
	w.Progress = func(s string) {
		w.said = append(w.said, s)
		p := w.herdr.Panes()[len(w.herdr.Panes())-1]
		p.Run(herdrtest.Step{State: herdrtest.Idle, Screen: idleScreen})
	}
	w.dispatched(Order{})
	if len(w.said) != 1 || !strings.Contains(w.said[0], "waits at a dialog in pane w1:p") {
		t.Errorf("it said %q", w.said)
	}
}

// A prompt whose answer does not come may have arrived: the soldier stays, and nothing is sent twice.
func TestAPromptOfWhichNothingIsHeardIsNotSentAgain(t *testing.T) {
	for name, fault := range map[string]herdrtest.Fault{
		"stalled": {Error: &herdrtest.Error{Code: "agent_prompt_stalled", Message: "no observed state change"}},
		"cut":     {Drop: true},
		"garbage": {Line: []byte("what?")},
		"unsure":  {Error: &herdrtest.Error{Code: "server_unavailable", Message: "internal stall"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fault.Method = "agent.prompt"
			w.herdr.Inject(fault)
			r, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
			if err != nil || r.Task.Status != task.Running || w.get(r.Task.ID).Status != task.Running {
				t.Fatalf("%+v, %v", r, err)
			}
			w.warned(r, "it was not sent again")
			if n := len(w.herdr.Requests("agent.prompt")); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
			if w.ensured != 1 {
				t.Error("nobody watches it")
			}
		})
	}
}

func TestWhereNoSoldierCanBeSentIsRefusedWithTheReason(t *testing.T) {
	w := newWorld(t)
	order := Order{Prompt: "x"}
	refused := func(words ...string) {
		t.Helper()
		_, err := w.Dispatch(t.Context(), order)
		w.refused(err, words...)
		if tasks, _ := w.tasks().List(); len(tasks) != 0 {
			t.Errorf("there are tasks: %+v", tasks)
		}
	}
	w.env["VX_TASK"] = "0123456789abcdef"
	refused("soldier", "01234567")
	delete(w.env, "VX_TASK")

	own := w.Project
	w.Project = w.dir.Project(own.Join("camps", "x"))
	refused("is a camp")
	w.Project = own

	w.Git = ""
	refused("no git repository", "git init")
	w.Git = w.repo

	order.Base = "nowhere"
	refused("nowhere", "--base")
	order.Base = ""

	order.Prompt = " \x1b\n"
	refused("empty")
	order.Prompt = strings.Repeat("x", maxPrompt+1)
	refused("too much", "file")
	order.Prompt = "x"

	order.Args = []string{"a\nb"}
	refused("line ends")
	order.Args = nil

	w.env["HERDR_SOCKET_PATH"] = filepath.Join(t.TempDir(), "none.sock")
	refused("none answers", "vx watch")
	w.env["HERDR_SOCKET_PATH"] = w.herdr.Socket

	lift := w.herdr.Inject(herdrtest.Fault{Method: "ping", Line: []byte(`{"id":"ping","result":{"type":"pong","version":"0.7.2","protocol":16}}`)})
	refused("protocol 16", "upgrade herdr")
	lift()

	empty := t.TempDir()
	w.git(empty, "init", "-q")
	w.Project, w.Git = w.dir.Project(empty), empty
	refused("has no commit yet")
}

func TestACommanderElsewhereIsWokenThereAndWarned(t *testing.T) {
	w := newWorld(t)
	notes := t.TempDir()
	a, err := awaiter.Register(w.dir, w.dir.Project(notes), awaiter.Record{Process: proc.Self(), Project: notes, Pane: w.commander.ID, Socket: w.herdr.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	r, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
	if err != nil || r.Task.CommanderProject != notes || r.Task.CommanderPane != w.commander.ID {
		t.Errorf("%+v, %v", r.Task, err)
	}
	w.warned(r, "your own project is "+notes)
}

func TestOutsideOfHerdrNoCommanderIsRecorded(t *testing.T) {
	w := newWorld(t)
	delete(w.env, "HERDR_PANE_ID")
	got, _ := w.dispatched(Order{})
	if got.CommanderProject != "" || got.CommanderPane != "" {
		t.Errorf("its commander is %q in %q", got.CommanderProject, got.CommanderPane)
	}
}

func TestWithoutASentinelTheOrderStandsAndWarns(t *testing.T) {
	w := newWorld(t)
	w.Sentinel = func(context.Context, *state.Dir) error { return errors.New("it does not start") }
	r, err := w.Dispatch(t.Context(), Order{Prompt: "x"})
	if err != nil || r.Task.Status != task.Running {
		t.Errorf("%+v, %v", r, err)
	}
	w.warned(r, "it does not start")
}

func TestAPromptIsTypedWithoutControlCharacters(t *testing.T) {
	w := newWorld(t)
	_, pane := w.dispatched(Order{Prompt: "say \x1b[201~hi\x03\r\n\tthere"})
	if said := pane.Prompts()[0].Text; !strings.HasSuffix(said, "say [201~hi\n\tthere") {
		t.Errorf("it was told %q", said)
	}
}
