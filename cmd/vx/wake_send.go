//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"vx/internal/state"
	"vx/internal/wake"
)

type wakeSend struct {
	Title   string   `name:"title" required:"" placeholder:"T" help:"What happened, in one line."`
	Key     string   `name:"key" placeholder:"K" help:"What it is about: a wake that waits with the same key is folded in."`
	Kind    string   `name:"kind" enum:"message,run,mission,scout,forum" default:"message" placeholder:"KIND" help:"message (the default), run, mission, scout or forum."`
	Detail  string   `name:"detail" placeholder:"D" help:"A few more lines; - reads them from stdin."`
	Ref     []string `name:"ref" type:"path" sep:"none" placeholder:"PATH" help:"A file to look at: a report, a log. May be repeated."`
	Expires span     `name:"expires" placeholder:"DUR" help:"Drop the wake if it still waits after this long."`
	Wait    patience `name:"wait" placeholder:"DUR" help:"Return when the model's turn has started; exit 1 if that takes longer (--wait=DUR, 1m)."`
	JSON    bool     `name:"json" help:"Print JSON."`
	place
}

// maxStdin is how much of stdin becomes the detail; a model is shown less still.
const maxStdin = 64 << 10

// Validate is called by kong after parsing.
func (s *wakeSend) Validate() error {
	switch {
	case printable(s.Title) == "":
		return errors.New("--title: want what happened, in one line")
	case s.Expires < 0:
		return errors.New("--expires: is in the past")
	}
	return nil
}

func (s *wakeSend) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	q, err := s.queue(dir)
	if err != nil {
		return err
	}
	w := wake.Wake{Key: s.Key, Kind: wake.Kind(s.Kind), Title: s.Title, Detail: s.Detail, Refs: s.Ref, Producer: "vx wake send"}
	if s.Detail == "-" {
		if w.Detail, err = readDetail(std.in); err != nil {
			return err
		}
	}
	if s.Expires > 0 {
		w.Expires = time.Now().Add(time.Duration(s.Expires))
	}
	if w, err = q.Put(ctx, w); err != nil {
		return err
	}
	if !s.JSON {
		fmt.Fprintln(std.out, printable(w.ID))
	}
	var end *wake.Event
	if s.Wait > 0 {
		end, err = receipt(ctx, q, w.ID, time.Duration(s.Wait))
		if err != nil {
			return err
		}
	}
	if s.JSON {
		err := std.json(struct {
			Wake    wake.Wake   `json:"wake"`
			Receipt *wake.Event `json:"receipt,omitempty"`
		}{w, end})
		if err != nil {
			return err
		}
	}
	if s.Wait > 0 {
		return s.verdict(w, end)
	}
	return nil
}

// verdict is nil when a turn has started.
func (s *wakeSend) verdict(w wake.Wake, end *wake.Event) error {
	switch {
	case end == nil:
		return &unproven{w.ID, fmt.Sprintf("no turn has started within %s", time.Duration(s.Wait)), "vx wake show " + w.ID}
	case end.Event == "delivered" && end.Proof == turnStarted:
		return nil
	case end.Event == "delivered":
		return &unproven{end.ID, "delivered, " + end.Proof, "vx wake show " + end.ID}
	}
	return &unproven{end.ID, end.Event + ", " + end.Why, "vx wake show " + end.ID}
}

// unproven is a wake of which nothing shows that a turn has started.
type unproven struct{ id, why, hint string }

func (e *unproven) Error() string { return fmt.Sprintf("wake %s: %s", e.id, e.why) }
func (e *unproven) Hint() string  { return e.hint }

// turnStarted is the proof that the model has a wake.
const turnStarted = "turn started"

// receipt waits until the wake's story has ended, or until patience has: then it returns nil. What the wake was folded
// into carries the story on.
func receipt(ctx context.Context, q *wake.Queue, id string, patience time.Duration) (*wake.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	const shortest, longest = 20 * time.Millisecond, 500 * time.Millisecond
	history := history{queue: q}
	for pause := time.Duration(shortest); ; pause = min(pause*3/2, longest) {
		if err := q.Settle(ctx); err != nil && ctx.Err() == nil {
			return nil, err
		}
		events, err := history.changed()
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			switch {
			case e.ID != id:
			case e.Event == "folded" && e.Into != "":
				id = e.Into
			case e.Event == "delivered", e.Event == "dropped", e.Event == "quarantined":
				return &e, nil
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return nil, nil
			}
			return nil, fmt.Errorf("wake %s: interrupted while waiting for its receipt; it stays in the queue", id)
		case <-time.After(pause):
		}
	}
}

// readDetail reads stdin to its end, so that whoever writes it is not killed by a closed pipe, and keeps the last part.
func readDetail(in io.Reader) (string, error) {
	var kept []byte
	block := make([]byte, 32<<10)
	for {
		n, err := in.Read(block)
		kept = append(kept, block[:n]...)
		if len(kept) > 2*maxStdin {
			kept = append(kept[:0], kept[len(kept)-maxStdin:]...)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("detail: stdin: %w", err)
		}
	}
	kept = kept[max(0, len(kept)-maxStdin):]
	return strings.TrimRight(strings.ToValidUTF8(string(kept), "\uFFFD"), "\n"), nil
}

// patience is a duration whose value may be left out: --wait is a minute.
type patience time.Duration

// IsBool lets kong take the flag without a value.
func (*patience) IsBool() bool { return true }

// Decode reads the value behind "=", where there is one.
func (p *patience) Decode(ctx *kong.DecodeContext) error {
	*p = patience(time.Minute)
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	var d span
	if err := d.UnmarshalText([]byte(ctx.Scan.Pop().String())); err != nil || d <= 0 {
		return errors.New("want a duration such as 30s or 5m")
	}
	*p = patience(d)
	return nil
}
