// Package screen tells what a coding agent is doing from what its terminal shows: the text of the pane, and the title.
//
// It is for clients that left no better evidence. It is not for finding panes, nor for deciding what a state means for
// a task: it has no clock, reads no file and keeps nothing, so a crash leaves nothing behind.
//
// Everything on a screen can be a copy: answers, tool output and prompts may show a spinner, a dialog, a whole other
// session. So a recogniser reads from the bottom up and asks for structure, which text cannot forge: what stands at the
// left edge, which rule goes over the full width, what is below the prompt. A phrase counts only in its place. What
// proves nothing is Unknown, and a title and a screen that contradict each other are never Idle.
package screen

import (
	"regexp"
	"sync"
)

// State is what a client is doing.
type State string

const (
	Idle       State = "idle"       // the turn is over and nothing of the client's own goes on
	Working    State = "working"    // a turn, or a command of the person, runs
	Background State = "background" // the turn is over, work that it started goes on
	Blocked    State = "blocked"    // a dialog waits for a person
	Unknown    State = "unknown"    // nothing proves any of these; never to be taken for idle
)

// Reading is a state and what showed it.
type Reading struct {
	State    State  `json:"state"`
	By       string `json:"by,omitempty"`       // the kind of evidence: "title", "own line", "spinner", "dialog", …
	Evidence string `json:"evidence,omitempty"` // the line, or the title, itself: cleaned and capped
}

// Agents are the kinds of client that have recognisers.
func Agents() []string { return []string{"claude", "codex", "pi", "opencode"} }

// Read tells what the client of that kind is doing. An empty title is one that is not known.
func Read(agent, text, title string) Reading {
	s := read(text)
	title = cleanLine(title)
	switch agent {
	case "claude":
		return claude(s, title)
	case "codex":
		return codex(s, title)
	case "pi":
		return pi(s)
	case "opencode":
		return opencode(s)
	}
	return because(Unknown, "", "")
}

// Running says whether the screen alone shows that the turn, or work that it started, still goes on, and by which line.
// Unlike Read it knows no title, so it also finds what a title that is behind its time denies.
func Running(agent, text string) (evidence string, running bool) {
	r := Read(agent, text, "")
	return r.Evidence, r.State == Working || r.State == Background
}

// evidenceCap is how many characters of a line are kept: a line of a wide terminal, no more.
const evidenceCap = 200

func because(s State, by, evidence string) Reading {
	return Reading{State: s, By: by, Evidence: capped(evidence, evidenceCap)}
}

// pattern compiles a regular expression when it is first asked for: most runs of vx never look at a screen.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
