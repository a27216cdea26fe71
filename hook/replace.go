package hook

import (
	"errors"
	"slices"
	"time"

	"vx/internal/awaiter"
	"vx/internal/proc"
)

const (
	patience = 2 * time.Second        // for an older await to leave by itself
	hurry    = 200 * time.Millisecond // between two looks whether it has
	sample   = 8                      // awaits that are looked at for orphans
)

// rival is an older await for the same client. It was told to leave.
type rival struct {
	awaiter.Entry
	told    time.Time
	stopped bool // SIGTERM was sent: once is enough
	gone    bool
}

// replaced sees to it that of the awaits for one client the youngest alone stays, and reports whether that is another
// one. Age is a pure function of the records, and everyone registers before looking, so of any number that start at the
// same instant all but one come to the same answer: of any two the second to look sees the first. A younger one that
// comes later rings; the look without a ring is for a bell that was lost.
func (a *await) replaced(rung bool) bool {
	if now := time.Now(); rung || now.Sub(a.looked) >= time.Minute {
		a.looked = now
		if a.meet() {
			return true
		}
	}
	for i := range a.older {
		a.urge(&a.older[i])
	}
	a.older = slices.DeleteFunc(a.older, func(r rival) bool { return r.gone })
	return false
}

// meet tells the older ones among those that came to leave, and reports whether this one is to: a younger one has come,
// or somebody took the registry away, and the state directory perhaps with it.
func (a *await) meet() bool {
	fresh, err := a.bell.Newcomers()
	if errors.Is(err, awaiter.ErrUnregistered) {
		a.log.Info("await ends", "why", err)
		return true
	}
	a.complain("awaiters", err)
	for _, e := range fresh {
		switch {
		case !e.SameClient(a.record):
		case e.Process.Younger(a.record.Process):
			a.log.Info("await ends", "why", "a younger one waits", "younger", e.Process.PID)
			return true
		case holds(e):
			// It leaves by itself once the client has spoken. Until then there are two.
		default:
			e.Tell()
			a.older = append(a.older, rival{Entry: e, told: time.Now()})
		}
	}
	return false
}

// urge looks after an older await. Once it is gone, what rang there is looked for here.
func (a *await) urge(r *rival) {
	switch {
	case !r.Live():
		r.gone = true
		a.pending = true
	case holds(r.Entry):
		r.gone = true
	case !r.stopped && time.Since(r.told) >= patience:
		r.stopped = true
		a.log.Warn("an older await does not leave, SIGTERM", "older", r.Process.PID, "err", r.Terminate())
	}
}

// holds reports whether an await has a delivery in hand: to end it would be to take that from its client.
func holds(e awaiter.Entry) bool {
	_, holding := e.Holding()
	return holding
}

// pause is how long to wait for something to happen.
func (a *await) pause() time.Duration {
	for _, r := range a.older {
		if time.Since(r.told) < 2*patience {
			return hurry
		}
	}
	return tick
}

// stopOrphans ends awaits, of any project, whose client is proven to be gone: they serve nobody and answer the bell. They
// end by themselves as a rule, so it is enough that each is looked at now and then.
func (a *await) stopOrphans() {
	all, err := awaiter.Sample(a.dir, sample)
	a.complain("awaiters", err)
	for _, e := range all {
		if e.Process == a.record.Process || e.Client.Status() != proc.Gone {
			continue
		}
		if err := e.Terminate(); err != nil && !errors.Is(err, proc.ErrGone) {
			a.log.Warn("orphan", "err", err)
		}
	}
}
