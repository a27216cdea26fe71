// Package route brings wakes to commanders that no await serves: over HTTP to an OpenCode that listens, and, where nothing
// else helps and its user allows it, by typing into the herdr pane of one that is idle. It is the sentinel's; what wakes
// are about, it does not know.
//
// A wake goes one way at a time. It is claimed like by an await, once the commander was seen to be there, and noted as sent
// before it goes. What was refused goes back; what may have arrived does not, unless the session itself shows that it has
// not. So a crash puts nothing back that was on its way already: what became of it the session is asked by the next
// sentinel, and where nothing can tell, the queue keeps it aside and names it.
package route

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/opencode"
	"vx/internal/pace"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

const (
	// patience is how long a wake waits for a better way before it is typed into a pane, and how long an OpenCode may hold
	// one unacknowledged until it counts as not there. The machine's sleep does not count.
	patience = 30 * time.Second
	// Between two attempts that fail: doubled from the first to the last.
	firstPause = 5 * time.Second
	lastPause  = 30 * time.Second
)

// Config is what a Router works with.
type Config struct {
	Dir *state.Dir
	Log *slog.Logger
	// News is what a queue asks of its wakes; see wake.Queue. Nil: everything is news.
	News func(*state.Dir, *state.Project) func(*wake.Wake) (string, error)
	// Awake is the time that the machine was awake; in tests it goes faster. Nil: proc.Awake.
	Awake func() time.Duration
	// Before is called at the steps of a delivery, in tests that kill it.
	Before func(wake.Step) error
}

// Router looks after the wakes of all projects. It remembers what it saw, so that a look at a project in which nothing
// waits costs two stats.
type Router struct {
	Config
	work     sync.WaitGroup
	projects map[string]*project // by their directories
	round    int

	awaits []awaiter.Entry  // at the last call of Remember, which alone knows these
	met    map[proc.ID]bool // by the await's process; false where herdr has not told its terminal yet
	again  time.Duration    // when it is asked once more; 0: not
}

// project is what is known of one.
type project struct {
	*state.Project
	queue *wake.Queue
	busy  atomic.Bool // somebody sees to it, who alone knows the rest
	scan  wake.Scanner
	waits bool // something, at the last look
	round int

	since   time.Duration // since when something waits and nobody has an await; 0: that is not so
	failing time.Duration // since when OpenCode cannot be told; 0: it can, or was not tried
	odd     bool          // its last answer was neither yes nor no
	next    time.Duration // no attempt before
	tries   int           // that failed, one after the other
	doubts  []*doubt
	said    map[string]string // the last complaint about each thing
}

// New is a router that has not looked at anything yet.
func New(c Config) *Router {
	if c.Awake == nil {
		c.Awake = proc.Awake
	}
	return &Router{Config: c, projects: map[string]*project{}}
}

// Look sees to every project in which something waits. What takes time goes on beside the caller; Wait waits for it.
func (r *Router) Look(ctx context.Context, projects []*state.Project) {
	r.round++
	for _, at := range projects {
		p := r.projects[at.Dir]
		if p == nil {
			p = r.begin(at)
			r.projects[at.Dir] = p
		}
		p.round = r.round
		if !p.busy.CompareAndSwap(false, true) {
			continue
		}
		if !p.look() {
			p.busy.Store(false)
			continue
		}
		r.work.Go(func() {
			defer p.busy.Store(false)
			r.see(ctx, p)
		})
	}
	for dir, p := range r.projects {
		if p.round != r.round {
			delete(r.projects, dir)
		}
	}
}

// Wait waits until no delivery is under way.
func (r *Router) Wait() { r.work.Wait() }

// begin takes over what another sentinel left when it died.
func (r *Router) begin(at *state.Project) *project {
	p := &project{Project: at, queue: wake.Open(at), said: map[string]string{}}
	p.queue.Before = r.Before
	if r.News != nil {
		p.queue.News = r.News(r.Dir, at)
	}
	orphans, err := p.queue.Orphans("opencode")
	for _, d := range orphans {
		p.doubts = append(p.doubts, &doubt{delivery: d, since: r.Awake()})
	}
	r.complain(p, "orphans", err)
	return p
}

// look reports whether there is anything to see to.
func (p *project) look() bool {
	if p.scan.Look(p.queue) {
		n, err := p.queue.Count()
		if p.waits = n > 0; err != nil {
			p.scan = wake.Scanner{}
		}
	}
	if !p.waits {
		p.since, p.next = 0, 0
		if len(p.doubts) == 0 {
			p.calm()
		}
	}
	return p.waits || len(p.doubts) > 0
}

// calm forgets what stood in the way.
func (p *project) calm() { p.since, p.failing, p.odd, p.next, p.tries = 0, 0, false, 0, 0 }

// see tries the ways in their order. A commander that waits is served by its await.
func (r *Router) see(ctx context.Context, p *project) {
	live, err := commander.Live(r.Dir, p.Project)
	awaited, badAwaits := r.awaited(p.Project)
	choices, badChoices := p.Config()
	r.complain(p, "who is there", errors.Join(err, badAwaits, badChoices))
	r.clear(ctx, p, live)
	switch {
	case badChoices != nil, !p.waits:
		return
	case awaited, choices.Muted(time.Now()):
		p.calm()
		return
	}
	now := r.Awake()
	if p.since == 0 {
		p.since = now
	}
	if now < p.next {
		return
	}
	switch r.serve(ctx, p, live, choices.Nudge) {
	case told:
		p.calm()
	case failed:
		p.next = r.Awake() + min(firstPause<<min(p.tries, 10), lastPause)
		p.tries++
	}
	r.clear(ctx, p, live)
}

// outcome is what came of one look at what waits.
type outcome int

const (
	later  outcome = iota // nobody is to be told now, and nothing is wrong
	failed                // somebody was to be told, and was not
	told                  // or nothing waits any more: others were faster
)

// serve delivers what waits to the first commander that takes it, the latest first.
func (r *Router) serve(ctx context.Context, p *project, live []commander.Entry, nudges bool) outcome {
	live = slices.DeleteFunc(slices.Clone(live), func(e commander.Entry) bool {
		return r.braked(p, e) || e.Process.Status() == proc.Stopped
	})
	slices.Reverse(live)
	out := later
	for _, e := range live {
		if !e.Listens() {
			continue
		}
		// What is posted to one who answers oddly is in doubt for a while, and not there to be typed.
		if p.odd {
			out = max(out, r.tryNudge(ctx, p, e, nudges))
		}
		if out != told {
			out = max(out, r.tryHTTP(ctx, p, e))
		}
		if out == told {
			return out
		}
	}
	for _, e := range live {
		if out = max(out, r.tryNudge(ctx, p, e, nudges)); out == told {
			break
		}
	}
	return out
}

func (r *Router) tryHTTP(ctx context.Context, p *project, e commander.Entry) outcome {
	err := errDoubt
	if !p.doubtful(e, r.Awake()) {
		err = r.overHTTP(ctx, p, e)
		p.odd = errors.Is(err, opencode.ErrAnswered)
	}
	out := r.judge(p, e, err)
	if out == failed && p.failing == 0 {
		p.failing = r.Awake()
	}
	return out
}

func (r *Router) tryNudge(ctx context.Context, p *project, e commander.Entry, nudges bool) outcome {
	if !e.Typable() || !r.due(p, e, nudges) {
		return later
	}
	return r.judge(p, e, r.nudge(ctx, p, e))
}

// due reports whether it is time to type. For an OpenCode that cannot be told, and was tried, its user has not to be asked:
// the text is what its session would have shown.
func (r *Router) due(p *project, e commander.Entry, nudges bool) bool {
	if e.Listens() {
		return r.Awake()-p.failing >= patience
	}
	return nudges && r.Awake()-p.since >= patience
}

var (
	// errLater says that a commander is not to be told now, and that nothing is wrong.
	errLater = errors.New("not now")
	// errNone says that there was nothing to tell: others were faster.
	errNone = errors.New("nothing waits")
	// errDoubt says that it is not known yet what became of the last that a commander was sent.
	errDoubt = errors.New("what was sent before may not have arrived")
)

// judge takes down what came of a way.
func (r *Router) judge(p *project, e commander.Entry, err error) outcome {
	switch {
	case err == nil:
		r.count(p, e)
		return told
	case errors.Is(err, errNone):
		return told
	case errors.Is(err, errLater):
		return later
	case !errors.Is(err, errDoubt):
		r.complain(p, fmt.Sprintf("%s of process %d", e.Harness, e.Process.PID), err)
	}
	return failed
}

// braked reports whether a commander is not to be woken yet, because its turns wake each other.
func (r *Router) braked(p *project, e commander.Entry) bool {
	c, err := pace.Read(p.Project, e.Process)
	r.complain(p, "pace", err)
	return c.Rest(proc.SinceBoot()) > 0
}

// count notes a delivery for the brake.
func (r *Router) count(p *project, e commander.Entry) {
	c, err := pace.Read(p.Project, e.Process)
	if err == nil {
		c.Note(proc.SinceBoot())
		err = c.Write(p.Project)
	}
	r.complain(p, "pace", err)
}

// claim takes what waits, noted to be on its way to a commander.
func (r *Router) claim(ctx context.Context, p *project, to wake.Recipient) (*wake.Delivery, error) {
	d, err := p.queue.Claim(ctx)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errNone
	}
	if err := d.Note(to); err != nil {
		return nil, errors.Join(err, release(ctx, d, "it could not be noted whom they go to"))
	}
	if err := d.Sending(); err != nil {
		return nil, errors.Join(err, release(ctx, d, "they could not be noted as sent"))
	}
	return d, nil
}

// release puts back what provably did not arrive. What cannot be put back is left to the queue's own rules.
func release(ctx context.Context, d *wake.Delivery, why string) error {
	err := d.Release(context.WithoutCancel(ctx), why)
	return errors.Join(err, leave(d))
}

// leave gives a delivery up, if it is not over: from now on it is judged by the queue's own rules.
func leave(d *wake.Delivery) error {
	if err := d.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// awaited reports whether somebody waits. An OpenCode that holds a wake and does not acknowledge it is not there.
func (r *Router) awaited(p *state.Project) (bool, error) {
	live, err := awaiter.List(r.Dir, p)
	for _, e := range live {
		since, holds := e.Holding()
		if !holds || e.Harness != "opencode" || time.Since(since) < patience {
			return true, nil
		}
	}
	return false, err
}

// complain logs an error once, not at every sweep. That the sentinel ends is none.
func (r *Router) complain(p *project, about string, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if text := err.Error(); text != p.said[about] {
		p.said[about] = text
		r.Log.Warn("wakes that nobody asks for", "project", p.Root, "about", about, "err", text)
	}
}
