//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dear is what a writer of the mock's says at once: 20,000 tokens, or $0.30 at the price of writerModel.
const (
	dear        = 20_000
	writerModel = "claude-sonnet-4-5-20250929"
)

// newLoop is a project with a task, in which the client is found as claude. Nobody else watches it.
func newLoop(t *testing.T, version string) *world {
	t.Helper()
	w := newProject(t, version)
	w.alone()
	bin := w.path("bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.binary, filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	for i, e := range w.env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			w.env[i] = "PATH=" + bin + ":" + path
		}
	}
	w.env = append(w.env, "ANTHROPIC_MODEL="+writerModel)
	w.inProject(".gitignore", "/.loop/\n")
	w.inProject(".loop/task.md", "# Paint the till\n\nIt is to be blue.\n\n## Escalate to the human\n\nWhich blue.\n")
	return w
}

func (w *world) inProject(name, data string) {
	w.t.Helper()
	w.writeFile(filepath.Join(w.project, name), data, 0o600)
}

func (w *world) read(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// green runs the loop on the task with the default writer and judge.
func (w *world) green(env []string, args ...string) (out, said string, status int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(w.home, ".local", "bin", "vx"), append([]string{"loop", "green", ".loop/task.md"}, args...)...)
	cmd.Dir, cmd.Env = w.project, append(w.env[:len(w.env):len(w.env)], env...)
	// The loop ends its writers when it is told to end.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil || errors.Is(err, exec.ErrWaitDelay) {
		w.t.Fatal(err)
	}
	w.t.Logf("vx loop green %q: exit %d\n%s%s", args, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// sandbox lets the client work without asking, even for root: the world is made to be lost.
var sandbox = []string{"IS_SANDBOX=1"}

// ran checks how the only run in this world has ended, wherever that is said, and returns its progress.
func (w *world) ran(reason string, passes int) string {
	w.t.Helper()
	var list []struct {
		Dir, Kind, State, Reason string
		Iteration                int
	}
	out := w.vx("loop", "list", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		w.t.Fatalf("vx loop list --json: %v in %s", err, out)
	}
	r := list[0]
	if r.Kind != "green" || r.State != "ended" || r.Reason != reason || r.Iteration != passes {
		w.t.Errorf("the list has %+v, want %s after %d passes", r, reason, passes)
	}
	progress := w.read(filepath.Join(r.Dir, "progress.txt"))
	if !strings.HasSuffix(progress, "\n\ncompletion_reason="+reason+"\npromise=COMPLETE\n") {
		w.t.Errorf("no marker of %s in:\n%s", reason, progress)
	}
	return progress
}

func (w *world) holds(what, text string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s: no %q in:\n%s", what, part, text)
		}
	}
}

// judged is the model that was asked by a judge of the change.
func (a *api) judged(change string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if news := strings.Join(r.tail, "\n"); !r.main && strings.Contains(news, "You judge a change") && strings.Contains(news, change) {
			return r.model
		}
	}
	return ""
}

func TestALoopWithTheDefaultWriterAndJudgeGetsToGreen(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newLoop(t, version)
		w.api.when("pass 1 of 4", answer{bash: "echo red >till", spends: dear})
		w.api.when("pass 2 of 4", answer{bash: "echo blue >till; echo it is blue now >>.loop/LEDGER.md", spends: dear})
		w.api.when("You judge a change", answer{bare: true, say: "PASS\nblue as can be"})
		out, said, status := w.green(sandbox, "echo error: the till is $(cat till); grep -qx blue till", "4")
		if status != 0 || out != "verified after 2 passes\n" {
			t.Errorf("exit %d, %q", status, out)
		}
		w.holds("stderr", said, "pass 1: gate red\n", ": DONE, ", ", $0.6")
		w.holds("the second writer's prompt", w.api.told("pass 2 of 4"), "From the pass before:", "error: the till is red")
		if model := w.api.judged("+blue"); !strings.Contains(model, "haiku") {
			t.Errorf("the judge of the change is %q, want a haiku", model)
		}
		w.holds("the ledger", w.read(filepath.Join(w.project, ".loop", "LEDGER.md")),
			"## iter 1 · gate RED", "it is blue now\n\n## iter 2 · gate GREEN", "> PASS\n> blue as can be\n")
		w.holds("progress", w.ran("DONE", 2), "claude_rc=0\n", "gate=red\n", "gate=green\n", "verdict=pass\n")
	})
}

func TestALoopEndsWithTheQuestionOfItsWriter(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newLoop(t, version)
		w.api.when("pass 1 of 8", answer{bash: "printf 'Which blue?\\nnavy or sky\\n' >.loop/ESCALATED.md; touch done"})
		out, said, status := w.green(sandbox, "touch tried; test -e done")
		file := filepath.Join(w.project, ".loop", "ESCALATED.md")
		want := "Which blue?\nnavy or sky\n\npass 1: the loop has stopped with a question. Your call: " + file + "\n"
		if status != 3 || out != want {
			t.Errorf("exit %d, %q, want 3, %q", status, out, want)
		}
		w.holds("stderr", said, "hint: vx loop answer --run ")
		if exists(filepath.Join(w.project, "tried")) {
			t.Error("the gate was tried over an open question")
		}
		if w.read(file) != "Which blue?\nnavy or sky\n" {
			t.Error("the question is not what it was")
		}
		w.holds("the ledger", w.read(filepath.Join(w.project, ".loop", "LEDGER.md")), "## iter 1 · ESCALATED\n\nWhich blue?\nnavy or sky\n")
		w.ran("ESCALATED", 1)
	})
}

func TestALoopStopsWhenTheClientsReportsAddUpToItsBudget(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newLoop(t, version)
		for _, pass := range []string{"pass 1 of 8", "pass 2 of 8", "pass 3 of 8"} {
			w.api.when(pass, answer{bash: "true", spends: dear})
		}
		out, _, status := w.green(sandbox, "--budget", "0.5", "false")
		if status != 1 || !strings.HasPrefix(out, "$0.6") || !strings.HasSuffix(out, " of $0.50 are spent\n") {
			t.Errorf("exit %d, %q", status, out)
		}
		w.holds("progress", w.ran("BUDGET", 2), "cost_usd=0.3", "cost_usd=0.6")
	})
}

func TestALoopSaysAtOnceThatTheClientDoesNotWorkForRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root is refused")
	}
	forEachClient(t, func(t *testing.T, version string) {
		w := newLoop(t, version)
		out, said, status := w.green(nil, "--budget", "1", "false")
		if status != 1 || out != "pass 1: the writer, Claude Code, refuses to skip permissions for root\n" {
			t.Errorf("exit %d, %q", status, out)
		}
		w.holds("stderr", said, "\nhint: run it as another user; or, ", "IS_SANDBOX=1")
		w.ran("FAILED", 1)
	})
}
