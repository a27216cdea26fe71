package route

import (
	"context"
	"errors"
	"slices"
	"time"

	"vx/internal/commander"
	"vx/internal/proc"
	"vx/internal/wake"
)

const (
	// digesting is how long a server that has answered may take to show in the session what it was sent, and overlooking how
	// long one that has not: it may have been at a standstill, and reads then what came meanwhile.
	digesting   = 10 * time.Second
	overlooking = time.Minute
	// hoping is how long a session is waited for that cannot be asked: nobody opens one again much later.
	hoping = 10 * time.Minute
)

// doubt is a delivery that was sent and has not been seen to arrive. It stays in hand until the session tells.
type doubt struct {
	delivery *wake.Delivery
	to       commander.Entry // the zero one where another sentinel has sent it
	taken    bool            // the server has said that it has it
	answered bool            // it has answered something else
	since    time.Duration
	next     time.Duration // no look before
}

// doubtful reports whether a commander may not have got what it was sent last. It is not to be sent more meanwhile, which
// might fare as badly.
func (p *project) doubtful(e commander.Entry, now time.Duration) bool {
	return slices.ContainsFunc(p.doubts, func(d *doubt) bool {
		return !d.taken && d.delivery.To().Session == e.Session && now-d.since < patience
	})
}

// clear ends the doubts that can be ended.
func (r *Router) clear(ctx context.Context, p *project, live []commander.Entry) {
	p.doubts = slices.DeleteFunc(p.doubts, func(d *doubt) bool {
		if r.Awake() < d.next {
			return false
		}
		over, err := r.settle(ctx, p, live, d)
		r.complain(p, "what was sent", err)
		if now := r.Awake(); now-d.since >= patience {
			d.next = now + lastPause
		}
		return over
	})
}

// settle asks the session, and does what follows from its answer; over says that the delivery is out of our hands.
//
// What the session shows has arrived. What it does not show, though no turn runs that might be about it, has not: that is
// proven where nothing can come of the request any more, since the server has answered it, or has ended and its session was
// opened again (1.x writes a message down as soon as it takes it); else it counts after a while, once. Of what was typed
// it proves nothing. What nobody can tell is kept and never sent again.
func (r *Router) settle(ctx context.Context, p *project, live []commander.Entry, d *doubt) (over bool, err error) {
	to := d.delivery.To()
	at := d.to
	for _, e := range live {
		if e.Session == to.Session && e.Listens() {
			at = e
		}
	}
	shown, quiet, err := r.ask(ctx, p, at, to.Session, d.delivery.Token)
	absent := err == nil && !shown && quiet && !to.Typed
	age := r.Awake() - d.since
	gone := to.Client.Status() == proc.Gone
	switch {
	case err == nil && shown:
		if !d.taken {
			r.count(p, at)
		}
		return true, errors.Join(d.delivery.Accepted("shown in the session"), leave(d.delivery))
	case absent && d.answered && age >= digesting:
		return true, release(ctx, d.delivery, "the session does not show what its server did not take")
	case absent && gone && !at.Server.Second():
		return true, release(ctx, d.delivery, "the session was opened again and does not show it")
	case d.taken && !gone && age >= patience:
		return true, errors.Join(d.delivery.Accepted("accepted by the server"), leave(d.delivery))
	case absent && !d.taken && age >= overlooking:
		return true, errors.Join(d.delivery.PutBack(context.WithoutCancel(ctx), "the session does not show it"), leave(d.delivery))
	case age >= hoping:
		r.Log.Warn("nobody can say whether wakes arrived; they are kept, and not sent again", "project", p.Root, "session", to.Session)
		return true, leave(d.delivery)
	}
	return false, err
}

// ask asks a session whether it shows the token, and, if it does not, whether it is quiet: a turn that runs may have the
// message before it.
func (r *Router) ask(ctx context.Context, p *project, at commander.Entry, session, token string) (shown, quiet bool, err error) {
	if !at.Listens() {
		return false, false, errDeaf
	}
	c, err := server(ctx, p, at)
	if err == nil {
		shown, err = c.Holds(ctx, session, token)
	}
	if err != nil || shown {
		return shown, false, err
	}
	busy, err := c.Busy(ctx, session)
	return false, !busy, err
}
