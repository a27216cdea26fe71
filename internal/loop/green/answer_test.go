package green

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/atomicfile"
	"vx/internal/loop"
	"vx/internal/state"
)

// quiet shows nothing.
type quiet struct{}

func (quiet) Begun(string)  {}
func (quiet) Step(Progress) {}
func (quiet) Say(string)    {}

// asks is a project with a run that has ended with a question.
func asks(t *testing.T) (*state.Project, Options) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	d, err := state.OpenAt(filepath.Join(home, "state"))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(home, "shop")
	o := Options{
		Task: filepath.Join(root, "task.md"), Gate: "true", Max: 4, Dir: root, Tree: root, Judge: None,
		Writer: `test -e asked || { touch asked; echo "which?" >$VX_ESCALATION; }`,
	}
	if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(o.Task, []byte("do it\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p := d.Project(root)
	res, err := Run(context.Background(), p, o, nil, quiet{})
	if err != nil || res.Reason != loop.Escalated || res.Status != 3 || res.Question != "which?\n" {
		t.Fatalf("%+v, %v", res, err)
	}
	return p, o
}

// open is the only open question, nil where there is none.
func openQuestion(t *testing.T, p *state.Project) *Asked {
	t.Helper()
	all, bad := loop.List(p.Root, p)
	open, err := Open(all)
	if err != nil || len(bad) > 0 || len(open) > 1 {
		t.Fatalf("%+v, %v, %v", open, bad, err)
	}
	if len(open) == 0 {
		return nil
	}
	return &open[0]
}

func TestAQuestionIsAnsweredOnce(t *testing.T) {
	p, o := asks(t)
	a := openQuestion(t, p)
	if a == nil {
		t.Fatal("it is not open")
	}
	res, err := Answer(t.Context(), p, *a, "this", nil, quiet{})
	if err != nil || res.Reason != loop.Done || res.Pass != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	// A later question of the same task, while another one still has the first in hand.
	if err := os.WriteFile(o.escalation(), []byte("and now?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(o.ledger())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Answer(t.Context(), p, *a, "that", nil, quiet{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	after, err := os.ReadFile(o.ledger())
	if string(after) != string(before) || err != nil {
		t.Errorf("the ledger is now\n%s", after)
	}
	if text, is, _ := o.question(); text != "and now?\n" || !is {
		t.Errorf("the later question is %q", text)
	}
	if a := openQuestion(t, p); a != nil {
		t.Errorf("%s is open", a.ID)
	}
}

func TestAnAnswerThatIsNotWrittenDownLeavesTheQuestionOpen(t *testing.T) {
	p, _ := asks(t)
	a := openQuestion(t, p)
	broken := errors.New("the disk is gone")
	atomicfile.Before = func(step, path string) error {
		if strings.HasSuffix(path, answerFile) {
			return broken
		}
		return nil
	}
	t.Cleanup(func() { atomicfile.Before = nil })
	res, err := Answer(t.Context(), p, *a, "this", nil, quiet{})
	if !errors.Is(err, broken) || res.Reason != loop.Failed || res.Status != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	atomicfile.Before = nil
	again := openQuestion(t, p)
	if again == nil || again.ID != a.ID {
		t.Fatalf("%+v", again)
	}
	if res, err := Answer(t.Context(), p, *again, "this", nil, quiet{}); err != nil || res.Reason != loop.Done {
		t.Errorf("%+v, %v", res, err)
	}
}
