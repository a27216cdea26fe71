// Package hook is what runs inside a harness's Stop hook, `vx sentinel await` and `vx sentinel drain`: it decides
// whether there is anything to wait for, waits, and hands wakes over. It knows how Claude Code treats a hook; of wakes
// it knows only how to claim and print them.
//
// The exit status is money: 2 starts a turn of the model and is shown what stands on stderr. So 2 is for a wake that
// was claimed and printed whole, and for nothing else; all other trouble ends with 0, one line in a log file, and
// nothing on stderr. A crash at any moment leaves the wakes to the queue, which gives them to the next await, and a
// registration that disappears by itself.
package hook

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// Program is one run of the hook. The zero value is what Main runs; the fields are for tests.
type Program struct {
	// Before is called at each step of a delivery, the queue's own included; see wake.Queue.
	Before func(wake.Step) error
	// Clock is the time since boot, sleep included.
	Clock func() time.Duration
	// Awake is the time since boot, sleep not included; needed by Hold alone.
	Awake func() time.Duration
	// News makes what says of the project's wakes whether they are news still; see wake.Queue. Nil: all are.
	News func(*state.Dir, *state.Project) func(*wake.Wake) (string, error)
	// Soldier reports whether a herdr pane is that of a soldier, whose turns' ends are not a commander's. Nil: none is.
	Soldier func(p *state.Project, pane, socket string) bool
	// Watched is the same of a client's process, for one in no pane.
	Watched func(p *state.Project, client proc.ID) bool
	// Sentinel sees to it that a sentinel runs. It is asked at the start and at every tick, by hundreds at once.
	Sentinel func(*state.Dir) error
	// SentinelLock is the file that a sentinel keeps locked as long as it runs. An await that can go by that asks
	// Sentinel only when nobody holds it.
	SentinelLock func(*state.Dir) string
	// Outlived is told of an await whose time is up while its client lives on, so that the client stays known to the
	// project as one that nobody serves. Nil: it is not.
	Outlived func(*state.Dir, *state.Project, awaiter.Record) error
}

// Main runs `vx sentinel await` or `vx sentinel drain` and returns the exit status. It is called before the program
// does or builds anything else.
func Main(mode string) int { return Program{Clock: proc.SinceBoot}.Main(mode) }

// Main is the hook with the program's parts.
func (p Program) Main(mode string) (status int) {
	parent := os.Getppid()
	if os.Getenv("VX_HOOK") == "0" || !heard(2) {
		return 0
	}
	log := newLog(mode)
	out, err := shield()
	if err != nil {
		log.Error("streams", "err", err)
		return 0
	}
	end := ending{mode: mode}
	defer end.recover(&status)
	c := p.gate(log)
	if c == nil {
		return 0
	}
	crashLog()
	k := p.courier(c, log, &end)
	k.client, k.out = clientOf(c), out
	if p.Watched != nil && p.Watched(c.project, k.client) {
		return 0 // news of its own end would wake it, and so without an end
	}
	if mode == "drain" {
		k.drain(context.Background())
		return 0
	}
	return p.await(k, parent).run(context.Background())
}

// await has everything but what it begins to wait with.
func (p Program) await(k *courier, parent int) *await {
	return &await{courier: k, clock: p.Clock, awake: p.Awake, parent: parent, sentinel: p.Sentinel, sentinelLock: p.SentinelLock, outlived: p.Outlived}
}

// courier has everything but whom to carry to.
func (p Program) courier(c *call, log *slog.Logger, end *ending) *courier {
	k := &courier{call: c, queue: wake.Open(c.project), before: p.Before, printed: &end.printed, log: log}
	k.queue.Before = p.Before
	if p.News != nil {
		k.queue.News = p.News(c.dir, c.project)
	}
	return k
}

func newLog(mode string) *slog.Logger {
	return slog.New(slog.NewTextHandler(logFile{}, nil)).With("pid", os.Getpid(), "mode", mode)
}

// ending is what the exit status is made of when the hook panics.
type ending struct {
	mode    string
	printed bool
}

// recover is for defer: no panic ends with 2 unless the text is out.
func (e *ending) recover(status *int) {
	r := recover()
	if r == nil {
		return
	}
	newLog(e.mode).Error("panic", "value", fmt.Sprint(r), "stack", string(debug.Stack()))
	if *status = 0; e.printed && e.mode == "await" {
		*status = 2
	}
}
