package status

import (
	"path/filepath"
	"time"

	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// Task is how far one piece of work has come.
type Task struct {
	ID     string      `json:"id"`
	Kind   task.Kind   `json:"kind"`
	Title  string      `json:"title"`
	Status task.Status `json:"status"`
	Since  time.Time   `json:"since,omitzero"` // of a running one: when it was last told something; zero where that is not known
	Waits  string      `json:"waits_for,omitempty"`
	Agent  string      `json:"agent,omitempty"`
	Pane   string      `json:"pane,omitempty"`
}

// tasks are those that are not over, or all.
func (r *Report) tasks(p *state.Project, all bool) {
	tasks, bad := task.Open(p).List()
	for _, err := range bad {
		r.trouble(err)
	}
	for _, t := range tasks {
		if t.Status.Over() && !all {
			r.Over++
			continue
		}
		one := Task{ID: t.ID, Kind: t.Kind, Title: t.Title, Status: t.Status, Since: Since(t), Waits: Waits(t), Agent: t.Agent}
		if t.Herdr != nil {
			one.Pane = t.Herdr.Pane
		}
		r.Tasks = append(r.Tasks, one)
	}
}

// Since is when a task came to its status; of a running one, when it was last told something.
func Since(t task.Task) time.Time {
	switch {
	case t.Status == task.Running && !t.PromptedAt.IsZero():
		return t.PromptedAt
	case !t.UpdatedAt.IsZero():
		return t.UpdatedAt
	}
	return t.CreatedAt
}

// Waits says what a task waits for, "" for nothing more.
func Waits(t task.Task) string {
	switch t.Status {
	case task.Pending:
		if t.CutShort() {
			return "you to strike it: its dispatch was cut short"
		}
		return "its agent to start"
	case task.Running:
		return waitsRunning(t)
	case task.Blocked:
		if t.Decision != nil && t.Decision.Question != "" {
			return "your decision: " + t.Decision.Question
		}
		return "your decision"
	case task.Done:
		switch {
		case t.Kind == wake.KindScout && t.ReportPath != "":
			return "you to read " + filepath.Base(t.ReportPath)
		case t.Camp == nil:
			return "you"
		}
		return "land, ship or prompt"
	case task.Unconfirmed:
		return "you to look at it"
	case task.Interrupted:
		return "redispatch or strike"
	case task.Shipped:
		return "its review"
	case task.Landed:
		return "strike"
	}
	return ""
}

func waitsRunning(t task.Task) string {
	since := func(what string, at time.Time) string {
		return what + ", since " + moment(at, time.Now())
	}
	switch {
	case !t.DialogSince.IsZero() && t.Herdr != nil:
		return since("you, at a dialog in pane "+t.Herdr.Pane, t.DialogSince)
	case !t.DialogSince.IsZero():
		return since("you, at a dialog", t.DialogSince)
	case !t.AgentNotFoundSince.IsZero():
		return since("its agent, which is nowhere to be seen", t.AgentNotFoundSince)
	case !t.BackgroundSince.IsZero():
		return since("what runs in its background", t.BackgroundSince)
	case !t.PauseSeenAt.IsZero() && t.Evidence != nil && t.Evidence.State == "idle":
		return since("what it has paused for", t.PauseSeenAt)
	}
	return "the end of its turn"
}
