//go:build e2e

package opencode

import (
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// released is the story of a wake that the first OpenCode had in hand when it ended.
var released = []string{"put", "claimed", "released"}

// With --port OpenCode calls a plugin twice in one process. `opencode -c` names its session with the first message only.
func TestAWakeInHandGoesToTheNextOpenCode(t *testing.T) {
	w := newWorld(t)
	w.stall("before.ts")
	port := w.freePort()
	w.env = append(w.env, "OPENCODE_SERVER_PASSWORD="+password)
	p := w.start("--port", port)
	session := w.awaiting(1)[0].Session
	e := w.registered(session)
	if want := "http://127.0.0.1:" + port; e.Server.URL != want || e.Server.Version != version || e.Server.Directory != w.project || e.Process != p.Process() {
		t.Errorf("registered is %v at %+v, want %v at %s, version %s, in %s", e.Process, *e.Server, p.Process(), want, version, w.project)
	}
	if n := len(w.children()); n != 1 {
		t.Errorf("%d awaits run, want 1", n)
	}
	w.sendInto("the end of work", "before.ts")
	p.Kill()
	w.becomes("the end of work", released...)
	w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
	w.remove(w.path("before.ts"))

	p = w.open(w.project, "-c")
	p.WaitScreen(t, "hello there")
	w.becomes("the end of work", released...)
	p.WaitScreen(t, "ctrl+p commands")
	p.Say("here I am again") // the wake may join the turn that this begins
	w.becomes("the end of work", append(slices.Clone(released), acknowledged[1:]...)...)
	w.eventually("the wake before the model", func() bool { return w.kept("the end of work") == 1 })
	if now := w.awaiting(1)[0].Session; now != session {
		t.Errorf("the session is %s, want %s", now, session)
	}
	p.HangUp()
	w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
}

// A server that is told to end does not tell its plugins.
func TestNoAwaitOutlivesItsServer(t *testing.T) {
	w := newWorld(t)
	w.stall("before.ts")
	s, session := w.attend()
	w.sendInto("the end of work", "before.ts")
	s.signal(syscall.SIGTERM)
	w.becomes("the end of work", released...)
	w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
	w.remove(w.path("before.ts"))
	s = w.serve(w.project)
	s.note(session, "here I am again")
	w.becomes("the end of work", append(slices.Clone(released), acknowledged[1:]...)...)
	if n := s.stands(session, "the end of work"); n != 1 {
		t.Errorf("it stands %d times in the session, want once", n)
	}
}

// Another plugin holds the message up for so long that vx has the wake back: then it must not come to be any more.
func TestAWakeThatWasTakenBackCannotComeTwice(t *testing.T) {
	w := newWorld(t)
	w.stall("before.ts")
	s, session := w.attend()
	w.write(w.path("before.ts"), "")
	w.send("the end of work")
	w.becomes("the end of work", released...)
	w.held() // it is offered again
	w.remove(w.path("before.ts"))
	w.becomes("the end of work", append(slices.Clone(released), acknowledged[1:]...)...)
	s.note(session, "and now?")
	if n := s.stands(session, "the end of work"); n != 1 {
		t.Errorf("it stands %d times in the session, want once", n)
	}
}

// OpenCode answers that it has accepted a message, and then another plugin refuses it.
func TestARefusedWakeIsOfferedAgainAndNotLost(t *testing.T) {
	w := newWorld(t)
	w.plugin("before.ts", `import { existsSync } from "node:fs"
export const Refuse = async () => ({
	"chat.message": async (_input: unknown, { parts }: { parts: { text?: string }[] }) => {
		if (parts.some((part) => part.text?.includes("the end of work")) && existsSync("`+w.path("refuse")+`")) throw new Error("not now")
	},
})
`)
	s, session := w.attend()
	w.write(w.path("refuse"), "")
	w.send("the end of work")
	w.becomes("the end of work", released...)
	w.remove(w.path("refuse"))
	w.becomes("the end of work", append(slices.Clone(released), acknowledged[1:]...)...)
	if n := s.stands(session, "the end of work"); n != 1 {
		t.Errorf("it stands %d times in the session, want once", n)
	}
}

func TestADeletedSessionIsNotWoken(t *testing.T) {
	w := newWorld(t)
	s, session := w.attend()
	s.must(http.StatusOK, "DELETE", "/session/"+session, nil, nil)
	w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
	w.send("deploy finished")
	next := s.session(w.project)
	s.note(next, "hello again")
	w.becomes("deploy finished", acknowledged...)
	if n := s.stands(next, "deploy finished"); n != 1 {
		t.Errorf("it stands %d times in the session, want once", n)
	}
}

// The session of a sub-agent has a parent, and a wake in it would be read by nobody.
func TestASubAgentIsNoCommander(t *testing.T) {
	w := newWorld(t)
	s, session := w.attend()
	var child struct{ ID string }
	s.must(http.StatusOK, "POST", "/session", map[string]any{"parentID": session}, &child)
	s.note(child.ID, "do a part of it")
	w.send("deploy finished")
	w.becomes("deploy finished", acknowledged...)
	if n, m := s.stands(session, "deploy finished"), s.stands(child.ID, "deploy finished"); n != 1 || m != 0 {
		t.Errorf("it stands %d times in the session and %d times in its sub-agent's, want once and never", n, m)
	}
	if now := w.awaiting(1)[0].Session; now != session {
		t.Errorf("%s waits, want %s", now, session)
	}
}

// One server can have several projects; each has its commander.
func TestAServerOfTwoProjectsGivesEachItsOwnWakes(t *testing.T) {
	w := newWorld(t)
	other := w.path("other")
	w.newProject(other)
	s, here := w.attend()
	there := s.session(other)
	s.note(there, "hello there too")
	w.awaitingIn(other, 1)
	w.awaiting(1)
	w.vxIn(other, "wake", "send", "--title", "news from there")
	w.send("news from here")
	w.becomes("news from here", acknowledged...)
	w.eventually("the end of the other one", func() bool {
		story := w.story(other, "news from there")
		return strings.HasPrefix(story[len(story)-1], "delivered")
	})
	for session, want := range map[string]string{here: "news from here", there: "news from there"} {
		if n := s.stands(session, "news from"); n != 1 || s.stands(session, want) != 1 {
			t.Errorf("%s has %d wakes, want %q alone", session, n, want)
		}
	}
}

// Whoever asks first has it, and nobody else.
func TestTwoServersAndADrainShareOneQueue(t *testing.T) {
	w := newWorld(t)
	s, one := w.attend()
	z := w.serve(w.project)
	two := z.session(w.project)
	z.note(two, "hello here too")
	w.awaiting(2)
	drained := ""
	titles := strings.Fields("apple birch cedar dogwood elm fir ginkgo hazel")
	for _, title := range titles {
		w.send("the end of " + title)
		out, _ := w.run(w.project, w.vx(), "sentinel", "drain")
		drained += out
	}
	for _, title := range titles {
		w.eventually("the end of "+title, func() bool {
			story := w.story(w.project, "the end of "+title)
			return strings.HasPrefix(story[len(story)-1], "delivered")
		})
		if n := strings.Count(drained, "the end of "+title) + s.stands(one, "the end of "+title) + s.stands(two, "the end of "+title); n != 1 {
			t.Errorf("%q was told %d times, want once", title, n)
		}
	}
}

// deaf puts a vx before the real one whose awaits end at once, as where they cannot live. It returns how to end that.
func (w *world) deaf() (mend func()) {
	w.t.Helper()
	w.copyFile(w.vx(), w.path("real/vx"), 0o755)
	w.write(w.path("spy/vx"), "#!/bin/sh\n[ \"$1 $2\" = \"sentinel await\" ] && exit 1\nexec "+w.path("real/vx")+" \"$@\"\n")
	if err := os.Chmod(w.path("spy/vx"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.env[0] = strings.Replace(w.env[0], "PATH=", "PATH="+w.path("spy")+":", 1)
	return func() { w.remove(w.path("spy")) }
}

// watch runs a sentinel, which the test's end ends.
func (w *world) watch() {
	w.t.Helper()
	cmd := exec.Command(w.vx(), "sentinel")
	cmd.Dir, cmd.Env = w.dir, w.env
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// Where no await lives the sentinel tells the session over HTTP, as its plugin has registered it.
func TestTheSentinelTellsAServerThatHasNoAwait(t *testing.T) {
	w := newWorld(t)
	w.deaf()
	s := w.serve(w.project, "OPENCODE_SERVER_PASSWORD=")
	session := s.session(w.project)
	s.must(http.StatusNoContent, "POST", "/session/"+session+"/prompt_async", map[string]any{"agent": "plan", "noReply": true,
		"parts": []any{map[string]any{"type": "text", "text": "make a plan"}}}, nil)
	if e := w.registered(session); e.Server.URL != s.url || e.Server.Version != version || e.Process.PID != s.cmd.Process.Pid {
		t.Errorf("registered is process %d at %s, version %s, want %d at %s, version %s", e.Process.PID, e.Server.URL, e.Server.Version, s.cmd.Process.Pid, s.url, version)
	}
	w.send("deploy finished")
	w.watch()
	w.eventually("the end of the wake", func() bool {
		story := w.story(w.project, "deploy finished")
		return strings.HasPrefix(story[len(story)-1], "delivered")
	})
	w.eventually("a turn", func() bool { return w.model.Turns("deploy finished") > 0 })
	if n := s.stands(session, "deploy finished"); n != 1 {
		t.Errorf("it stands %d times in the session, want once", n)
	}
	for _, r := range w.model.Requests() {
		if strings.Contains(r.Last, "changed from plan to build") {
			t.Errorf("the turn is not the plan agent's: %q", r.Last)
		}
	}
}

// The sentinel has no password, and nobody writes one down for it: the wake waits for an await.
func TestAWakeForAServerWithAPasswordWaits(t *testing.T) {
	w := newWorld(t)
	mend := w.deaf()
	s := w.serve(w.project)
	session := s.session(w.project)
	s.note(session, "hello there")
	w.registered(session)
	w.send("deploy finished")
	w.watch()
	w.eventually("a refusal", func() bool {
		log, _ := os.ReadFile(w.path("state/sentinel.log"))
		return strings.Contains(string(log), "password")
	})
	if got := w.story(w.project, "deploy finished"); strings.Contains(strings.Join(got, " "), "delivered") || s.stands(session, "deploy finished") != 0 {
		t.Errorf("the wake's story is %q", got)
	}
	mend()
	w.eventually("the end of the wake", func() bool {
		story := w.story(w.project, "deploy finished")
		return story[len(story)-1] == "delivered (acknowledged)"
	})
	if n := s.stands(session, "deploy finished"); n != 1 {
		t.Errorf("it stands %d times in the session, want once", n)
	}
}
