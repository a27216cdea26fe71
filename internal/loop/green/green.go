// Package green is the loop that works until a gate is green: a writer with an empty context works on a task, then a command
// (the gate) says whether the work is done, then a second model (the judge) whether it was done without gaming the gate.
// What one pass has learned stands in a ledger beside the task, for the next. A question that the task leaves to its human
// ends the run: the writer puts it into ESCALATED.md, which is looked for before the gate, and Answer goes on with what
// the human has decided.
//
// The package knows runs (internal/loop), git and the flags of Claude Code. It knows no terminal: Show is told what happens.
//
// Files: LEDGER.md and ESCALATED.md beside the task; in the run's directory green.json (what Answer needs), the prompts,
// answer.md (the run's question is answered), and tree/, the objects that say how the working tree was when it all
// began. A crash leaves a ledger that lacks the entry of the last pass, and an ESCALATED.md that the next run moves aside.
package green

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"vx/internal/loop"
	"vx/internal/state"
	"vx/internal/wake"
)

// Kind is what run.json calls these runs.
const Kind = "green"

// None is the judge that is none.
const None = "none"

// Options are what a run is to do.
type Options struct {
	Task          string        `json:"task"` // a file, absolute
	Gate          string        `json:"gate"`
	Max           int           `json:"max"`  // passes
	Dir           string        `json:"dir"`  // where writer, gate and judge run
	Tree          string        `json:"tree"` // the working tree that they work on, resolved
	Writer        string        `json:"writer,omitempty"`
	Judge         string        `json:"judge,omitempty"`
	JudgeRequired bool          `json:"judge_required,omitempty"`
	WriterTimeout time.Duration `json:"writer_timeout_ns"` // 0: none
	GateTimeout   time.Duration `json:"gate_timeout_ns"`   // 0: none
	MaxTime       time.Duration `json:"max_time_ns,omitempty"`
	Budget        float64       `json:"budget_usd,omitempty"`
	BudgetUnknown bool          `json:"budget_unknown,omitempty"`
}

// Show is told what happens, from one goroutine.
type Show interface {
	// Begun is called when the run has its directory.
	Begun(run string)
	// Step is called when something begins: "writer", "gate", "judge".
	Step(Progress)
	// Say is a line that stays.
	Say(line string)
}

// Progress is how far a run has come.
type Progress struct {
	Pass, Max int
	Step      string
	Spent     float64 // USD
	Known     bool    // that this is all of it
}

// Result is how a run has ended.
type Result struct {
	Run    string
	Reason loop.Reason
	Status int // the exit status
	Pass   int // the last one that began
	Spent  float64
	Known  bool
	Words  string // why, in one line
	Hint   string // what mends it, "" where nothing does
	// Question is the text of the escalation file, cleaned.
	Question string
}

var errTime = errors.New("the time is up")

// exitNoCost is the exit status when --budget can do nothing, because the writer does not say what it costs.
const exitNoCost = 2

// looper is a run in progress.
type looper struct {
	kept
	run   *loop.Run
	show  Show
	text  string // of the task, as it was when the run began
	carry string // what the next writer is told
	pass  int
	step  string
	costs bool // a writer has said what it costs
	lost  bool // what some writer or judge has cost is not known
}

// Run works until the gate is green, or one of the other ends. The error is what went wrong with the run itself; it has
// ended then too, as Failed. Errors before it began are *loop.Busy and those of the file system.
func Run(ctx context.Context, p *state.Project, o Options, command []string, show Show) (Result, error) {
	return start(ctx, p, kept{Options: o}, command, show, nil)
}

// start makes the run, and goes on with an answer where there is one.
func start(ctx context.Context, p *state.Project, k kept, command []string, show Show, a *answer) (res Result, err error) {
	text, err := readTask(k.Task)
	if err != nil {
		return Result{Status: 1}, err
	}
	run, err := loop.Create(p, loop.Plan{
		Kind: Kind, Title: title(k.Options, text), Command: command, Tree: k.Tree,
		Limits: loop.Limits{
			Iterations: k.Max, WorkerSeconds: k.WriterTimeout.Seconds(), GateSeconds: k.GateTimeout.Seconds(),
			Seconds: k.MaxTime.Seconds(), USD: k.Budget,
		},
	})
	if err != nil {
		return Result{Status: 1}, err
	}
	l := &looper{kept: k, run: run, show: show, text: text, pass: k.Passes, costs: k.Spent > 0}
	defer run.Finish(loop.Failed, "") // where nothing else has ended it: a panic, an error
	run.Say = show.Say
	show.Begun(run.ID)
	if k.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, k.MaxTime, errTime)
		defer cancel()
	}
	res, err = l.all(ctx, a)
	res.Run, res.Pass, res.Spent, res.Known = run.ID, l.pass, l.Spent, l.costs && !l.lost
	if err != nil {
		res.Reason, res.Status = loop.Failed, loop.Failed.Status(0)
		err = errors.Join(err, run.Finish(loop.Failed, err.Error()))
	}
	return res, err
}

// all is the run from its first word to its end.
func (l *looper) all(ctx context.Context, a *answer) (Result, error) {
	if a != nil {
		// The tree is this run's now, so nobody else answers at the same time.
		if err := a.wanted(); err != nil {
			return Result{}, err
		}
	}
	aside, err := l.putAside(time.Now())
	if err != nil {
		return Result{}, err
	}
	if aside != "" && a == nil {
		l.show.Say("a question of an earlier run was never answered; it is kept as " + aside)
	}
	if err := l.append(fmt.Sprintf("\n--- run %s, %s, max %d ---\n", l.run.ID, time.Now().UTC().Format(time.RFC3339), l.Max)); err != nil {
		return Result{}, err
	}
	if a != nil {
		if err := l.take(a); err != nil {
			return Result{}, err
		}
	}
	if err := l.remember(ctx); err != nil && ctx.Err() == nil {
		l.show.Say("the judge will not see what changes: " + err.Error())
	}
	if err := l.save(l.run.Dir); err != nil {
		return Result{}, err
	}
	for {
		l.step = "between two passes"
		if err := l.run.Check(ctx); err != nil {
			return l.cut(ctx, err)
		}
		res, err := l.once(ctx)
		if err != nil || res.Reason != "" {
			return res, err
		}
		if res := l.spent(); res.Reason != "" {
			return l.finish(res)
		}
		if l.pass >= l.Max {
			return l.finish(Result{Reason: loop.MaxIterations, Words: "not verified after " + passesOf(l.pass)})
		}
	}
}

// once is one pass. It returns no reason where another one may follow.
func (l *looper) once(ctx context.Context) (Result, error) {
	l.pass++
	l.Passes = l.pass
	if err := errors.Join(l.run.Begin(l.pass, loop.Field{Key: "task", Value: filepath.Base(l.Task)}), l.save(l.run.Dir)); err != nil {
		return Result{}, err
	}
	log, err := l.run.IterLog(l.pass)
	if err != nil {
		return Result{}, err
	}
	defer log.Close()
	l.begin("writer")
	ended, err := l.write(ctx, log)
	if err != nil {
		return Result{}, err
	}
	if err := errors.Join(l.run.Note(loop.Field{Key: "claude_rc", Value: fmt.Sprint(ended.status)}, loop.Field{Key: "cost_usd", Value: fmt.Sprintf("%.4f", l.Spent)}), l.save(l.run.Dir)); err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		return l.cut(ctx, ctx.Err())
	}
	// Before the gate: a green one must not step over an open question.
	question, asks, err := l.question()
	if err != nil {
		return Result{}, err
	}
	if asks {
		return l.escalate(question, ended)
	}
	if ended.refused { // and would in each pass
		words := fmt.Sprintf("pass %d: the writer, Claude Code, refuses to skip permissions for root", l.pass)
		if err := l.append(fmt.Sprintf("\n(%s)\n", words)); err != nil {
			return Result{}, err
		}
		return l.finish(Result{Reason: loop.Failed, Words: words,
			Hint: "run it as another user; or, in a container or VM that you don't mind losing, with IS_SANDBOX=1 in the environment"})
	}
	l.step = "after the writer"
	if err := l.run.Check(ctx); err != nil {
		return l.cut(ctx, err)
	}
	if l.Budget > 0 && !l.costs && !l.BudgetUnknown && ended.late == 0 {
		res, err := l.finish(Result{Reason: loop.Failed, Words: "the writer does not say what it costs: --budget can stop nothing"})
		res.Status = exitNoCost
		return res, err
	}
	l.begin("gate")
	gate, err := l.tryGate(ctx, log)
	if err != nil {
		return Result{}, err
	}
	if ctx.Err() != nil {
		return l.cut(ctx, ctx.Err())
	}
	if gate.status != 0 {
		return Result{}, l.red(gate, ended)
	}
	if err := l.run.Note(loop.Field{Key: "gate", Value: "green"}); err != nil {
		return Result{}, err
	}
	return l.green(ctx, log, ended)
}

func (l *looper) begin(step string) {
	l.step = "while the " + step + " worked"
	l.show.Step(Progress{l.pass, l.Max, step, l.Spent, l.costs && !l.lost})
}

// red records a gate that says no, for the ledger and the next writer.
func (l *looper) red(gate, writer ended) error {
	// That it ended with another status than 0 is what red means.
	words := ""
	if why := gate.trouble(); why != "" && (gate.late > 0 || gate.signal != 0 || gate.start != nil) {
		words = "(the gate " + wake.Clean(why) + ")\n\n"
	}
	words += fence(strings.Trim(gate.excerpt, "\n"))
	l.carry = "The gate is red. The telling part of its output:\n\n" + words + "\nDiagnose this, and go on from the current tree.\n"
	l.show.Say(fmt.Sprintf("pass %d: gate red", l.pass))
	return errors.Join(
		l.run.Note(loop.Field{Key: "gate", Value: "red"}),
		l.append(fmt.Sprintf("\n## iter %d · gate RED\n\n%s%s", l.pass, writer.line(), words)),
	)
}

// green asks the judge.
func (l *looper) green(ctx context.Context, log *os.File, writer ended) (Result, error) {
	words, passes, silent := "no judge was asked", true, false
	if l.Judge != None {
		l.begin("judge")
		said, err := l.ask(ctx, log)
		if err != nil {
			return Result{}, err
		}
		if ctx.Err() != nil {
			return l.cut(ctx, ctx.Err())
		}
		words, passes = strings.TrimSpace(said), verdict(said)
		if silent = words == ""; silent {
			words, passes = "the judge gave no answer", !l.JudgeRequired
			if passes {
				l.show.Say("warning: the judge gave no answer; the gate alone decides")
			}
		}
	}
	said := map[bool]string{true: "pass", false: "reject"}[passes]
	entry := fmt.Sprintf("\n## iter %d · gate GREEN\n\n%s%s", l.pass, writer.line(), quote(cut(words, maxWords)))
	if err := errors.Join(l.run.Note(loop.Field{Key: "verdict", Value: said}), l.append(entry)); err != nil {
		return Result{}, err
	}
	switch {
	case passes:
		return l.finish(Result{Reason: loop.Done, Words: fmt.Sprintf("verified after %s", passesOf(l.pass))})
	case silent:
		return l.finish(Result{Reason: loop.Failed, Words: "the gate is green, but the judge gave no answer, and --judge-required wants one"})
	}
	l.carry = "The gate is green, but a judge has rejected the change:\n\n" + quote(cut(words, maxWords)) + "\nDiagnose this, and go on from the current tree.\n"
	l.show.Say(fmt.Sprintf("pass %d: gate green, rejected: %s", l.pass, firstLine(words)))
	return Result{}, nil
}

// escalate ends the run with the writer's question. The file stays until it is answered, or another run begins.
func (l *looper) escalate(question string, writer ended) (Result, error) {
	if err := l.append(fmt.Sprintf("\n## iter %d · ESCALATED\n\n%s%s\n", l.pass, writer.line(), strings.TrimSpace(question))); err != nil {
		return Result{}, err
	}
	words := fmt.Sprintf("pass %d: the loop has stopped with a question. Your call: %s", l.pass, l.escalation())
	return l.finish(Result{Reason: loop.Escalated, Words: words, Question: question})
}

// spent says that the budget is used up, or may be.
func (l *looper) spent() Result {
	switch {
	case l.Budget <= 0:
	case l.Spent >= l.Budget:
		return Result{Reason: loop.Budget, Words: fmt.Sprintf("$%.2f of $%.2f are spent", l.Spent, l.Budget)}
	case l.lost && !l.BudgetUnknown:
		return Result{Reason: loop.Budget, Words: fmt.Sprintf("what pass %d has cost is not known, so it may be more than $%.2f", l.pass, l.Budget)}
	}
	return Result{}
}

// cut is the end that comes between: STOP, a signal, the time. Other errors are passed on.
func (l *looper) cut(ctx context.Context, err error) (Result, error) {
	where := fmt.Sprintf("pass %d, %s", l.pass, l.step)
	if errors.Is(err, loop.ErrStopped) {
		res := Result{Reason: loop.Stopped, Words: "stopped: " + where}
		return res, l.append(fmt.Sprintf("\n(%s)\n", res.Words))
	}
	if ctx.Err() == nil {
		return Result{}, err
	}
	res := Result{Reason: loop.Failed, Words: "ended: " + where}
	sig := loop.SignalOf(ctx)
	if sig != 0 {
		res.Reason, res.Words = loop.Interrupted, fmt.Sprintf("interrupted by a signal (%v): %s", sig, where)
	} else if errors.Is(context.Cause(ctx), errTime) {
		res.Reason, res.Words = loop.Budget, fmt.Sprintf("the time of %v is up: %s", l.MaxTime, where)
	}
	if _, asks, err := l.question(); err == nil && asks {
		res.Words += "; it leaves a question in " + l.escalation()
	}
	err = l.append(fmt.Sprintf("\n(%s)\n", res.Words))
	res, end := l.finish(res)
	res.Status = res.Reason.Status(sig)
	return res, errors.Join(err, end)
}

// finish ends the run. Whoever called Run has the words.
func (l *looper) finish(res Result) (Result, error) {
	l.run.Say = nil
	res.Status = res.Reason.Status(0)
	return res, l.run.Finish(res.Reason, res.Words)
}

func passesOf(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

// title is what a list calls the run: the task's heading, or its name.
func title(o Options, text string) string {
	for l := range strings.Lines(text) {
		if head, ok := strings.CutPrefix(l, "#"); ok {
			if head = strings.TrimSpace(strings.TrimLeft(head, "#")); head != "" {
				return wake.Clean(head)
			}
		}
	}
	return filepath.Base(o.Task)
}

// skipsPermissions says that the writer asks nobody before it does what it wants.
func (o *Options) skipsPermissions() bool {
	return o.Writer == "" || strings.Contains(o.Writer, "--dangerously-skip-permissions")
}

var heading = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?mi)^#{1,6}[ \t].*escalat`) })

// Warnings are what a user should know before a run begins.
func Warnings(ctx context.Context, o Options) []string {
	var all []string
	if o.skipsPermissions() {
		all = append(all, "danger: the writer asks nobody for permission and can do whatever you can; use a container or a VM that you don't mind losing")
	}
	if text, err := readTask(o.Task); err == nil && !heading().MatchString(text) {
		all = append(all, `the task has no heading like "Escalate to the human": the writer will guess where it should ask`)
	}
	if at := filepath.Dir(o.Task); !ignored(ctx, at) {
		all = append(all, fmt.Sprintf("%s is not ignored by git: ledger and questions may get into a commit", at))
	}
	return all
}
