// Package screen tells what a coding agent is doing from what its terminal shows: the text of the pane, and the title.
//
// It is for clients that left no better evidence. It is not for finding panes, nor for deciding what a state means for
// a task: it has no clock, reads no file and keeps nothing, so a crash leaves nothing behind.
package screen

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

// Read tells what the client of that kind (claude, codex, pi, opencode) is doing. An empty title is one that is not
// known.
func Read(agent, text, title string) Reading { return Reading{State: Unknown} }

// Running says that the last turn still shows running work of its own, and by which line.
func Running(agent, text string) (evidence string, running bool) { return "", false }

// Decision is the question that the last turn asks in a line `needs-decision: …`, with its options.
func Decision(agent, text, prompt string) (question string, options []string, ok bool) {
	return "", nil, false
}
