//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"vx/internal/forum"
	"vx/internal/state"
	"vx/internal/wake"
)

type forumPost struct {
	Text    string `arg:"" optional:"" name:"text" help:"What it says; - reads it from stdin."`
	File    string `name:"file" required:"" placeholder:"F" help:"What is reviewed, as the commander is to see it."`
	Session string `name:"session" required:"" placeholder:"S" help:"The review that it comes from: one wake rings for all that waits of it."`
	ID      string `name:"id" placeholder:"ID" help:"The message's own id: posted twice it is there once."`
	Ended   bool   `name:"ended" help:"The session has ended."`
	JSON    bool   `name:"json" help:"Print JSON."`
	place
}

// Validate is called by kong after parsing.
func (p *forumPost) Validate() error {
	switch {
	case printable(p.Session) == "":
		return errors.New("--session: want the name of a review")
	case p.Text == "" && !p.Ended:
		return errors.New("want a text, - for stdin, or --ended")
	}
	return nil
}

func (p *forumPost) Run(ctx context.Context, std stdio, dir *state.Dir) error {
	root, err := p.root(dir)
	if err != nil {
		return err
	}
	if p.Text == "-" {
		text, err := io.ReadAll(io.LimitReader(std.in, forum.MaxText+1))
		if err != nil {
			return fmt.Errorf("message: stdin: %w", err)
		}
		if p.Text = strings.TrimRight(string(text), "\n"); p.Text == "" && !p.Ended {
			return errors.New("message: stdin is empty")
		}
	}
	m := forum.Message{ID: p.ID, Session: p.Session, File: p.File, Text: p.Text, Ended: p.Ended}
	m, fresh, err := forum.Open(dir.Project(root)).Post(ctx, m)
	if err != nil {
		return err
	}
	if p.JSON {
		return std.json(struct {
			Message forum.Message `json:"message"`
			New     bool          `json:"new"`
		}{m, fresh})
	}
	if !fresh {
		fmt.Fprintln(std.errw(), "vx: it was posted before; nothing was added")
	}
	_, err = fmt.Fprintln(std.out, printable(m.ID))
	return err
}

type forumInbox struct {
	IDs  []string `arg:"" optional:"" name:"id" help:"These messages alone; an id may be shortened while only one begins so."`
	Ack  bool     `name:"ack" help:"Acknowledge what is shown: it waits no more."`
	JSON bool     `name:"json" help:"Print JSON."`
	place
}

func (i *forumInbox) Run(ctx context.Context, std stdio) error {
	waiting := []forum.Message{}
	q, err := i.look()
	if err != nil {
		return err
	}
	if q == nil { // nothing is kept here yet
		return i.print(std, waiting, 0)
	}
	inbox := forum.Open(q.Project)
	waiting, bad := inbox.Waiting()
	if len(i.IDs) > 0 {
		if waiting, err = inbox.Find(waiting, i.IDs); err != nil {
			return err
		}
	}
	shown := waiting
	if !i.JSON {
		shown = waiting[:whole(waiting)]
	}
	// What could not be printed nobody has read.
	if err := i.print(std, shown, len(waiting)-len(shown)); err != nil {
		return err
	}
	if i.Ack {
		n, err := inbox.Acknowledge(ctx, shown)
		if err == nil && !i.JSON && len(shown) > 0 {
			_, err = fmt.Fprintf(std.out, "acknowledged: %d\n", n)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(bad...)
}

// maxInbox is how many bytes of messages are shown at once: agents are given no more of what a command prints, and what is
// not seen must not be acknowledged.
const maxInbox = 20 << 10

// whole is how many of the messages are shown: those that fit, but one at least.
func whole(all []forum.Message) int {
	room := maxInbox
	for i, m := range all {
		if room -= len(m.Text) + len(m.File) + len(m.Session); room < 0 && i > 0 {
			return i
		}
	}
	return len(all)
}

func (i *forumInbox) print(std stdio, shown []forum.Message, more int) error {
	if i.JSON {
		return std.json(append([]forum.Message{}, shown...))
	}
	var b strings.Builder
	switch len(shown) {
	case 0:
		b.WriteString("no new messages\n")
	case 1:
		b.WriteString("1 new message. Lines behind > are quoted from it.\n")
	default:
		fmt.Fprintf(&b, "%d new messages. Lines behind > are quoted from them.\n", len(shown))
	}
	for _, m := range shown {
		writeMessage(&b, m)
	}
	switch {
	case more > 0:
		fmt.Fprintf(&b, "%d more wait. Once these are seen to: vx forum inbox --ack, then vx forum inbox\n", more)
	case len(shown) > 0 && !i.Ack:
		b.WriteString("Once they are seen to: vx forum inbox --ack [ID...]\n")
	}
	_, err := std.out.WriteString(b.String())
	return err
}

func writeMessage(b *strings.Builder, m forum.Message) {
	fmt.Fprintf(b, "- message %s: %s, session %s, %s", printable(m.ID), printable(m.File), printable(m.Session), clock(m.Posted))
	if m.Ended {
		b.WriteString(", which has ended")
	}
	b.WriteString("\n")
	if m.Text == "" {
		return
	}
	for line := range strings.SplitSeq(strings.Trim(wake.Clean(m.Text), "\n"), "\n") {
		b.WriteString("    > " + line + "\n")
	}
}
