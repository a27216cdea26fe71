//go:build e2e

package pi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
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
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // what they do as a rule is wait
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// buildVX builds the program once for all tests.
func buildVX(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "vx-pi-bin-"); built.err != nil {
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

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// run runs a program as a person would in another terminal.
func (w *world) run(dir, program string, args ...string) (out string, status int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, w.env, 5*time.Second
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

// vxIn runs a command of vx in a folder, which has to succeed, and returns what it prints.
func (w *world) vxIn(dir string, args ...string) string {
	w.t.Helper()
	out, status := w.run(dir, filepath.Join(w.home, ".local", "bin", "vx"), args...)
	if status != 0 {
		w.t.Fatalf("vx %q: exit %d\n%s", args, status, out)
	}
	return out
}

// send puts a wake for the project's commanders.
func (w *world) send(title string) {
	w.t.Helper()
	w.vxIn(w.project, "wake", "send", "--title", title)
}

// story is what became of the wake with this title in a project: the events' names, each delivery with its proof.
func (w *world) story(root, title string) []string {
	w.t.Helper()
	var story []string
	for line := range strings.Lines(w.vxIn(root, "wake", "log", "--json")) {
		var e struct{ Event, Title, Proof string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			w.t.Fatalf("vx wake log --json: %v in %q", err, line)
		}
		if e.Title != title {
			continue
		}
		if e.Proof != "" {
			e.Event += " (" + e.Proof + ")"
		}
		story = append(story, e.Event)
	}
	return story
}

// becomes waits until the wake's story is this one.
func (w *world) becomes(title string, want ...string) {
	w.t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got = w.story(w.project, title); slices.Equal(got, want) {
			return
		}
	}
	w.t.Fatalf("the story of %q is %s, want %s", title, strings.Join(got, ", "), strings.Join(want, ", "))
}

// acknowledged is the story of a wake that went the straight way.
var acknowledged = []string{"put", "claimed", "emitted", "delivered (acknowledged)"}

// delivered waits until the wake is over, and checks that it began one turn and stands once in the sessions.
func (w *world) delivered(title string) {
	w.t.Helper()
	w.becomes(title, acknowledged...)
	w.once(title)
}

// once waits until the model was told of the wake, and checks that it was so once.
func (w *world) once(title string) {
	w.t.Helper()
	w.eventually("a turn with "+title, func() bool { return w.model.Turns(title) > 0 })
	w.eventually("the message in a session", func() bool { return w.receipts(title) > 0 })
	if n := w.model.Turns(title); n != 1 {
		w.t.Errorf("the model was told of %q in %d turns, want 1\n%s", title, n, w.model.Dump())
	}
	if n := w.receipts(title); n != 1 {
		w.t.Errorf("%q stands %d times in the sessions, want once", title, n)
	}
}

// receipts counts the messages of a user with the title in all of Pi's session files.
func (w *world) receipts(title string) int {
	w.t.Helper()
	names, err := filepath.Glob(w.agent("sessions/*/*.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		n += w.receiptsIn(name, title)
	}
	return n
}

func (w *world) receiptsIn(name, title string) int {
	w.t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		var row struct {
			Message struct {
				Role    string
				Content json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &row) == nil && row.Message.Role == "user" && strings.Contains(string(row.Message.Content), title) {
			n++
		}
	}
	return n
}
