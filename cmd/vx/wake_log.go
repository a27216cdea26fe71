//go:build !windows

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"vx/internal/wake"
)

type wakeLog struct {
	Follow bool `name:"follow" short:"f" help:"Go on printing what happens, until interrupted."`
	JSON   bool `name:"json" help:"Print JSON, one object a line."`
	place
}

// followEvery is how often a followed history is read again.
const followEvery = 250 * time.Millisecond

func (l *wakeLog) Run(std stdio) error {
	var last wake.Event
	var history history
	for {
		if history.queue == nil { // the first wake of all may make the state directory
			q, err := l.look()
			if err != nil {
				return err
			}
			history.queue = q
		}
		events, err := history.changed()
		if err != nil {
			return err
		}
		for _, e := range behind(events, last) {
			if err := l.print(std, e); err != nil {
				return err
			}
			last = e
		}
		if !l.Follow {
			return nil
		}
		time.Sleep(followEvery)
	}
}

// history is a queue's history that is read again and again.
type history struct {
	queue *wake.Queue
	seen  fs.FileInfo
}

// changed is the whole history where there is news in it, and nothing where there is none.
func (h *history) changed() ([]wake.Event, error) {
	if h.queue == nil {
		return nil, nil
	}
	now, err := os.Stat(h.queue.Project.Join("history.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && h.seen != nil && os.SameFile(now, h.seen) && now.Size() == h.seen.Size() {
		return nil, nil
	}
	h.seen = now
	return h.queue.History(0)
}

func (l *wakeLog) print(std stdio, e wake.Event) error {
	if l.JSON {
		return std.json(e)
	}
	_, err := fmt.Fprintln(std.out, eventLine(e, true))
	return err
}

// behind are the events that came after the last one seen, or all where that was rotated away.
func behind(events []wake.Event, last wake.Event) []wake.Event {
	for i, e := range slices.Backward(events) {
		if e == last {
			return events[i+1:]
		}
	}
	return events
}

// eventLine is one event as one line.
func eventLine(e wake.Event, withWake bool) string {
	words := []string{e.Time.Local().Format("2006-01-02 15:04:05.000"), fmt.Sprintf("%-11s", printable(e.Event))}
	if withWake {
		words = append(words, printable(e.ID))
	}
	if e.Proof != "" {
		words = append(words, "("+printable(e.Proof)+")")
	}
	if e.Into != "" {
		words = append(words, "into "+printable(e.Into))
	}
	if e.Client != 0 {
		words = append(words, fmt.Sprintf("to %s %d", printable(e.Harness), e.Client))
	}
	if e.Millis != 0 {
		words = append(words, fmt.Sprintf("after %.1f ms", e.Millis))
	}
	if e.Why != "" {
		words = append(words, printable(e.Why))
	}
	if withWake && e.Title != "" {
		words = append(words, printable(e.Title))
	}
	return strings.TrimRight(strings.Join(words, " "), " ")
}
