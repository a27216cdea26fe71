package task

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// News says of wakes in a project's queue why they are not news any more, "" where they are; see wake.Queue.News. A wake
// about a task that is not known is news, and so is one whose task cannot be read: that is the error.
func News(dir *state.Dir, p *state.Project) func(*wake.Wake) (string, error) {
	return func(w *wake.Wake) (string, error) {
		if w.Kind != wake.KindMission && w.Kind != wake.KindScout || !isID(w.TaskID) {
			return "", nil
		}
		at := p
		if w.Origin != "" {
			at = dir.Project(w.Origin)
		}
		t, _, err := Open(at).read(w.TaskID)
		if _, none := errors.AsType[*NotFound](err); none {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return stale(*w, t), nil
	}
}

// stale is why a wake is not news about the task as it is now.
func stale(w wake.Wake, t Task) string {
	is, said := t.Status, Status(w.NewStatus)
	switch {
	case is == Struck:
		return "camp struck"
	case is == Landed:
		return "landed since"
	case w.Dialog != "" && (is != Running || t.DialogSince.IsZero()):
		return "the dialog is gone"
	case w.Dialog != "", said == "":
		return ""
	case is == said:
		// Back where it was: of another round, if it is not the one that the record names.
		if w.ID != t.WakeID && w.Detected.Before(t.PromptedAt) {
			return "prompted since"
		}
		return ""
	case is == Shipped:
		return "shipped since"
	case is != Running:
		return string(is) + " since"
	}
	switch {
	case said == Blocked && t.Decision != nil && t.Decision.Dismissed:
		return "dismissed since"
	case said == Blocked && t.Decision != nil && !t.Decision.AnsweredAt.IsZero():
		return "answered since"
	case said == Interrupted:
		return "redispatched since"
	case t.PromptedAt.After(w.Detected):
		return "prompted since"
	}
	return "at work again"
}

// Soldier reports whether a pane is that of a soldier: of a task, in any project, that has not ended and whose agent is not
// gone. An empty socket fits any.
func Soldier(p *state.Project, pane, socket string) bool {
	if pane == "" {
		return false
	}
	projects, _ := p.State().Projects()
	for _, p := range projects {
		tasks, _ := Open(p).List()
		for _, t := range tasks {
			if t.Herdr != nil && (t.Herdr.Pane == pane || slices.Contains(t.FormerPanes, pane)) && !t.Status.Over() && t.Status != Interrupted && sameSocket(t.Herdr.Socket, socket) {
				return true
			}
		}
	}
	return false
}

// Watched reports whether a client's process is that of a soldier in no pane: of a task, in any project, as above.
func Watched(p *state.Project, client proc.ID) bool {
	if client.IsZero() {
		return false
	}
	projects, _ := p.State().Projects()
	for _, p := range projects {
		tasks, _ := Open(p).List()
		for _, t := range tasks {
			if s := t.Session; s != nil && s.PID == client.PID && s.Start == client.Start && !t.Status.Over() && t.Status != Interrupted {
				return true
			}
		}
	}
	return false
}

func sameSocket(a, b string) bool {
	if a == "" || b == "" || filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}
