// Package opencode tells a session of a running OpenCode something, over HTTP, and asks what became of it: 1.x by the server
// that a terminal interface or `opencode serve` opens on a port, 2.x by the one service that it keeps for each user. Which
// routes are used follows from the version alone: 1.x answers those of 2.x with 200 too, and shows nobody what they were told.
//
// It decides nothing about wakes, finds no session and keeps no state, so a crash leaves nothing; a crash between the request
// and its answer is what ErrUnclear is for, seen from outside.
package opencode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What is known of a prompt that was not accepted.
var (
	// ErrNotSent says that the server cannot have taken it: it was not reached, or it refused.
	ErrNotSent = errors.New("not sent")
	// ErrUnclear says that the server may have taken it: it was written, and no answer came that settles it.
	ErrUnclear = errors.New("unclear whether it was sent")
	// ErrAnswered says of an ErrUnclear that the server has answered, so that it is done with it: what its session does not
	// show a moment later, it did not take.
	ErrAnswered = errors.New("the answer says neither")
)

// Timeout bounds each request, from the connection to the last byte of the answer.
const Timeout = 10 * time.Second

// DefaultUser is whom OpenCode's password belongs to unless it is told otherwise.
const DefaultUser = "opencode"

// A Server is where an OpenCode answers, on this machine.
type Server struct {
	URL      string
	Version  string // as it says itself: "1.18.33"
	User     string // DefaultUser if it is empty
	Password string // none if it is empty
}

// A Client speaks to one server.
type Client struct {
	addrs          []netip.AddrPort
	host           string // as the URL has it
	user, password string
	api            routes
	limit          time.Duration
}

// New is a client for the server; nothing is asked of it yet. Every error is an ErrNotSent.
func New(s Server) (*Client, error) {
	c, err := s.client()
	if err != nil {
		return nil, fmt.Errorf("opencode: %w: %w", ErrNotSent, err)
	}
	return c, nil
}

// Valid says why a server cannot be spoken to, whatever answers there. One of 2.x needs no address: it has its own record.
func (s Server) Valid() error {
	if n, err := major(s.Version); s.URL == "" && err == nil && n == 2 {
		return nil
	}
	_, err := s.client()
	return err
}

func (s Server) client() (*Client, error) {
	base, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("address is not a URL") // the URL itself may hold a password
	}
	if base.Scheme != "http" || base.Host == "" || base.User != nil {
		return nil, fmt.Errorf("address %q is no plain http URL", base.Redacted())
	}
	c := &Client{host: base.Host, user: cmp.Or(s.User, DefaultUser), password: s.Password, limit: Timeout}
	if c.addrs, err = loopback(base.Hostname(), cmp.Or(base.Port(), "80")); err == nil {
		c.api, err = routesOf(s.Version)
	}
	return c, err
}

// loopback is where a host of this machine may listen. No other is spoken to, and nobody is asked what a name means: the
// password is for an OpenCode that this user has started.
func loopback(host, port string) ([]netip.AddrPort, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is no port", port)
	}
	if host == "localhost" {
		return []netip.AddrPort{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(n)), netip.AddrPortFrom(netip.IPv6Loopback(), uint16(n)),
		}, nil
	}
	addr, err := netip.ParseAddr(host)
	if addr = addr.Unmap(); err != nil || !addr.IsLoopback() || addr.Zone() != "" {
		return nil, fmt.Errorf("%s is on another machine", host)
	}
	return []netip.AddrPort{netip.AddrPortFrom(addr, uint16(n))}, nil
}

// IsSession reports whether this is what both versions call a session; anything else would make another route of the path.
func IsSession(id string) bool {
	return strings.HasPrefix(id, "ses") && len(id) > 3 && len(id) <= 103 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// Prompt gives the session a message of the user. Nil means that the server has accepted it: the session will have it, now or
// after the turn that runs, unless the server ends first. Every error is an ErrNotSent or an ErrUnclear.
func (c *Client) Prompt(ctx context.Context, session, text string) error {
	if !IsSession(session) {
		return fmt.Errorf("opencode: %w: %q is no session's id", ErrNotSent, session)
	}
	body, err := c.prompt(ctx, session, text)
	if err != nil {
		return fmt.Errorf("opencode: prompt %s: %w: %w", session, ErrNotSent, err)
	}
	status, answer, err := c.post(ctx, c.api.prompt(session), body)
	if err == nil && !c.api.accepted(status, answer) {
		err = fmt.Errorf("%w: %w: status %d", ErrUnclear, ErrAnswered, status)
		if refusal(status) {
			err = fmt.Errorf("%w: %s", ErrNotSent, reason(status))
		}
	}
	if err != nil {
		return fmt.Errorf("opencode: prompt %s: %w", session, err)
	}
	return nil
}

// prompt is what is posted for a text.
func (c *Client) prompt(ctx context.Context, session, text string) (any, error) {
	var about []byte
	if c.api.asks {
		var err error
		if about, err = c.get(ctx, c.api.session(session), nil); err != nil {
			return nil, err
		}
	}
	return c.api.body(text, about)
}

// refusal reports whether the status says that the server has done nothing. Some of 300 to 499 say nothing of the kind, like
// those of 500 or more: that what came of it stands elsewhere (303), that it was slow (408), early (425), or that the client
// has left (499).
func refusal(status int) bool {
	switch status {
	case 303, statusRequestTimeout, 425, 499:
		return false
	}
	return status >= 300 && status < 500
}

func reason(status int) string {
	switch status {
	case statusUnauthorized, statusForbidden:
		return fmt.Sprintf("the password is missing or wrong (%d)", status)
	case statusNotFound:
		return "it has no such session (404)"
	}
	return fmt.Sprintf("refused (%d)", status)
}

// Busy reports whether the session has a turn that runs.
func (c *Client) Busy(ctx context.Context, session string) (bool, error) {
	data, err := c.get(ctx, c.api.status, nil)
	if err == nil {
		var busy bool
		if busy, err = c.api.busy(data, session); err == nil {
			return busy, nil
		}
	}
	return false, fmt.Errorf("opencode: status of %s: %w", session, err)
}

// Holds reports whether one of the user's latest messages in the session has the token in its text. A message that 2.x has
// accepted and not yet begun may not be among them.
func (c *Client) Holds(ctx context.Context, session, token string) (bool, error) {
	if token == "" || !IsSession(session) {
		return false, fmt.Errorf("opencode: messages of %q: nothing to look for", session)
	}
	data, err := c.get(ctx, c.api.messages(session), c.api.latest)
	if err == nil {
		var texts []string
		if texts, err = c.api.said(data); err == nil {
			return strings.Contains(strings.Join(texts, "\n"), token), nil
		}
	}
	return false, fmt.Errorf("opencode: messages of %s: %w", session, err)
}

// Check finds out whether the server behind the URL is one that has the session, and has it in this directory. A connection
// proves nothing: whoever came first has the port.
func (c *Client) Check(ctx context.Context, session, directory string) error {
	if !IsSession(session) {
		return fmt.Errorf("opencode: %q is no session's id", session)
	}
	data, err := c.get(ctx, c.api.session(session), nil)
	if err != nil {
		return fmt.Errorf("opencode: session %s: %w", session, err)
	}
	at, err := c.api.directory(data, session)
	if err != nil {
		return fmt.Errorf("opencode: session %s: %w", session, err)
	}
	if !samePath(at, directory) {
		return fmt.Errorf("opencode: session %s is in %q there, not in %q", session, at, directory)
	}
	return nil
}

// samePath compares what both sides resolve to: a home may be a link.
func samePath(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	resolved := func(path string) string {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		return filepath.Clean(path)
	}
	return resolved(a) == resolved(b)
}

// major is the first number of a version.
func major(version string) (int, error) {
	first, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("version %q is not a version", version)
	}
	return n, nil
}
