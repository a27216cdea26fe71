//go:build !windows

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"vx/internal/loop"
	"vx/internal/loop/green"
	"vx/internal/state"
	"vx/internal/wake"
)

type loopGreen struct {
	Max           int           `name:"max" default:"8" hidden:"" placeholder:"N" help:"As MAX."`
	Writer        string        `name:"writer" placeholder:"CMD" help:"What works, by sh -c; the prompt is on stdin."`
	Judge         string        `name:"judge" placeholder:"CMD|none" help:"What judges, likewise."`
	JudgeRequired bool          `name:"judge-required" help:"A judge that gives no answer is no yes."`
	WriterTimeout time.Duration `name:"writer-timeout" default:"1h" placeholder:"D" help:"How long a writer may work (1h)."`
	GateTimeout   time.Duration `name:"gate-timeout" default:"30m" placeholder:"D" help:"How long the gate may take (30m)."`
	MaxTime       time.Duration `name:"max-time" placeholder:"D" help:"How long it may all take, pauses too."`
	Budget        float64       `name:"budget" placeholder:"USD" help:"No pass begins once so much is spent."`
	BudgetUnknown string        `name:"budget-unknown" enum:"ok,no" default:"no" hidden:"" placeholder:"ok" help:"Go on with a writer that does not say what it costs."`

	Task  string `arg:"" name:"task" help:"The file that says what is to be done."`
	Gate  string `arg:"" name:"gate" help:"The command that ends with 0 when it is."`
	Limit *int   `arg:"" name:"max" optional:"" help:"How many passes there may be (8), as --max."`
}

// maxPasses keeps a slip of the finger from costing a fortune.
const maxPasses = 999

// exitLoopUsage is the exit status of a command line that is not understood, as in the script that this replaces.
const exitLoopUsage = 2

func (loopGreen) Help() string {
	return "A writer, by default Claude Code that asks nobody for permission, works until the gate is green and a judge " +
		"agrees. Exit status: 0 verified or stopped, 1 out of passes, money or time, 2 usage, 3 your call. See docs/loops.md."
}

// Validate is called by kong after parsing.
func (c *loopGreen) Validate() error {
	if c.Limit != nil {
		if c.Max != 8 && c.Max != *c.Limit {
			return fmt.Errorf("--max %d and MAX %d: give one of them", c.Max, *c.Limit)
		}
		c.Max = *c.Limit
	}
	switch {
	case c.Max < 1 || c.Max > maxPasses:
		return fmt.Errorf("max: want 1 to %d passes", maxPasses)
	case strings.TrimSpace(c.Gate) == "":
		return errors.New("no gate, as in: vx loop green .loop/task.md 'make test'")
	case c.WriterTimeout < 0 || c.GateTimeout < 0 || c.MaxTime < 0:
		return errors.New("a time limit is negative")
	case !(c.Budget >= 0):
		return errors.New("--budget: want dollars")
	case c.JudgeRequired && c.Judge == green.None:
		return errors.New("--judge-required with --judge none: which of them")
	}
	return nil
}

func (c *loopGreen) Run(std stdio) error {
	task, err := filepath.Abs(c.Task)
	if err == nil {
		task, err = filepath.EvalSymlinks(task)
	}
	if fi, err2 := os.Stat(task); err != nil || err2 != nil || !fi.Mode().IsRegular() {
		report(std, &usageError{c.Task + ": no such task file", "vx loop green --help"})
		return exitStatus(exitLoopUsage)
	}
	o := green.Options{
		Task: task, Gate: c.Gate, Max: c.Max, Writer: c.Writer, Judge: c.Judge, JudgeRequired: c.JudgeRequired,
		WriterTimeout: c.WriterTimeout, GateTimeout: c.GateTimeout, MaxTime: c.MaxTime,
		Budget: c.Budget, BudgetUnknown: c.BudgetUnknown == "ok",
	}
	if o.Writer == "" {
		if _, err := exec.LookPath(green.Client); err != nil {
			return fmt.Errorf("writer: %w", err)
		}
	}
	p, at, tree, err := loopHere()
	if err != nil {
		return err
	}
	o.Dir, o.Tree = at, tree
	ctx, stop := withSignals()
	defer stop()
	for _, w := range green.Warnings(ctx, o) {
		fmt.Fprintf(std.errw(), "vx: %s\n", printable(w))
	}
	show := newLoopShow(std)
	res, err := green.Run(ctx, p, o, os.Args, show)
	return show.end(res, err)
}

type loopAnswer struct {
	ID   string `name:"run" placeholder:"ID" help:"Which run has asked; its id may be shortened. Default: the only one."`
	Text string `arg:"" name:"text" help:"What you have decided; - reads it from stdin."`
	place
}

func (loopAnswer) Help() string {
	return "The answer goes into the ledger, and the next pass begins with it, as vx loop green was told to work. Exit " +
		"status as there."
}

// maxAnswer is in bytes.
const maxAnswer = 64 << 10

func (c *loopAnswer) Run(std stdio) error {
	text := c.Text
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(std.in, maxAnswer+1))
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		text = string(data)
	}
	switch {
	case strings.TrimSpace(wake.Clean(text)) == "":
		return &usageError{"the answer is empty", "vx loop answer --help"}
	case len(text) > maxAnswer:
		return &usageError{fmt.Sprintf("the answer is larger than %d KB", maxAnswer>>10), "put it into a file, and say which"}
	}
	all, bad, err := c.runs()
	if err != nil {
		return err
	}
	for _, b := range bad {
		fmt.Fprintf(std.errw(), "vx: %s\n", printable(b.Error()))
	}
	asked, err := pickAsked(all, c.ID)
	if err != nil {
		return err
	}
	dir, err := state.Open()
	if err != nil {
		return err
	}
	root, err := c.root(dir)
	if err != nil {
		return err
	}
	ctx, stop := withSignals()
	defer stop()
	for _, w := range green.Warnings(ctx, asked.Options()) {
		fmt.Fprintf(std.errw(), "vx: %s\n", printable(w))
	}
	show := newLoopShow(std)
	res, err := green.Answer(ctx, dir.Project(root), *asked, text, os.Args, show)
	return show.end(res, err)
}

// pickAsked is the run whose question is meant.
func pickAsked(all []loop.Found, id string) (*green.Asked, error) {
	open, err := green.Open(all)
	var meant []green.Asked
	var ids []string
	for _, a := range open {
		if a.ID == id {
			return &a, nil
		}
		if strings.HasPrefix(a.ID, id) {
			meant = append(meant, a)
			ids = append(ids, printable(a.ID))
		}
	}
	switch {
	case len(meant) == 1:
		return &meant[0], nil
	case len(meant) > 1:
		return nil, &loop.Unfound{What: "Several runs have asked, specify --run: " + strings.Join(ids, ", "), Fix: "vx loop list"}
	case err != nil:
		return nil, err
	case id != "":
		return nil, &loop.Unfound{What: fmt.Sprintf("Run %s has no open question", printable(id)), Fix: "vx loop list --all"}
	}
	return nil, &loop.Unfound{What: "No run has an open question", Fix: "vx loop list --all"}
}

// loopHere is where a loop that is started here works: its project, the directory, and the working tree that it keeps others from.
func loopHere() (p *state.Project, at, tree string, err error) {
	dir, err := state.Open()
	if err != nil {
		return nil, "", "", err
	}
	root, err := place{}.root(dir)
	if err != nil {
		return nil, "", "", err
	}
	if at, err = os.Getwd(); err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return nil, "", "", err
	}
	resolved, git, err := dir.Resolve(at)
	return dir.Project(root), at, cmp.Or(git, resolved), err
}

// withSignals is a context that a signal ends, which is its cause. A reader that goes away ends no loop: there is the log.
func withSignals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		if sig, ok := (<-got).(syscall.Signal); ok {
			cancel(&loop.Interrupt{Signal: sig})
		}
	}()
	return ctx, func() { cancel(nil) }
}

// loopShow says how far a loop is: in one line that changes on a terminal, in plain lines elsewhere.
type loopShow struct {
	std   stdio
	live  bool
	began time.Time

	mu   sync.Mutex
	now  green.Progress
	done chan struct{}
}

func newLoopShow(std stdio) *loopShow {
	s := &loopShow{std: std, live: isTerminal(std.err), began: time.Now(), done: make(chan struct{})}
	if s.live {
		go s.tick()
	}
	return s
}

func (s *loopShow) tick() {
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-s.done:
			tick.Stop()
			return
		case <-tick.C:
		}
		s.mu.Lock()
		s.draw()
		s.mu.Unlock()
	}
}

// draw is for whoever holds s.mu.
func (s *loopShow) draw() {
	if s.now.Step != "" {
		fmt.Fprintf(s.std.errw(), "\r\x1b[K%s", s.line())
	}
}

func (s *loopShow) line() string {
	l := fmt.Sprintf("pass %d of %d: %s, %s", s.now.Pass, s.now.Max, s.now.Step, age(s.began, time.Now()))
	if s.now.Known || s.now.Spent > 0 {
		l += ", " + cost(s.now.Spent, s.now.Known)
	}
	return l
}

func cost(spent float64, known bool) string {
	if !known {
		return fmt.Sprintf("$%.2f and more", spent)
	}
	return fmt.Sprintf("$%.2f", spent)
}

func (s *loopShow) Begun(run string) { s.Say("run " + run + "; vx loop pause or stop steers it") }

func (s *loopShow) Step(p green.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = p
	if s.live {
		s.draw()
		return
	}
	fmt.Fprintln(s.std.errw(), s.line())
}

func (s *loopShow) Say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		fmt.Fprint(s.std.errw(), "\r\x1b[K")
	}
	fmt.Fprintln(s.std.errw(), printable(line))
}

// end prints how it ended, and is the command's error.
func (s *loopShow) end(res green.Result, err error) error {
	s.mu.Lock()
	close(s.done)
	if s.live {
		fmt.Fprint(s.std.errw(), "\r\x1b[K")
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if res.Reason == loop.Escalated {
		fmt.Fprintf(s.std.out, "%s\n\n", strings.TrimRight(res.Question, "\n"))
	}
	fmt.Fprintln(s.std.out, printable(res.Words))
	words := fmt.Sprintf("%s: %s, %s", printable(res.Run), res.Reason, age(s.began, time.Now()))
	if res.Known || res.Spent > 0 {
		words += ", " + cost(res.Spent, res.Known)
	}
	fmt.Fprintln(s.std.errw(), words)
	switch {
	case res.Hint != "":
		fmt.Fprintf(s.std.errw(), "hint: %s\n", res.Hint)
	case res.Reason == loop.Escalated:
		fmt.Fprintf(s.std.errw(), "hint: vx loop answer --run %s TEXT\n", state.Quote(printable(res.Run)))
	}
	return exitStatus(res.Status)
}
