package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"vx/internal/commander"
	"vx/internal/opencode"
	"vx/internal/wake"
)

// errDeaf says that a session has no server that could be asked.
var errDeaf = errors.New("its session has no server")

// server is a client of the server that has the commander's session, once it has shown that it has it.
func server(ctx context.Context, p *project, e commander.Entry) (*opencode.Client, error) {
	at := opencode.Server{URL: e.Server.URL, Version: e.Server.Version}
	if e.Server.Second() {
		var err error
		if at, err = opencode.Service(ctx); err != nil {
			return nil, err
		}
	}
	c, err := opencode.New(at)
	if err == nil {
		err = c.Check(ctx, e.Session, cmp.Or(e.Server.Directory, p.Root))
	}
	return c, err
}

// overHTTP gives the wakes to the session's server. An error says that they are not known to have arrived.
func (r *Router) overHTTP(ctx context.Context, p *project, e commander.Entry) error {
	c, err := server(ctx, p, e)
	if err != nil {
		return err
	}
	d, err := r.claim(ctx, p, wake.Recipient{Client: e.Process, Harness: e.Harness, Session: e.Session, Pane: e.Pane})
	if err != nil {
		return err
	}
	err = c.Prompt(context.WithoutCancel(ctx), e.Session, d.Text)
	if errors.Is(err, opencode.ErrNotSent) {
		return errors.Join(err, release(ctx, d, "the server did not take them"))
	}
	if err == nil {
		r.Log.Info("wakes were sent to a session", "session", e.Session, "wakes", len(d.Wakes))
		if e.Server.Second() {
			// It has written them down, but shows them only when their turn comes.
			return errors.Join(d.Accepted("accepted by the server"), leave(d))
		}
	}
	p.doubts = append(p.doubts, &doubt{
		delivery: d, to: e, taken: err == nil, answered: errors.Is(err, opencode.ErrAnswered), since: r.Awake(),
	})
	if err != nil {
		return fmt.Errorf("they are not sent again unless the session shows that it has not got them: %w", err)
	}
	return nil
}
