package green

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/loop"
	"vx/internal/state"
	"vx/internal/wake"
)

const answerFile = "answer.md"

// Asked is a run that has ended with a question that nobody has answered.
type Asked struct {
	loop.Found
	kept kept
}

// Options are what the run was to do.
func (a *Asked) Options() Options { return a.kept.Options }

// Open are the runs whose question is open: of one task the last run counts, whatever came of it.
func Open(all []loop.Found) ([]Asked, error) {
	var open []Asked
	var bad error
	seen := map[string]bool{}
	for _, f := range all { // the newest first
		if f.Kind != Kind {
			continue
		}
		k, err := load(f.Dir)
		if err != nil {
			if f.Reason == loop.Escalated {
				bad = errors.Join(bad, err)
			}
			continue
		}
		if seen[k.Task] {
			continue
		}
		seen[k.Task] = true
		if _, err := os.Lstat(filepath.Join(f.Dir, answerFile)); f.Reason == loop.Escalated && errors.Is(err, fs.ErrNotExist) {
			open = append(open, Asked{f, k})
		}
	}
	return open, bad
}

// Answer writes down what the human has decided and goes on with the next pass, in a new run: it counts passes and money
// on, and the judge sees all that has changed since the first one began. There is always one pass to go.
func Answer(ctx context.Context, p *state.Project, a Asked, text string, command []string, show Show) (Result, error) {
	k := a.kept
	k.Max = max(k.Max, k.Passes+1)
	return start(ctx, p, k, command, show, &answer{&a, strings.TrimSpace(wake.Clean(text))})
}

// answer is what the human has decided.
type answer struct {
	to   *Asked
	text string
}

func (a *answer) path() string { return filepath.Join(a.to.Dir, answerFile) }

// wanted refuses a second answer.
func (a *answer) wanted() error {
	if _, err := os.Lstat(a.path()); err == nil {
		return fmt.Errorf("run %s: its question has an answer: %w", a.to.ID, fs.ErrExist)
	}
	return nil
}

// take writes the answer down. Until the last step the question is open.
func (l *looper) take(a *answer) error {
	l.carry = "The human has answered the question that the pass before has asked; the ledger has both. The decision:\n\n" + quote(a.text)
	err := l.append(fmt.Sprintf("\n## answer · %s\n\nThe human has decided:\n\n%s", time.Now().UTC().Format(time.RFC3339), quote(a.text)))
	if err != nil {
		return err
	}
	return atomicfile.Create(a.path(), []byte(a.text+"\n"), 0o600)
}
