//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var built struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	atOnce(6)
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// atOnce lets so many tests run at once where -parallel does not say how many: more than there are cores, since what they do
// as a rule is wait.
func atOnce(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// buildVX builds the program once for all tests.
func buildVX(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "vx-e2e-bin-"); built.err != nil {
			return
		}
		build := exec.Command("go", "build", "-trimpath", "-o", built.dir, "vx/cmd/vx")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = errors.New(string(out))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "vx")
}

// newProject is a world in which vx is installed where the hook looks, and `vx init` has installed the hook.
func newProject(t *testing.T, version string) *world {
	t.Helper()
	w := newWorld(t, version)
	bin := filepath.Join(w.home, ".local", "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	// Not written here: a process that another test starts meanwhile would inherit the open file, and it could not be run. And
	// not linked: each link changes the file, which the sentinels of other worlds would retire for.
	if out, err := exec.Command("cp", buildVX(t), bin).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	git := exec.Command("git", "init", "-q", w.project)
	git.Env = w.env
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	w.vx("init", "--await", "always", "--yes")
	return w
}

// vx runs a command of vx in the project, which has to succeed, and returns what it prints.
func (w *world) vx(args ...string) string {
	w.t.Helper()
	out, status := w.tryVX(args...)
	if status != 0 {
		w.t.Fatalf("vx %q: exit %d\n%s%s", args, status, out, w.screens())
	}
	return out
}

func (w *world) tryVX(args ...string) (out string, status int) {
	w.t.Helper()
	return w.run(filepath.Join(w.home, ".local", "bin", "vx"), args...)
}

// run runs a program in the project as a person would in another terminal.
func (w *world) run(program string, args ...string) (out string, status int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = w.project, w.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	data, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if err != nil {
		w.t.Logf("%s %q: %v\n%s", filepath.Base(program), args, err, stderr.String())
	}
	return string(data), cmd.ProcessState.ExitCode()
}

// send puts a wake and returns its id.
func (w *world) send(title string) string {
	w.t.Helper()
	return strings.TrimSpace(w.vx("wake", "send", "--title", title))
}

// An event is one line of `vx wake log --json`.
type event struct {
	Time       time.Time
	Event      string
	ID         string
	Title      string
	Proof, Why string
	Client     int
	MS         float64
}

// story is what became of the wake with this title.
func (w *world) story(title string) []event {
	w.t.Helper()
	var story []event
	for line := range strings.Lines(w.vx("wake", "log", "--json")) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatalf("vx wake log --json: %v in %q", err, line)
		}
		if e.Title == title {
			story = append(story, e)
		}
	}
	return story
}

// steps is a story in its events' names, each delivery with its proof.
func steps(story []event) []string {
	var names []string
	for _, e := range story {
		if e.Proof != "" {
			e.Event += " (" + e.Proof + ")"
		}
		names = append(names, e.Event)
	}
	return names
}

// becomes waits until the wake's story is this one.
func (w *world) becomes(title string, want ...string) {
	w.t.Helper()
	var got []string
	w.eventuallyOr("the wake's story "+strings.Join(want, ", "), func() bool {
		got = steps(w.story(title))
		return slices.Equal(got, want)
	}, func() string { return "its story is " + strings.Join(got, ", ") })
}

// listing counts the wakes at each stage, as `vx wake list --json` shows them.
func (w *world) listing() map[string]int {
	w.t.Helper()
	var stages map[string][]json.RawMessage
	out := w.vx("wake", "list", "--json")
	if err := json.Unmarshal([]byte(out), &stages); err != nil {
		w.t.Fatalf("vx wake list --json: %v in %q", err, out)
	}
	counts := map[string]int{}
	for stage, wakes := range stages {
		counts[stage] = len(wakes)
	}
	return counts
}

// awaits lists the hooks that wait in this world: those that have registered, and so were told by the client whom they serve.
func (w *world) awaits() []process {
	w.t.Helper()
	var found []process
	for _, p := range processesIn(w.dir) {
		if !strings.Contains(p.command(), "/vx sentinel await") { // with a number behind it while it rests
			continue
		}
		records, err := filepath.Glob(w.path("state/sentinel-awaiters/*-" + strconv.Itoa(p.pid) + "-*.json"))
		if err != nil {
			w.t.Fatal(err)
		}
		if len(records) > 0 {
			found = append(found, p)
		}
	}
	return found
}

// awaiting waits until so many hooks wait.
func (w *world) awaiting(n int) {
	w.t.Helper()
	var got []process
	w.eventuallyOr(fmt.Sprintf("%d awaits", n), func() bool { got = w.awaits(); return len(got) == n },
		func() string { return fmt.Sprintf("there are %v", got) })
}

// session opens a client whose first turn has ended: its hook waits.
func (w *world) session(args ...string) *client {
	w.t.Helper()
	before := len(w.awaits())
	c := w.start(args...)
	c.prompt("hello there")
	w.awaiting(before + 1)
	return c
}

// woken waits until the model was told of the wake, and checks that it was by a rewake.
func (w *world) woken(title string) string {
	w.t.Helper()
	w.eventually("a turn with "+title, func() bool { return w.api.turns(title) > 0 })
	told := w.api.told(title)
	if !strings.Contains(told, "<task-notification>") {
		w.t.Fatalf("the model was told of %q, but not by the hook: %s", title, told)
	}
	return told
}

// delivered waits until the wake's turn is proven and over, with so many hooks waiting again, and checks that there was one.
func (w *world) delivered(title string, awaits int) {
	w.t.Helper()
	w.becomes(title, "put", "claimed", "emitted", "delivered (turn started)")
	w.awaiting(awaits) // the await that delivered it has ended before it was proven
	w.once(title)
}

// once checks that the model was told of the wake in exactly one turn. It is asked when all turns have ended.
func (w *world) once(title string) {
	w.t.Helper()
	if n := w.api.turns(title); n != 1 {
		w.t.Errorf("the model was told of %q %d times, want once\n%s", title, n, w.api.dump())
	}
}
