//go:build e2e

package opencode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// quiet lets an OpenCode have a turn, and checks that vx was not started meanwhile, though a wake was there.
func (w *world) quiet(root string, turn func()) {
	w.t.Helper()
	// The first vx on the PATH says that it was started.
	started := w.path("started")
	w.write(w.path("spy/vx"), "#!/bin/sh\necho \"$*\" >>"+started+"\nexec "+w.vx()+" \"$@\"\n")
	if err := os.Chmod(w.path("spy/vx"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.vxIn(root, "wake", "send", "--title", "nobody is told")
	env := w.env
	w.env = append([]string{strings.Replace(env[0], "PATH=", "PATH="+w.path("spy")+":", 1)}, env[1:]...)
	turn()
	w.env = env
	if data, err := os.ReadFile(started); err == nil {
		w.t.Errorf("vx was started: %s", data)
	}
	if got := w.story(root, "nobody is told"); slices.ContainsFunc(got, func(event string) bool { return event != "put" }) {
		w.t.Errorf("the wake's story is %q, want put alone", got)
	}
}

// served has a turn in a server.
func (w *world) served(dir string, env ...string) func() {
	return func() {
		w.t.Helper()
		before := w.model.Turns("SLOW1")
		s := w.serve(dir, env...)
		s.say(s.session(dir), "SLOW1 please")
		w.eventually("the turn", func() bool { return w.model.Turns("SLOW1") > before })
		s.kill()
	}
}

func TestARunThatEndsByItselfStartsNothing(t *testing.T) {
	w := newWorld(t)
	w.quiet(w.project, func() {
		if out, status := w.run(w.project, w.program, "run", "SLOW1 please"); status != 0 || !strings.Contains(out, "mock reply") {
			t.Errorf("opencode run ended with %d: %s", status, out)
		}
	})
	w.quiet(w.project, w.served(w.project, "VX_TASK=t1"))
	w.quiet(w.project, w.served(w.project, "VX_HOOK=0"))
}

func TestACampStartsNothingAndAFolderOfTheProjectDoes(t *testing.T) {
	w := newWorld(t)
	camp := w.path("proj/.camps/c1")
	if _, status := w.run(w.project, "/usr/bin/git", "worktree", "add", "-q", camp); status != 0 {
		t.Fatal("git worktree add")
	}
	w.vxIn(camp, "init", "--harness", "opencode", "--await", "always", "--yes")
	sub := filepath.Join(camp, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	w.quiet(camp, w.served(sub))
	// In the project itself a folder is as good as its root, and the user's own plugin beside the project's is one too many.
	w.vxIn(w.project, "init", "--scope", "user", "--harness", "opencode", "--yes")
	if _, err := os.Stat(filepath.Join(w.home, ".config/opencode/plugin/vexillum-wake.ts")); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(w.project, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s := w.serve(folder)
	session := s.session(folder)
	s.note(session, "hello there")
	w.awaiting(1)
	if n := len(w.children()); n != 1 {
		t.Errorf("%d awaits run, want 1", n)
	}
	w.send("deploy finished")
	w.becomes("deploy finished", acknowledged...)
	if n := s.stands(session, "deploy finished"); n != 1 {
		t.Errorf("it stands %d times in the session, want once", n)
	}
}
