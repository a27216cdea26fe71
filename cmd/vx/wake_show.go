//go:build !windows

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"vx/internal/wake"
)

type wakeShow struct {
	ID   string `arg:"" name:"id" help:"The wake's id, or as much of its beginning as is unique."`
	JSON bool   `name:"json" help:"Print JSON."`
	place
}

// story is one wake and what became of it. The wake itself is gone from the queue once it was delivered or dropped.
type story struct {
	ID     string       `json:"id"`
	Stage  string       `json:"stage"` // waiting, claimed, emitted, gone
	Wake   *wake.Wake   `json:"wake,omitempty"`
	Events []wake.Event `json:"events"`
}

func (s *wakeShow) Run(std stdio) error {
	q, err := s.look()
	if err != nil {
		return err
	}
	var stories []story
	if q != nil {
		if stories, err = readStories(q, s.ID); err != nil {
			return err
		}
	}
	switch {
	case len(stories) == 0:
		return &unknownWake{fmt.Sprintf("wake %s: not in this project's queue or history", printable(s.ID))}
	case len(stories) > 1:
		return &unknownWake{fmt.Sprintf("wake %s: %d wakes begin so, the first are %s and %s",
			printable(s.ID), len(stories), printable(stories[0].ID), printable(stories[1].ID))}
	case s.JSON:
		return std.json(stories[0])
	}
	printStory(std.out, stories[0])
	return nil
}

type unknownWake struct{ what string }

func (e *unknownWake) Error() string { return e.what }
func (e *unknownWake) Hint() string  { return "vx wake list, vx wake log" }

// readStories are the wakes whose id begins with prefix; the one whose id it is, alone.
func readStories(q *wake.Queue, prefix string) ([]story, error) {
	listing, err := q.List(0)
	if err != nil {
		return nil, err
	}
	events, err := q.History(0)
	if err != nil {
		return nil, err
	}
	var all []story
	add := func(id string, tell func(*story)) {
		if !strings.HasPrefix(id, prefix) {
			return
		}
		i := slices.IndexFunc(all, func(s story) bool { return s.ID == id })
		if i < 0 {
			i = len(all)
			all = append(all, story{ID: id, Stage: "gone", Events: []wake.Event{}})
		}
		tell(&all[i])
	}
	for _, w := range listing.Waiting {
		add(w.ID, func(s *story) { s.Stage, s.Wake = "waiting", &w })
	}
	for _, f := range listing.Claimed {
		add(f.Wake.ID, func(s *story) { s.Stage, s.Wake = "claimed", &f.Wake })
	}
	for _, f := range listing.Emitted {
		add(f.Wake.ID, func(s *story) { s.Stage, s.Wake = "emitted", &f.Wake })
	}
	for _, e := range events {
		add(e.ID, func(s *story) { s.Events = append(s.Events, e) })
	}
	if i := slices.IndexFunc(all, func(s story) bool { return s.ID == prefix }); i >= 0 {
		return all[i : i+1], nil
	}
	return all, nil
}

func printStory(out io.Writer, s story) {
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "%-9s %s\n", name+":", value)
		}
	}
	field("wake", printable(s.ID))
	field("stage", s.Stage)
	if s.Wake == nil {
		field("title", printable(s.Events[0].Title))
	} else {
		w := s.Wake
		field("kind", printable(string(w.Kind)))
		field("key", printable(w.Key))
		field("title", subject(*w))
		field("origin", printable(w.Origin))
		field("detected", w.Detected.Local().Format(time.DateTime))
		if !w.Expires.IsZero() {
			field("expires", w.Expires.Local().Format(time.DateTime))
		}
		field("producer", printable(w.Producer))
		for _, ref := range w.Refs {
			field("see", printable(ref))
		}
		for line := range strings.Lines(strings.TrimRight(wake.Clean(w.Detail), "\n")) {
			fmt.Fprintf(out, "  > %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, e := range s.Events {
		fmt.Fprintln(out, eventLine(e, false))
	}
}
