package wake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"vx/internal/lock"
)

// The history is kept in two files of about this size.
const (
	historySize = 1 << 20
	maxLine     = 4 << 10
)

// Event is one line of history.jsonl: what became of a wake. Nothing is ever decided from it.
type Event struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"` // put folded claimed emitted enqueued delivered released dropped reaped put_back quarantined
	ID      string    `json:"id"`
	Key     string    `json:"key,omitempty"`
	Title   string    `json:"title,omitempty"`
	Into    string    `json:"into,omitempty"`  // folded: the id that it lives on in
	Why     string    `json:"why,omitempty"`   // released, dropped, reaped, put_back, quarantined
	Proof   string    `json:"proof,omitempty"` // delivered: "turn started", "turn failed", "unproven"
	Harness string    `json:"harness,omitempty"`
	Session string    `json:"session,omitempty"`
	Client  int       `json:"client,omitempty"` // pid
	Millis  float64   `json:"ms,omitempty"`     // emitted: from the writing of the wake's file to the end of the printing
}

// eventOf names a wake in words that are short enough for a line.
func eventOf(event string, w Wake) Event {
	return Event{Event: event, ID: oneLine(w.ID, 80), Key: oneLine(w.Key, 80), Title: oneLine(w.Title, 120)}
}

func (d *Delivery) eventOf(event string, it item) Event {
	e := eventOf(event, it.wake)
	if e.ID == "" {
		e.ID = oneLine(it.name, 80)
	}
	e.Harness, e.Session, e.Client = oneLine(d.to.Harness, 40), oneLine(d.to.Session, 80), d.to.Client.PID
	if event == "emitted" && !it.written.IsZero() {
		e.Millis = float64(time.Since(it.written).Microseconds()) / 1000
	}
	return e
}

// events is one event for each wake of the delivery.
func (d *Delivery) events(event, why string) []Event {
	all := make([]Event, len(d.items))
	for i, it := range d.items {
		all[i] = d.eventOf(event, it)
		all[i].Why = why
	}
	return all
}

// record appends events, each as one line in one write. A history that cannot be written is no reason to stop a
// delivery: it is logged.
func (q *Queue) record(events ...Event) {
	if len(events) == 0 {
		return
	}
	var lines bytes.Buffer
	for _, e := range events {
		e.Time = time.Now().UTC()
		e.Why = oneLine(e.Why, 300)
		line, err := json.Marshal(e)
		if err != nil || len(line) >= maxLine {
			slog.Error("history line", "event", e.Event, "bytes", len(line), "err", err)
			continue
		}
		lines.Write(append(line, '\n'))
	}
	if err := q.appendHistory(lines.Bytes()); err != nil {
		slog.Error("history", "err", err)
	}
}

func (q *Queue) appendHistory(lines []byte) error {
	f, err := os.OpenFile(q.historyFile(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(lines); err != nil {
		return err
	}
	if fi, err := f.Stat(); err == nil && fi.Size() > historySize {
		return q.rotate()
	}
	return nil
}

// rotate makes the current file the older one. Whoever has it open still writes to it, and loses nothing.
func (q *Queue) rotate() error {
	l, err := lock.Try(q.Project.Join("history.lock"))
	if errors.Is(err, lock.ErrHeld) {
		return nil // another process is at it
	}
	if err != nil {
		return err
	}
	defer l.Unlock()
	fi, err := os.Stat(q.historyFile())
	if err != nil || fi.Size() <= historySize {
		return err
	}
	return os.Rename(q.historyFile(), q.historyFile()+".1")
}

func (q *Queue) historyFile() string { return q.Project.Join("history.jsonl") }

// History reads the last n events (0: all that are kept), oldest first. Lines that do not parse are left out.
func (q *Queue) History(n int) ([]Event, error) {
	var all []Event
	for _, path := range []string{q.historyFile() + ".1", q.historyFile()} {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for lines.Scan() {
			var e Event
			if json.Unmarshal(lines.Bytes(), &e) == nil && e.Event != "" {
				all = append(all, e)
			}
		}
	}
	if n > 0 && len(all) > n {
		all = all[len(all)-n:]
	}
	return all, nil
}
