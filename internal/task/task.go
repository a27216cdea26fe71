// Package task keeps a project's tasks: one JSON file each, with the work that was handed to a soldier and how far it
// has come. It knows which status may follow which, saves only over the status that the writer has seen, and makes a
// transition and its wake one thing. It does not find out what a soldier is doing, and talks to nobody.
//
// A crash at any moment leaves a record as it was or as it was to be. A crash in the middle of a transition leaves the
// wake beside the queue: Recover lets it in if the record names it, and drops it otherwise.
package task

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/state"
	"vx/internal/wake"
)

// Kind is what a soldier is to deliver: a mission changes code, a scout writes a report.
type Kind = wake.Kind

// Status is how far a task has come. One that this build does not know is kept.
type Status string

// The statuses.
const (
	Pending     Status = "pending" // being dispatched
	Running     Status = "running"
	Done        Status = "done"
	Blocked     Status = "blocked"     // a decision is needed
	Unconfirmed Status = "unconfirmed" // at rest, and nothing shows that it has finished
	Interrupted Status = "interrupted" // its agent is gone
	Shipped     Status = "shipped"     // pushed, with a pull request
	Landed      Status = "landed"      // merged
	Struck      Status = "struck"      // its camp is removed
)

// May reports whether a task may go from one status to another. To stay is no move.
func (s Status) May(to Status) bool {
	switch to {
	case Running:
		return s == Pending || s == Blocked || s == Interrupted || s.Prompts()
	case Done, Blocked, Unconfirmed, Interrupted:
		return s == Running
	case Shipped:
		return s == Done
	case Landed:
		return s.Prompts()
	case Struck:
		return s != Running && s != Struck
	}
	return false
}

// Prompts reports whether a task with this status can be given another prompt.
func (s Status) Prompts() bool { return s == Done || s == Shipped || s == Unconfirmed }

// Over reports whether nothing more comes of a task with this status.
func (s Status) Over() bool { return s == Landed || s == Struck }

// Task is the record of one piece of work. Fields of its file that this build does not know survive every save, also in
// the objects within it.
type Task struct {
	ID         string    `json:"id"` // 16 hex digits
	Kind       Kind      `json:"kind"`
	Prompt     string    `json:"prompt,omitempty"`
	Title      string    `json:"title,omitempty"`
	Status     Status    `json:"status"`
	CreatedAt  time.Time `json:"created_at,omitzero"`
	UpdatedAt  time.Time `json:"updated_at,omitzero"`  // never runs backwards, whatever the clock does
	PromptedAt time.Time `json:"prompted_at,omitzero"` // the last dispatch or prompt

	Camp  *Camp  `json:"camp,omitempty"` // nil for a watched one
	Dir   string `json:"dir,omitempty"`  // where a watched one works
	Herdr *Herdr `json:"herdr,omitempty"`
	// FormerPanes are ids of the pane from before it was moved: what was started in it then knows it by one of them.
	FormerPanes []string `json:"former_panes,omitempty"`
	Head        string   `json:"head,omitempty"` // the branch's commit at the last dispatch or prompt
	Model       string   `json:"model,omitempty"`
	Effort      string   `json:"effort,omitempty"`
	Agent       string   `json:"agent,omitempty"` // claude, codex, pi, opencode
	Args        []string `json:"args,omitempty"`  // of the agent's own program, as they were given for it
	ReportPath  string   `json:"report_path,omitempty"`
	Output      string   `json:"output,omitempty"` // the pane's last text
	Note        string   `json:"note,omitempty"`
	Session     *Session `json:"session,omitempty"`

	AgentNotFoundSince   time.Time `json:"agent_not_found_since,omitzero"`
	IdleUnconfirmedSince time.Time `json:"idle_unconfirmed_since,omitzero"`
	BackgroundSince      time.Time `json:"background_since,omitzero"`
	PauseSeenAt          time.Time `json:"pause_seen_at,omitzero"`
	DialogSince          time.Time `json:"dialog_since,omitzero"`

	Decision     *Decision   `json:"decision,omitempty"`
	Amendments   []Amendment `json:"amendments,omitempty"`
	Redispatches []time.Time `json:"redispatches,omitempty"`

	CommanderProject string    `json:"commander_project,omitempty"` // the root that its wakes go to; "" for the task's own
	CommanderPane    string    `json:"commander_pane,omitempty"`
	WakeID           string    `json:"wake_id,omitempty"`      // its last wake: what names that one as news
	WakeProject      string    `json:"wake_project,omitempty"` // the root whose queue it went to; "" for the task's own
	Evidence         *Evidence `json:"evidence,omitempty"`
}

// CutShort reports whether nobody can be at work any more on a pending task's dispatch: its next step is long overdue.
func (t Task) CutShort() bool {
	most := 15 * time.Minute // git makes a worktree
	if t.Herdr != nil {
		most = 5 * time.Minute // an agent starts, or a person answers its first dialog
	}
	return t.Status == Pending && time.Since(t.UpdatedAt) > most
}

// Camp is the git worktree that a soldier works in.
type Camp struct {
	Path   string `json:"path"`
	Branch string `json:"branch,omitempty"`
	Base   string `json:"base,omitempty"`
}

// MadeIn reports whether vx can have made the camp, for the task with this id of the project. A record is a file that anybody
// may have edited, and a camp is removed with all that is in it.
func (c *Camp) MadeIn(p *state.Project, id string) bool {
	in, made := filepath.Dir(c.Path), p.Join("camps")
	there, err := os.Stat(in)
	real, errMade := os.Stat(made)
	same := in == made || err == nil && errMade == nil && os.SameFile(there, real)
	return same && filepath.Base(c.Path) == id &&
		strings.HasPrefix(c.Branch, "vx/") && strings.HasSuffix(c.Branch, "-"+id[:min(8, len(id))])
}

// Herdr is where a soldier's agent runs.
type Herdr struct {
	Socket         string `json:"socket,omitempty"`
	Workspace      string `json:"workspace,omitempty"`
	Tab            string `json:"tab,omitempty"`
	Pane           string `json:"pane,omitempty"`
	Agent          string `json:"agent,omitempty"` // its name
	TerminalID     string `json:"terminal_id,omitempty"`
	StateChangeSeq uint64 `json:"state_change_seq"` // at the last dispatch or prompt
}

// Session is the client's process, and the record that it keeps of itself.
type Session struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"`
	Record string `json:"record,omitempty"` // path
}

// Decision is what a soldier asks its commander.
type Decision struct {
	Question   string    `json:"question"`
	Options    []string  `json:"options,omitempty"`
	AskedAt    time.Time `json:"asked_at,omitzero"`
	Answer     string    `json:"answer,omitempty"`
	AnsweredAt time.Time `json:"answered_at,omitzero"`
	Dismissed  bool      `json:"dismissed,omitempty"`
}

// Amendment is a prompt that was given later.
type Amendment struct {
	At   time.Time `json:"at,omitzero"`
	Text string    `json:"text"`
}

// Evidence is why the sentinel took the soldier to be doing what it is doing.
type Evidence struct {
	State string    `json:"state"`
	By    string    `json:"by,omitempty"`
	Says  []string  `json:"says,omitempty"` // what the others said
	At    time.Time `json:"at,omitzero"`
}
