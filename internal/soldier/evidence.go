package soldier

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"vx/internal/herdr"
	"vx/internal/screen"
	"vx/internal/task"
)

// Evidence is what decided, and what the others said. It is put into words only when somebody wants to read it.
type Evidence struct {
	State screen.State
	By    string // the kind of evidence: "record", "title", "spinner", …, "herdr"
	rank  rank
	heard [4]witness
	n     int
}

type witness struct {
	what, quote string
	state       screen.State
}

// Gone is the state of a soldier whose agent is there no more.
const Gone screen.State = "gone"

// rank is how good evidence is, the best first.
type rank int

const (
	byRecord rank = iota
	byTitle
	byScreen
	byHerdr // a hint, never proof of an end
)

// Task is the evidence as a task keeps it.
func (e Evidence) Task(at time.Time) task.Evidence {
	kept := task.Evidence{State: string(e.State), By: e.By, At: at}
	for _, w := range e.heard[:e.n] {
		words := w.what + ": " + string(w.state)
		if w.quote != "" && w.quote != string(w.state) {
			words += " (" + w.quote + ")"
		}
		kept.Says = append(kept.Says, words)
	}
	return kept
}

// what is the evidence that decided, in words.
func (e Evidence) what() string {
	for _, w := range e.heard[:e.n] {
		if w.what == e.By && w.quote != "" {
			return w.what + ": " + w.quote
		}
	}
	return e.By
}

// weigh lets the best evidence that a look has say what the soldier is doing.
func weigh(t *task.Task, o *Look) Evidence {
	e := Evidence{State: screen.Unknown}
	if c := o.Client; c != nil {
		e.hear(byRecord, "record", c.says(), c.quote())
	}
	if o.Agent == nil {
		return e
	}
	if o.Agent.LaunchPending || o.Agent.Kind == "" {
		// Nothing runs yet, or nothing any more; what stands in the pane is somebody else's.
		e.hear(byHerdr, "herdr", screen.Unknown, "launch pending")
		return e
	}
	shown := readScreen(t, o)
	if shown.By == "title" {
		e.hear(byTitle, "title", shown.State, shown.Evidence)
	} else {
		e.hear(byScreen, cmp.Or(shown.By, "screen"), shown.State, shown.Evidence)
	}
	e.hear(byHerdr, "herdr", herdrSays(o.Agent.Status), string(o.Agent.Status))
	return e
}

// hear adds a witness, the best ones first: the first that knows decides.
func (e *Evidence) hear(r rank, what string, state screen.State, quote string) {
	if state == "" {
		return // was not asked
	}
	if e.State == screen.Unknown && state != screen.Unknown {
		e.State, e.By, e.rank = state, what, r
	}
	e.heard[e.n] = witness{what, quote, state}
	e.n++
}

func readScreen(t *task.Task, o *Look) screen.Reading {
	kind := cmp.Or(o.Agent.Kind, t.Agent)
	if o.Text != nil && o.Text.readable() {
		return screen.Read(kind, o.Text.Text, o.Agent.Title)
	}
	if o.Agent.Title == "" {
		return screen.Reading{}
	}
	// A title alone can show work or a call for a person; that nothing is shown is no proof of rest.
	r := screen.Read(kind, "", o.Agent.Title)
	if r.State != screen.Working && r.State != screen.Blocked {
		return screen.Reading{}
	}
	return r
}

// says is what the record shows: "" without one. A picker that a person has opened hides what goes on behind it.
func (c *Client) says() screen.State {
	if c.State != ClientAlive {
		return ""
	}
	switch c.Status {
	case "busy":
		return screen.Working
	case "idle":
		return screen.Idle
	case "shell":
		return screen.Background
	case "waiting":
		if c.Waiting == "dialog open" {
			return screen.Unknown
		}
		return screen.Blocked
	}
	return screen.Unknown
}

func (c *Client) quote() string {
	if c.Waiting != "" {
		return c.Status + ": " + c.Waiting
	}
	return c.Status
}

func herdrSays(s herdr.Status) screen.State {
	switch s {
	case herdr.Idle, herdr.Done:
		return screen.Idle
	case herdr.Working:
		return screen.Working
	case herdr.Blocked:
		return screen.Blocked
	}
	return screen.Unknown
}

// lastLines are the last lines of a pane that say anything, at most n.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, " \t\n"), "\n")
	var kept []string
	for i := len(lines) - 1; i >= 0 && len(kept) < n; i-- {
		line := strings.TrimRight(lines[i], " \t\r")
		// A rule may carry the session's name.
		if strings.Trim(line, " \t─━═-_╭╮╰╯│┃▀▄") != "" && !strings.HasPrefix(line, strings.Repeat("─", 20)) {
			kept = append(kept, line)
		}
	}
	slices.Reverse(kept)
	return strings.Join(kept, "\n")
}
