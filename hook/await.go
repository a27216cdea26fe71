package hook

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"vx/internal/awaiter"
	"vx/internal/pace"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

const (
	// maxWait is below the hour that the hook is registered with: at the hour the client kills it, and a wake that was
	// claimed then would start no turn. Sleep counts, as it does for the client.
	maxWait = 55 * time.Minute
	// tick is the guarantee; the doorbell only makes it instant.
	tick = 5 * time.Second
	// maxMemory is where collecting begins, in bytes; an await that waits has about one megabyte.
	maxMemory = 24 << 20
)

// await is one run of `vx sentinel await`.
type await struct {
	*courier
	clock  func() time.Duration // since boot, sleep included
	awake  func() time.Duration // the same without sleep
	parent int
	began  time.Duration
	// sentinel is Program's; nil where there is none to be seen to.
	sentinel     func(*state.Dir) error
	sentinelLock func(*state.Dir) string
	outlived     func(*state.Dir, *state.Project, awaiter.Record) error // so too

	record  awaiter.Record
	bell    *awaiter.Awaiter
	watch   *watch
	held    int // the client: readable when it has ended; -1: it has to be asked for
	waiting wake.Scanner
	sent    wake.Outstanding
	older   []rival
	looked  time.Time // for others of this client
	signals signals
	orders  *orders   // the client's, where it holds what it is given; else nil
	restAt  time.Time // not before; see rest

	pending  bool      // something may wait that was not claimed yet
	retry    time.Time // after a failure, not before
	settled  time.Time
	failures int               // turns in a row, at the last look; see recovering
	said     map[string]string // the last complaint about each thing
}

// run registers, waits, delivers, and takes the registration back. Its result is the exit status.
func (a *await) run(ctx context.Context) int {
	slim()
	a.began = a.clock()
	a.said = map[string]string{}
	a.restAt = time.Now().Add(tick) // most are woken, or replaced, before it is worth it, or long after
	var err error
	if a.signals, err = catchSignals(); err == nil {
		err = a.queue.Ensure()
	}
	if err == nil {
		err = a.register()
	}
	if err != nil {
		a.log.Error("await", "err", err)
		return 0
	}
	defer a.leave()
	held := -1 // for as long as the process lives
	if h, err := proc.Open(a.client); err == nil {
		held = h.FD()
	}
	if err := a.listen(held); err != nil {
		a.log.Error("await", "err", err)
		return 0
	}
	if a.replaced(true) {
		return 0
	}
	a.stopOrphans()
	a.keepPaces()
	return a.loop(ctx)
}

// listen makes what the loop waits on. client becomes readable when the client has ended; -1: it has to be asked for.
func (a *await) listen(client int) (err error) {
	a.held = client
	w := watched{bell: a.bell.FD(), client: client, signals: a.signals.fd, orders: -1, out: a.out}
	if a.orders != nil {
		w.orders = a.orders.fd
	}
	a.watch, err = newWatch(w)
	return err
}

func (a *await) register() (err error) {
	a.record = awaiter.Record{
		Process: proc.Self(),
		Project: a.project.Root,
		Client:  a.client,
		Session: a.Session,
		Pane:    a.pane,
		Socket:  os.Getenv("HERDR_SOCKET_PATH"),
		Since:   time.Now().UTC(),
		Harness: a.recipient().Harness,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		a.record.Version = info.Main.Version
	}
	a.bell, err = awaiter.Register(a.dir, a.project, a.record)
	return err
}

// leave takes the registration back and rings for the next: what rang here may not have been answered.
func (a *await) leave() {
	if err := a.queue.Unprepare(); err != nil {
		a.log.Warn("unprepare", "err", err)
	}
	if err := a.bell.Close(); err != nil {
		a.log.Warn("unregister", "err", err)
	}
	awaiter.Ring(a.dir, a.project)
}

// slim keeps a process that waits for an hour, one of hundreds maybe, as small and as quiet as Go allows. A collection
// needs more memory than the little that it would free here, so there is none before megabytes have piled up; and the
// runtime need not look every few seconds whether the machine has got more processors.
func slim() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(maxMemory)
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
}

func (a *await) loop(ctx context.Context) int {
	for timeout := time.Duration(0); ; timeout = a.pause() {
		seen, err := a.watch.wait(timeout)
		if err != nil {
			a.log.Error("await", "err", err)
			return 0
		}
		if seen.rung {
			a.bell.Answer()
		}
		if why := a.over(seen); why != "" {
			a.log.Info("await ends", "why", why)
			if why == timeIsUp && a.outlived != nil {
				a.complain("commander", a.outlived(a.dir, a.project, a.record))
			}
			return 0
		}
		switch a.deliver(ctx, seen.rung) {
		case delivered:
			a.count()
			return a.worth()
		case refused:
			return 0
		}
		if a.replaced(seen.rung) {
			return 0
		}
		a.settle(ctx)
		a.complain("prepare", a.queue.Prepare())
		a.rest()
	}
}

// worth is the exit status of a delivery.
func (a *await) worth() int {
	if a.orders != nil {
		return 0
	}
	return 2
}

// over says why the await is to end now, "" if it is not. It is asked at every tick and right before each claim.
func (a *await) over(seen seen) string {
	if why := a.left(seen); why != "" {
		return why
	}
	if a.orders != nil {
		if a.orders.of(""); a.orders.over {
			return "the client closed stdin"
		}
	}
	if a.clock()-a.began >= maxWait {
		return timeIsUp
	}
	return ""
}

const timeIsUp = "time is up"

// left says why nobody is there any more to deliver to, "" if somebody is.
func (a *await) left(seen seen) string {
	switch {
	case seen.hungUp:
		return "the client hung up"
	case seen.ended, a.held < 0 && a.client.Status() == proc.Gone:
		return "the client ended"
	case seen.asked:
		return "a signal"
	case os.Getppid() != a.parent:
		return "the parent ended"
	}
	return ""
}

// deliver claims what waits and hands it over, unless the client is not to have it now: then the bell is passed on.
func (a *await) deliver(ctx context.Context, rung bool) outcome {
	if !a.pending && !a.waiting.Look(a.queue) {
		return nothing
	}
	a.pending = true
	if a.hindered() {
		if rung {
			a.bell.RingAfter()
		}
		return nothing
	}
	d, err := a.queue.Claim(ctx)
	a.complain("queue", err)
	if err != nil {
		a.retry = time.Now().Add(tick)
		return nothing
	}
	a.pending = false
	if d == nil {
		return nothing
	}
	var out outcome
	if a.orders != nil {
		out = a.hand(ctx, d)
	} else {
		out = a.carry(ctx, d, a.watch)
	}
	if out == kept {
		a.pending, a.retry = true, time.Now().Add(tick)
	}
	return out
}

// hindered reports whether a wake that is there is not to be claimed now: a stopped client could not take it while
// another could, and what failed just now fails again.
func (a *await) hindered() bool {
	if time.Now().Before(a.retry) || a.client.Status() == proc.Stopped || muted(a.project, a.log) {
		return true
	}
	p, err := pace.Read(a.project, a.client)
	a.complain("pace", err)
	return p.Rest(a.clock()) > 0 || a.recovering() > 0
}

// muted reports whether wakes are to stay in the queue. A choice that cannot be read does not hold up news.
func muted(p *state.Project, log *slog.Logger) bool {
	c, err := p.Config()
	if err != nil {
		log.Error("project", "err", err)
	}
	return c.Muted(time.Now())
}

// keepPaces forgets clients that are gone, and lets this one off the brake if a person has spoken.
func (a *await) keepPaces() {
	back := proc.ID{}
	if a.prompted() {
		back = a.client
	}
	a.complain("pace", pace.Forget(a.project, back))
}

// count notes a delivery for the brake.
func (a *await) count() {
	if a.client.IsZero() {
		return
	}
	p, err := pace.Read(a.project, a.client)
	if err != nil {
		a.complain("pace", err)
	}
	p.Note(a.clock())
	a.complain("pace", p.Write(a.project))
}

// settle ends at every tick what can be ended of earlier deliveries, and sees that a sentinel runs. What it gives back to
// the queue rings.
func (a *await) settle(ctx context.Context) {
	now := time.Now()
	if now.Sub(a.settled) < tick {
		return
	}
	a.settled = now
	if a.sent.Look(a.queue) {
		a.complain("settle", a.queue.Settle(ctx))
	}
	if a.sentinel != nil {
		a.complain("sentinel", a.sentinel(a.dir))
	}
}

// complain logs an error once, not at every tick. A nil error ends the complaint.
func (a *await) complain(about string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != a.said[about] {
		a.log.Error(about, "err", text)
	}
	a.said[about] = text
}
