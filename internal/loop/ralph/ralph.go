// Package ralph is the loop that works until no work is left: a command (select) prints the next piece of work, and another one
// (work) runs on it, again and again. Whether a task is done is select's to say: one that it prints again is tried again,
// and skipped after some attempts.
//
// Files, in the run's directory: attempts.json (how often each task was tried), ESCALATED.md (a worker's question, which ends
// the run), iter-NNN.log, and iter-NNN.log.1 where that became too large. A crash leaves attempts.json as it was before the
// worker began.
package ralph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/loop"
	"vx/internal/state"
	"vx/internal/wake"
)

// Kind is what run.json calls these runs.
const Kind = "ralph"

const (
	escalationFile = "ESCALATED.md"
	attemptsFile   = "attempts.json"
	maxQuestion    = 64 << 10        // bytes
	selectTimeout  = 5 * time.Minute // it only has to look
	maxTrouble     = 3               // times in a row that select may fail
	// waitDelay is how long a worker's output is read on when it has ended and left something running.
	waitDelay = 2 * time.Second
)

// Options are what a run is to do.
type Options struct {
	Select, Work  string // commands, by sh -c
	Max           int    // iterations
	Attempts      int    // of one task
	WorkerTimeout time.Duration
	Between       time.Duration // two iterations
	Dir           string        // where both commands run
	Tree          string        // the working tree that they work on, resolved
}

// Result is how a run has ended.
type Result struct {
	Run       string
	Reason    loop.Reason
	Status    int    // the exit status
	Iteration int    // the last one that began
	Words     string // why, in one line
	Question  string // the text of the escalation file, cleaned
}

// looper is a run in progress.
type looper struct {
	Options
	run      *loop.Run
	n        int
	attempts map[string]int
	skipped  []string
}

// Run works until select has no more work, or one of the other ends. say is told what happens, line by line. The error is what
// went wrong with the run itself, which has then ended as Failed; before it began it is a *loop.Busy or one of the file system.
func Run(ctx context.Context, p *state.Project, o Options, command []string, say func(string)) (Result, error) {
	run, err := loop.Create(p, loop.Plan{
		Kind: Kind, Title: o.Work, Command: command, Tree: o.Tree,
		Limits: loop.Limits{Iterations: o.Max, Attempts: o.Attempts, WorkerSeconds: o.WorkerTimeout.Seconds()},
	})
	if err != nil {
		return Result{Status: 1}, err
	}
	defer run.Finish(loop.Failed, "") // where nothing else has ended it
	say("run " + run.ID + "; vx loop pause or stop steers it")
	run.Say = say
	l := &looper{Options: o, run: run, attempts: map[string]int{}}
	res, err := l.all(ctx)
	run.Say = nil
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		sig := loop.SignalOf(ctx)
		res, err = Result{Reason: loop.Interrupted, Words: fmt.Sprintf("interrupted by a signal (%v) in iteration %d", sig, l.n)}, nil
		res.Status = res.Reason.Status(sig)
	}
	res.Run, res.Iteration = run.ID, l.n
	if err != nil {
		res.Reason, res.Status = loop.Failed, loop.Failed.Status(0)
		return res, errors.Join(err, run.Finish(loop.Failed, err.Error()))
	}
	if res.Reason != loop.Interrupted {
		res.Status = res.Reason.Status(0)
	}
	if n := len(l.skipped); n > 0 {
		res.Words += "; " + l.gaveUp(strings.Join(l.skipped, ", "))
	}
	return res, run.Finish(res.Reason, res.Words)
}

// all is the run from its first selection to its end.
func (l *looper) all(ctx context.Context) (Result, error) {
	for {
		s, res, err := l.next(ctx)
		if err != nil || res.Reason != "" {
			return res, err
		}
		if res, err := l.once(ctx, s); err != nil || res.Reason != "" {
			return res, err
		}
		if l.n >= l.Max {
			return Result{Reason: loop.MaxIterations, Words: fmt.Sprintf("work is left after iteration %d, or may be", l.n)}, nil
		}
		if err := l.wait(ctx); err != nil {
			return Result{}, err
		}
	}
}

func (l *looper) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(l.Between):
		return nil
	}
}

// check is what STOP and PAUSE come to.
func (l *looper) check(ctx context.Context) (Result, error) {
	err := l.run.Check(ctx)
	if errors.Is(err, loop.ErrStopped) {
		return Result{Reason: loop.Stopped, Words: fmt.Sprintf("stopped after iteration %d", l.n)}, nil
	}
	return Result{}, err
}

// next is the next piece of work, or the run's end.
func (l *looper) next(ctx context.Context) (selection, Result, error) {
	for trouble := 0; ; {
		if res, err := l.check(ctx); err != nil || res.Reason != "" {
			return selection{}, res, err
		}
		s, err := l.choose(ctx)
		if ctx.Err() != nil {
			return s, Result{}, ctx.Err()
		}
		if err == nil && s.Status == "none" {
			return s, Result{Reason: loop.NoWork, Words: fmt.Sprintf("no work is left after iteration %d", l.n)}, nil
		}
		if err == nil && l.attempts[s.name()] >= l.Attempts {
			if !slices.Contains(l.skipped, s.name()) {
				l.skipped = append(l.skipped, s.name())
				if err := l.run.Log(l.gaveUp(s.name())); err != nil {
					return s, Result{}, err
				}
				continue // now it is told to leave it out
			}
			err = fmt.Errorf("it prints %s, which is skipped", s.name())
		}
		if err == nil {
			return s, Result{}, nil
		}
		words := "select: " + err.Error()
		if trouble++; trouble >= maxTrouble {
			return s, Result{Reason: loop.Failed, Words: fmt.Sprintf("%s (%d times)", words, trouble)}, nil
		}
		if err := errors.Join(l.run.Log(words), l.wait(ctx)); err != nil {
			return s, Result{}, err
		}
	}
}

func (l *looper) gaveUp(tasks string) string {
	if l.Attempts == 1 {
		return "skipped after 1 attempt: " + tasks
	}
	return fmt.Sprintf("skipped after %d attempts: %s", l.Attempts, tasks)
}

// choose runs select.
func (l *looper) choose(ctx context.Context) (selection, error) {
	out, said := &capped{most: maxSelection}, &capped{most: 4 << 10}
	cmd := l.command(l.Select, "VX_SKIPPED="+strings.Join(l.skipped, "\n"))
	cmd.Stdout, cmd.Stderr = out, said
	o := l.run.Work(ctx, cmd, selectTimeout)
	switch first, _, _ := strings.Cut(strings.TrimSpace(wake.Clean(said.String())), "\n"); {
	case o.Start != nil || o.Left != nil:
		return selection{}, errors.Join(o.Start, o.Left)
	case o.Late:
		return selection{}, fmt.Errorf("it took longer than %v", selectTimeout)
	case o.Status != 0 && first != "":
		return selection{}, fmt.Errorf("it ended with %d: %s", o.Status, first)
	case o.Status != 0:
		return selection{}, fmt.Errorf("it ended with %d", o.Status)
	case out.more:
		return selection{}, fmt.Errorf("it prints more than %d KB", maxSelection>>10)
	}
	return parse(out.String())
}

// command is select or work. Neither is anybody's commander: a Stop hook in it must not take the wakes.
func (l *looper) command(command string, more ...string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.WaitDelay = l.Dir, waitDelay
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "CLAUDECODE=") })
	cmd.Env = append(env, append(more, "VX_HOOK=0", "VX_RUN_DIR="+l.run.Dir)...)
	return cmd
}

// once is one iteration. It returns no reason where another one may follow.
func (l *looper) once(ctx context.Context, s selection) (Result, error) {
	l.n++
	attempt := l.attempts[s.name()] + 1
	err := l.run.Begin(l.n,
		loop.Field{Key: "status", Value: s.Status}, loop.Field{Key: "spec", Value: s.Spec}, loop.Field{Key: "task", Value: s.Task},
		loop.Field{Key: "reason", Value: s.Reason}, loop.Field{Key: "attempt", Value: fmt.Sprint(attempt)},
		loop.Field{Key: "claude_rc"}, loop.Field{Key: "promise"})
	if err != nil {
		return Result{}, err
	}
	l.run.Say(fmt.Sprintf("iteration %d of %d: %s, attempt %d", l.n, l.Max, s.name(), attempt))
	open := func() (*os.File, error) { return l.run.IterLog(l.n) }
	file, err := open()
	if err != nil {
		return Result{}, err
	}
	log := &output{file: file, open: open, most: maxLog}
	defer func() { log.file.Close() }()
	cmd := l.command(l.Work, "VX_SELECTION="+s.text, "VX_STATUS="+s.Status, "VX_SPEC="+s.Spec, "VX_TASK="+s.Task,
		fmt.Sprintf("VX_ITERATION=%d", l.n), fmt.Sprintf("VX_ATTEMPT=%d", attempt), "VX_ESCALATION="+l.escalation())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(s.text+"\n"), log, log
	o := l.run.Work(ctx, cmd, l.WorkerTimeout)
	if err := errors.Join(o.Start, o.Left); err != nil {
		return Result{}, fmt.Errorf("worker: %w", err)
	}
	fields := []loop.Field{{Key: "claude_rc", Value: fmt.Sprint(o.Status)}}
	if log.promised {
		fields = append(fields, loop.Field{Key: "promise", Value: "COMPLETE"})
	}
	if err := l.run.Note(fields...); err != nil {
		return Result{}, err
	}
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case o.Late:
		err = l.run.Log(fmt.Sprintf("the worker was ended: it took longer than %v; no attempt is counted", l.WorkerTimeout))
	default:
		l.attempts[s.name()] = attempt
		err = l.save()
	}
	if err != nil {
		return Result{}, err
	}
	if question, asks := l.question(); asks {
		return Result{Reason: loop.Escalated, Question: question,
			Words: fmt.Sprintf("iteration %d: %s: the loop has stopped with a question. Your call: %s", l.n, s.name(), l.escalation())}, nil
	}
	return l.check(ctx)
}

func (l *looper) save() error {
	data, err := json.MarshalIndent(l.attempts, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(l.run.Dir, attemptsFile), append(data, '\n'), 0o600)
}

func (l *looper) escalation() string { return filepath.Join(l.run.Dir, escalationFile) }

// question is the text of the escalation file. One that is there and cannot be read is a question all the same.
func (l *looper) question() (string, bool) {
	data, _, err := atomicfile.ReadPlain(l.escalation(), maxQuestion)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	if err != nil {
		return "(it cannot be read: " + wake.Clean(err.Error()) + ")", true
	}
	return wake.Clean(string(data)), true
}
