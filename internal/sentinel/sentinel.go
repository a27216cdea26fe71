// Package sentinel is the work of the one process a machine that watches for all projects: every five seconds it looks
// after everything that nobody else may be there to look after. It asks each herdr once for all of its agents, looks
// closer where one of them may have finished, has internal/soldier judge, and saves what that says with its wake. And it has
// internal/route bring the wakes that no await asks for.
//
// It decides nothing that it could not decide again: what it knows it reads from the state directory, so a crash at any
// moment leaves nothing but the work of one sweep undone. That only one runs is not its concern, but internal/daemon's.
package sentinel

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"vx/internal/proc"
	"vx/internal/route"
	"vx/internal/state"
	"vx/internal/wake"
)

const (
	interval = 5 * time.Second // from the beginning of one sweep to that of the next
	hurry    = time.Second     // the least between two when something calls for the next
)

// Config is what a sentinel works with.
type Config struct {
	Dir *state.Dir
	Log *slog.Logger
	// News is what a queue asks of its wakes before they are sent; see wake.Queue. Nil: everything is news.
	News func(*state.Dir, *state.Project) func(*wake.Wake) (string, error)
	// Over is asked after each sweep. It says why the sentinel is to end, "" if it is not.
	Over func() string

	// Speed is how much faster than real its time goes, and Before is called at the steps of what it writes into queues, as
	// wake.Queue says. Both are for measurements and for tests that kill it; they are zero else.
	Speed  float64
	Before func(wake.Step) error
}

// queue is a project's queue, for what is written into it.
func (c *Config) queue(p *state.Project) *wake.Queue {
	q := wake.Open(p)
	q.Before = c.Before
	return q
}

// Run sweeps until Over has a reason to end, or ctx ends; in either case it finishes the sweep that it is in. Looks at
// single soldiers that are under way are broken off: nothing was decided by them yet.
func Run(ctx context.Context, c Config) error { return newSentinel(c, cmp.Or(c.Speed, 1)).run(ctx) }

type sentinel struct {
	Config
	time  pace
	calls chan struct{} // for the next sweep, before its time

	house    *House // of the housekeeping, which may wait for locks
	keeping  atomic.Bool
	projects *House // the same projects for the sweeps, which wait for nothing
	router   *route.Router

	sockets map[string]*socket
	clients *clients
	stores  map[string]*project // by the project's directory
	groups  map[string][]*watch // by socket
	round   int

	recorded atomic.Bool // some client keeps a record of itself

	recovered time.Time // when the transitions that a crash left half done were last looked for
	work      sync.WaitGroup
}

func newSentinel(c Config, speed float64) *sentinel {
	s := &sentinel{
		Config: c, time: newPace(speed), house: NewHouse(c.Dir, c.Log), projects: NewHouse(c.Dir, c.Log), calls: make(chan struct{}, 1),
		sockets: map[string]*socket{}, stores: map[string]*project{},
	}
	s.clients = newClients(s.call)
	s.router = route.New(route.Config{Dir: c.Dir, Log: c.Log, News: c.News, Awake: s.time.awake, Before: c.Before})
	s.house.meet = s.router.Remember
	return s
}

func (s *sentinel) run(ctx context.Context) error {
	work, stop := context.WithCancel(ctx)
	defer s.clients.close()
	defer s.work.Wait()
	defer s.router.Wait()
	defer stop()
	next := time.NewTicker(s.time.real(interval))
	defer next.Stop()
	kept := time.Time{}
	for {
		began := time.Now()
		if began.Sub(kept) >= s.time.real(interval)/2 {
			kept = began
			s.keep(ctx)
		}
		s.sweep(work)
		if why := s.Over(); why != "" {
			s.Log.Info("sentinel ends", "why", why)
			return nil
		}
		if !s.wait(ctx, next, began) {
			s.Log.Info("sentinel ends", "why", "a signal")
			return nil
		}
	}
}

// keep has the house kept beside the sweep, unless that still goes on from the last time.
func (s *sentinel) keep(ctx context.Context) {
	if s.keeping.CompareAndSwap(false, true) {
		s.work.Go(func() {
			defer s.keeping.Store(false)
			s.house.Keep(context.WithoutCancel(ctx))
		})
	}
}

// wait waits for the next sweep, which somebody may call for. It is false when ctx has ended.
func (s *sentinel) wait(ctx context.Context, next *time.Ticker, began time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-next.C:
		return true
	case <-s.calls:
	}
	select {
	case <-ctx.Done():
		return false
	case <-next.C:
	case <-time.After(time.Until(began.Add(s.time.real(hurry)))):
	}
	return true
}

// call brings the next sweep forward.
func (s *sentinel) call() {
	select {
	case s.calls <- struct{}{}:
	default:
	}
}

// sweep has every socket looked at, and every session that no herdr shows, and brings wakes where no await asks for them. A socket that still answers the last sweep is
// passed over.
func (s *sentinel) sweep(ctx context.Context) {
	s.round++
	s.recorded.Store(s.clients.some())
	all := s.projects.Projects()
	s.router.Look(ctx, all)
	groups := s.gather(ctx, all)
	for path, group := range groups {
		if path == "" {
			s.sessions(ctx, group)
			continue
		}
		k := s.sockets[path]
		if k == nil {
			k = newSocket(s, path)
			s.sockets[path] = k
		}
		if k.busy.CompareAndSwap(false, true) {
			s.work.Go(func() {
				defer k.busy.Store(false)
				k.sweep(ctx, group)
			})
		}
	}
	for path, k := range s.sockets {
		if groups[path] == nil && !k.busy.Load() {
			delete(s.sockets, path)
		}
	}
}

// pace is the sentinel's time, which goes faster in tests.
type pace struct {
	speed float64
	from  time.Duration
}

func newPace(speed float64) pace { return pace{speed, proc.Awake()} }

// awake is the time that the machine was awake.
func (p pace) awake() time.Duration {
	return p.from + time.Duration(float64(proc.Awake()-p.from)*p.speed)
}

// real is how long d takes.
func (p pace) real(d time.Duration) time.Duration { return time.Duration(float64(d) / p.speed) }

// sleep is false when ctx ended first.
func (p pace) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(p.real(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
