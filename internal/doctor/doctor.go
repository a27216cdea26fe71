// Package doctor looks at everything that has to be right for a wake to reach an idle session, and says in a line each
// what is not, with what mends it.
//
// It repairs nothing. It writes nothing that belongs to the user, the state directory included: what must be tried in
// practice (locks, FIFOs, renames) is tried in a temporary directory if that is on the same file system; else only what
// can be told without writing is told, and the rest is left to the probe, which is asked for by name and works in a
// directory of its own that it removes. The only processes that it ends are those that it started. A crash leaves a
// temporary directory, and nothing else.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"strings"
	"time"

	"vx/install"
	"vx/internal/state"
	"vx/internal/wake"
)

// Level is how serious a result is.
type Level string

// The levels. Only a failure makes the program's exit status 1: vx cannot be used as things are, or a check broke down.
const (
	OK   Level = "ok"
	Info Level = "info" // worth knowing, or could not be found out
	Warn Level = "warn"
	Fail Level = "fail"
)

// Result is one finding.
type Result struct {
	Name    string `json:"name"` // of the check
	Level   Level  `json:"level"`
	Message string `json:"message"`
	Fix     string `json:"fix"` // a command, or a sentence; "" where nothing is to be done
}

// Check is one thing that is looked at. It has no result where there is nothing to look at.
type Check struct {
	Name string
	Run  func(context.Context, *Patient) []Result
}

// Checks are all checks, in the order in which they are printed: from the hook that starts everything to the wakes.
var Checks = []Check{
	{"sentinel Stop hook", registered},
	{"sentinel Stop hook finds vx", findsVX},
	{"sentinel hook after a failed turn", afterFailure},
	{"Pi extension", extended(install.Pi)},
	{"OpenCode plugin", extended(install.OpenCode)},
	{"settings files", readable},
	{"hooks", enabled},
	{"project folder", trusted},
	{"Claude Code", client},
	{"state directory", directory},
	{"locks, FIFOs and renames", primitives},
	{"await", awaits},
	{"commanders", commanders},
	{"commanders share one wake queue", shared},
	{"sentinel", sentinel},
	{"herdr", herdrs},
	{"tasks", tasks},
	{"camps", camps},
	{"deliveries", deliveries},
	{"quarantined wakes", quarantined},
	{"brake", brakes},
	{"mute", muted},
	{"projects", projects},
	{"hook log", hookLog},
}

// Probes are what is done beyond that where it is asked for: they write, each in a directory of its own.
var Probes = []Check{
	{"probe of the state directory", probeDirectory},
	{"probe", probe},
}

// Patient is what is looked at: this machine, as the user's shell has it, and one project.
type Patient struct {
	Root     string         // the project's resolved root; "" outside of any
	State    *state.Dir     // nil where there is none, or it is not to be used
	Project  *state.Project // nil likewise, or where there is no project
	StateErr error          // why the state directory is not to be used
	Now      time.Time
	Version  string // of the program that looks; "" where that is not known

	files   []file
	fileErr error // why the settings files cannot be named
}

// Meet looks at what the checks share. Root is a project's resolved root, or "".
func Meet(root string) *Patient {
	p := &Patient{Root: root, Now: time.Now()}
	p.State, p.StateErr = state.Look()
	if errors.Is(p.StateErr, fs.ErrNotExist) {
		p.StateErr = nil
	}
	if p.StateErr != nil {
		p.State = nil
	}
	if p.State != nil && root != "" {
		p.Project = p.State.Project(root)
	}
	files, err := install.Files(root)
	p.fileErr = err
	for _, f := range files {
		p.files = append(p.files, inspect(f))
	}
	return p
}

// Examine runs checks, one after the other. A check that panics is a failure, and does not keep the others from running.
func Examine(ctx context.Context, p *Patient, checks []Check) []Result {
	all := []Result{}
	for _, c := range checks {
		for _, r := range c.run(ctx, p) {
			r.Name = c.Name
			r.Message, r.Fix = oneLine(r.Message), oneLine(r.Fix)
			all = append(all, r)
		}
	}
	return all
}

func (c Check) run(ctx context.Context, p *Patient) (rs []Result) {
	defer func() {
		if r := recover(); r != nil {
			rs = failure("please report this", "the check broke down: %v: %s", r, debug.Stack())
		}
	}()
	return c.Run(ctx, p)
}

// Failed reports whether a check failed outright.
func Failed(all []Result) bool {
	for _, r := range all {
		if r.Level == Fail {
			return true
		}
	}
	return false
}

// Print prints one line a result, the fix in it.
func Print(w io.Writer, all []Result) error {
	for _, r := range all {
		line := fmt.Sprintf("[%s] %s - %s", r.Level, r.Name, r.Message)
		if r.Fix != "" {
			line += ": " + r.Fix
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func ok(format string, args ...any) []Result {
	return []Result{{Level: OK, Message: fmt.Sprintf(format, args...)}}
}

func info(format string, args ...any) []Result {
	return []Result{{Level: Info, Message: fmt.Sprintf(format, args...)}}
}

func warning(fix, format string, args ...any) []Result {
	return []Result{{Level: Warn, Message: fmt.Sprintf(format, args...), Fix: fix}}
}

func failure(fix, format string, args ...any) []Result {
	return []Result{{Level: Fail, Message: fmt.Sprintf(format, args...), Fix: fix}}
}

// oneLine is text of unknown origin as one line that is safe to print. Paths and commands are in it that are to be copied.
func oneLine(s string) string { return strings.Join(strings.Fields(wake.Clean(s)), " ") }

// clock is a moment for a person, to the minute, with the day unless it is today.
func (p *Patient) clock(t time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == p.Now.Local().Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// several is a number of things: "1 wake", "2 wakes".
func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
