//go:build e2e

package opencode

import (
	"slices"
	"strings"
	"testing"

	"vx/internal/e2e/openai"
	"vx/internal/e2e/tmux"
)

// One terminal interface goes through all of it: to start one takes longer than all the rest.
func TestACommanderAtATerminalIsWoken(t *testing.T) {
	w := newWorld(t)
	p := w.start()
	for _, step := range []struct {
		name string
		test func(*world, *tmux.Pane)
	}{
		{"when it is idle", idle},
		{"in the middle of an answer", answering},
		{"in a tool", inTool},
		{"with the message that follows two Escapes", escaped},
		{"after the time of its await is up", expired},
		{"as the agent that the person chose", chosen},
		{"in the session that the person spoke in last", elsewhere},
	} {
		t.Log(step.name)
		step.test(w, p)
		if t.Failed() {
			t.FailNow()
		}
	}
	p.Say("/exit")
	p.WaitEnd()
	if children := w.children(); len(children) > 0 {
		t.Errorf("OpenCode has ended and the awaits %v have not", children)
	}
}

func idle(w *world, p *tmux.Pane) {
	first := w.awaiting(1)[0]
	if first.Harness != "opencode" || !strings.HasPrefix(first.Session, "ses_") || first.Client != p.Process() {
		w.t.Errorf("the await is of %s, session %q, client %v, want opencode, a session and %v", first.Harness, first.Session, first.Client, p.Process())
	}
	if e := w.registered(first.Session); e.Process != p.Process() || e.Server.URL != "" {
		w.t.Errorf("registered is process %v at %q, want %v and no address: nothing listens", e.Process, e.Server.URL, p.Process())
	}
	p.Type("half typed")
	p.WaitScreen(w.t, "half typed")
	w.send("idle: deploy finished")
	w.delivered("idle: deploy finished")
	p.WaitScreen(w.t, "idle: deploy finished")
	p.WaitScreen(w.t, "half typed")
	p.Keys("C-u") // the person thinks again
	if second := w.awaiting(1)[0]; second.Process == first.Process {
		w.t.Error("the await is the one that has delivered")
	}
	w.send("idle: tests finished")
	w.delivered("idle: tests finished")
}

func answering(w *world, p *tmux.Pane) {
	w.busy(p)
	w.send("busy: deploy finished")
	w.becomes("busy: deploy finished", acknowledged...)
	p.WaitScreen(w.t, "QUEUED")
	if n := w.model.Turns("busy: deploy finished"); n != 0 {
		w.t.Errorf("the model was told in %d turns before the running one had ended", n)
	}
	w.send("busy: tests finished")
	w.becomes("busy: tests finished", acknowledged...)
	w.model.Open(1)
	w.eventually("both in the conversation", func() bool { return w.kept("busy: deploy finished") == 1 && w.kept("busy: tests finished") == 1 })
}

func inTool(w *world, p *tmux.Pane) {
	w.turn(p, "TOOL3 please")
	w.send("tool: deploy finished")
	w.becomes("tool: deploy finished", acknowledged...)
	w.eventually("the wake before the model", func() bool { return w.kept("tool: deploy finished") == 1 })
}

// The person sees it in the session, and the model with the next message.
func escaped(w *world, p *tmux.Pane) {
	w.busy(p)
	w.send("escape: deploy finished")
	w.becomes("escape: deploy finished", acknowledged...)
	p.WaitScreen(w.t, "QUEUED")
	p.Keys("Escape")
	p.WaitScreen(w.t, "again to interrupt")
	p.Keys("Escape")
	p.WaitScreen(w.t, "interrupted")
	p.WaitScreen(w.t, "escape: deploy finished")
	w.model.Open(1)
	w.turn(p, "carry on")
	if n := w.kept("escape: deploy finished"); n != 1 {
		w.t.Errorf("it stands %d times in the session, want once", n)
	}
}

// What an await does after 55 minutes is to end with 0.
func expired(w *world, p *tmux.Pane) {
	first := w.awaiting(1)[0]
	if err := first.Terminate(); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("another await", func() bool {
		live := w.awaits(w.project)
		return len(live) == 1 && live[0].Process != first.Process
	})
	w.send("expired: deploy finished")
	w.delivered("expired: deploy finished")
}

// Without being told, OpenCode has its default agent do what is asked through it, and that one may change files.
func chosen(w *world, p *tmux.Pane) {
	p.Keys("Tab")
	p.WaitScreen(w.t, "Plan · mock-1")
	w.turn(p, "make a plan")
	w.send("plan: deploy finished")
	w.delivered("plan: deploy finished")
	requests := w.model.Requests()
	i := slices.IndexFunc(requests, func(r openai.Request) bool { return r.Tools > 0 && strings.Contains(r.Last, "plan: deploy finished") })
	if i < 0 || strings.Contains(requests[i].Last, "changed from plan to build") {
		w.t.Errorf("the turn is not the plan agent's:\n%s", w.model.Dump())
	}
}

func elsewhere(w *world, p *tmux.Pane) {
	first := w.awaiting(1)[0]
	p.Say("/new")
	p.WaitScreen(w.t, "Ask anything")
	w.turn(p, "hello in another session")
	w.eventually("another session's await", func() bool {
		live := w.awaits(w.project)
		return len(live) == 1 && live[0].Session != first.Session
	})
	w.registered(w.awaiting(1)[0].Session)
	w.send("new: deploy finished")
	w.delivered("new: deploy finished")
	if w.kept("hello in another session") != 1 || w.kept("idle: deploy finished") != 0 {
		w.t.Errorf("the wake is in another session than the person:\n%s", w.model.Dump())
	}
}
