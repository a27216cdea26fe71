//go:build e2e

package pi

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vx/internal/e2e/clients"
)

// A program is a Pi that another program drives, in rpc mode.
type program struct {
	w      *world
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	ended  chan struct{}
	mu     sync.Mutex
	events []string // each a line of JSON
}

// drive starts Pi in rpc mode in a folder.
func (w *world) drive(dir string, env ...string) *program {
	w.t.Helper()
	words := w.release.Trusting(w.t)
	p := &program{w: w, cmd: exec.Command(words[0], append(words[1:], "--mode", "rpc")...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(append([]string{}, w.env...), env...)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(p.end)
	go p.read(out)
	return p
}

func (p *program) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		p.mu.Lock()
		p.events = append(p.events, lines.Text())
		p.mu.Unlock()
	}
}

// end closes Pi's input, upon which it ends, and waits for that.
func (p *program) end() {
	p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.w.t.Error("Pi does not end with its input")
		p.cmd.Process.Kill()
	}
	p.cmd.Wait()
}

func (p *program) command(fields map[string]any) {
	p.w.t.Helper()
	line, err := json.Marshal(fields)
	if err != nil {
		p.w.t.Fatal(err)
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		p.w.t.Fatal(err)
	}
}

func (p *program) say(text string) { p.command(map[string]any{"type": "prompt", "message": text}) }

// count counts the events that hold all the parts.
func (p *program) count(parts ...string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.events {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(e, part)
		}
		if all {
			n++
		}
	}
	return n
}

// ready waits until Pi answers, its extensions being loaded.
func (p *program) ready() {
	p.w.t.Helper()
	p.command(map[string]any{"type": "get_state"})
	p.w.eventually("an answer of Pi", func() bool { return p.count(`"command":"get_state"`) > 0 })
}

func TestAProgramInRPCModeIsWoken(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.drive(w.project)
		w.awaiting(1)
		w.send("deploy finished")
		w.delivered("deploy finished")
	})
}

// There is no editor that a queued message could go back to: it stays in Pi's queue.
func TestAWakeThatIsQueuedWhenAProgramAbortsIsToldOnce(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.drive(w.project)
		w.awaiting(1)
		w.busy(p.say)
		w.send("deploy finished")
		w.held()
		w.eventually("the wake in Pi's queue", func() bool { return p.count(`"queue_update"`, "deploy finished") > 0 })
		p.command(map[string]any{"type": "abort"})
		w.eventually("the end of the run", func() bool { return p.count(`"type":"agent_end"`) > 0 })
		w.model.Open(1)
		p.say("carry on")
		w.delivered("deploy finished")
	})
}

// quiet lets a Pi have a turn, and checks that nothing was started meanwhile that waits for wakes, though one was there.
func (w *world) quiet(root string, turn func()) {
	w.t.Helper()
	w.vxIn(root, "wake", "send", "--title", "nobody is told")
	// The first vx on the PATH says that it was started.
	started := w.path("started")
	w.write(w.path("spy/vx"), "#!/bin/sh\necho \"$*\" >>"+started+"\nexec "+filepath.Join(w.home, ".local/bin/vx")+" \"$@\"\n")
	if err := os.Chmod(w.path("spy/vx"), 0o700); err != nil {
		w.t.Fatal(err)
	}
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

// turn lets a driven Pi work for two seconds.
func (w *world) turn(dir string, env ...string) func() {
	return func() {
		w.t.Helper()
		before := w.model.Turns("SLOW2")
		p := w.drive(dir, env...)
		p.ready()
		p.say("SLOW2 please")
		w.eventually("the turn", func() bool { return w.model.Turns("SLOW2") > before })
		w.eventually("its end", func() bool { return p.count(`"type":"agent_end"`) > 0 })
		if p.count("extension_error") > 0 {
			w.t.Error("the extension threw")
		}
	}
}

func TestPrintAndJSONModesStartNothing(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		for _, args := range [][]string{{"-p", "SLOW2 please"}, {"--mode", "json", "SLOW2 please"}} {
			w.quiet(w.project, func() {
				words := append(w.release.Trusting(t), args...)
				if out, status := w.run(w.project, words[0], words[1:]...); status != 0 || !strings.Contains(out, "mock reply") {
					t.Errorf("pi %q ended with %d: %s", args, status, out)
				}
			})
		}
	})
}

func TestSoldiersStartNothing(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.quiet(w.project, w.turn(w.project, "VX_TASK=t1"))
	})
}

func TestTheSwitchOfTheHookIsTheExtensionsToo(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.quiet(w.project, w.turn(w.project, "VX_HOOK=0"))
	})
}

func TestALinkedWorktreeStartsNothing(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		camp := w.path("proj/.camps/c1")
		if _, status := w.run(w.project, "/usr/bin/git", "worktree", "add", "-q", camp); status != 0 {
			t.Fatal("git worktree add")
		}
		w.vxIn(camp, "init", "--await", "always", "--yes")
		w.install(filepath.Join(camp, ".pi", "extensions"))
		w.quiet(camp, w.turn(camp))
		// A folder in it, where the user's own extension is loaded, is in the camp too.
		sub := filepath.Join(camp, "sub")
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		w.install(w.agent("extensions"))
		w.quiet(camp, w.turn(sub))
	})
}

// A submodule has a file for a .git too, but is nobody's camp.
func TestASubmoduleIsNoCamp(t *testing.T) {
	w := newWorld(t, clients.PiToday)
	sub := filepath.Join(w.project, "sub")
	if _, status := w.run(w.project, "/usr/bin/git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", w.project, "sub"); status != 0 {
		t.Fatal("git submodule add")
	}
	w.vxIn(sub, "init", "--await", "always", "--yes")
	w.install(filepath.Join(sub, ".pi", "extensions"))
	w.drive(sub)
	w.eventually("an await", func() bool { return len(w.awaits(sub)) == 1 })
}

// Pi looks for extensions of a project in its working directory alone; those of the user are everywhere.
func TestInASubfolderOnlyTheUsersExtensionIsLoaded(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		sub := filepath.Join(w.project, "sub")
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		w.quiet(w.project, w.turn(sub))
		w.install(w.agent("extensions"))
		w.drive(sub)
		w.once("nobody is told") // they are now
		w.awaiting(1)
		w.send("deploy finished")
		w.delivered("deploy finished")
	})
}

func TestTheExtensionInBothPlacesRunsOnce(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.install(w.agent("extensions"))
		p := w.drive(w.project)
		w.awaiting(1)
		w.busy(p.say) // all that starts with a session has started
		if n := len(w.children()); n != 1 {
			t.Errorf("%d awaits run, want 1", n)
		}
		w.model.Open(1)
		w.send("deploy finished")
		w.delivered("deploy finished")
	})
}

func TestAnUntrustedProjectStartsNothingUntilItIsTrusted(t *testing.T) {
	w := newWorld(t, clients.PiToday)
	words := w.release.Command(t)
	p := w.openWith(w.project, words)
	p.WaitScreen(t, "Trust project folder?")
	if children := w.children(); len(children) > 0 {
		t.Errorf("awaits were started: %v", children)
	}
	p.Keys("Enter")
	w.awaiting(1)
	w.send("deploy finished")
	w.delivered("deploy finished")
}
