package soldier

import (
	"fmt"
	"strings"

	"vx/internal/task"
)

const (
	shownLines  = 6  // of the pane, in a note
	dialogLines = 12 // of a dialog: what is asked stands above the answers
	maxOutput   = 64 << 10
)

// MayLack is the note of an end whose pane could not be read to the end.
const MayLack = "The final report may be missing"

// readNote says what is wrong with the reading of the pane that an end rests on; "" for nothing.
func readNote(o *Look) string {
	var why string
	switch x := o.Text; {
	case o.Agent == nil:
		return ""
	case x == nil:
		why = "herdr takes the agent to be busy, so its pane was not read"
	case !x.readable():
		why = "the pane could not be read (" + x.Err + ")"
	case !x.Stable && x.Visible:
		why = "the pane had not come to rest when it was read, and only the visible part of it could be, which may be scrolled back"
	case !x.Stable:
		why = "the pane had not come to rest when it was read"
	case x.Visible:
		why = "only the visible part of the pane could be read, which may be scrolled back"
	default:
		return ""
	}
	return MayLack + ": " + why + "; `vx prompt` can ask the soldier for it."
}

// output is what the pane showed, with a note as its last line.
func output(o *Look, note string) string {
	text := ""
	switch {
	case o.Text != nil && o.Text.readable():
		text = strings.TrimRight(o.Text.Text, " \t\r\n")
	case o.Answer != nil:
		text = strings.TrimSpace(*o.Answer)
	}
	if len(text) > maxOutput {
		text = strings.ToValidUTF8(text[len(text)-maxOutput:], "")
	}
	switch {
	case note == "":
		return text
	case text == "":
		return note
	}
	return text + "\n" + note
}

// shows is the reading of the pane that a note ends with.
func shows(o *Look) string {
	switch x := o.Text; {
	case o.Agent == nil:
		return ""
	case x == nil:
		return ""
	case !x.readable():
		return "\nThe pane could not be read: " + x.Err
	default:
		text := lastLines(x.Text, shownLines)
		if text == "" {
			return "\nThe pane shows nothing."
		}
		return "\nThe pane showed:\n" + text
	}
}

func goneNote(t *task.Task, why string, p *Proof) string {
	switch {
	case p.Commit:
		return why + " before an end of its work was seen. Its branch has new commits: look at them before you redispatch."
	case p.Report:
		return why + " before an end of its work was seen. A report was written: read it before you redispatch."
	case unread(t, p) != "":
		return why + " before an end of its work was seen. Whether there is a commit is not known: " + unread(t, p) + "."
	}
	return why + " before it delivered: there is no commit nor report."
}

// unread says why nothing is known of a camp's branch, "" where it could be read.
func unread(t *task.Task, p *Proof) string {
	switch {
	case t.Camp == nil || t.Camp.Branch == "" || p.Head != "":
		return ""
	case p.Gone != "":
		return "its repository is gone from " + p.Gone
	}
	return "its branch cannot be read"
}

func neverNote(t *task.Task, o *Look) string {
	note := "It never started: it was not seen working within 2 minutes of being prompted. A dialog may be in its way, or the prompt was not taken."
	if t.Camp == nil && len(t.Amendments) == 0 {
		note = "It was not seen working within 2 minutes of being watched."
	}
	return note + shows(o)
}

func dialogNote(o *Look, e Evidence) string {
	switch {
	case o.Text != nil && o.Text.readable():
		return lastLines(o.Text.Text, dialogLines)
	case o.Pending != nil && *o.Pending != "":
		return firstLines(*o.Pending, dialogLines)
	case o.Client != nil && o.Client.Waiting != "":
		return o.Client.Waiting
	}
	return e.what()
}

// firstLines are at most n.
func firstLines(text string, n int) string {
	lines := strings.SplitN(text, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

func backgroundNote(e Evidence) string {
	return fmt.Sprintf("The turn still showed running work after 30 minutes (%s), and the report may not exist.", e.what())
}

// unprovenNote explains an end without a proof.
func unprovenNote(t *task.Task, o *Look, m *Memory) string {
	var b strings.Builder
	if !t.PauseSeenAt.IsZero() {
		if o.Pause != nil && o.Pause.Declared {
			b.WriteString("It declared a pause more than 30 minutes ago, and has not woken up. ")
		} else {
			b.WriteString("It had declared a pause that is gone: it woke up, removed its pause file, and ended its turn without delivering. ")
		}
	}
	idle := "The pane is idle"
	if o.Agent == nil {
		idle = "The session is idle"
	}
	switch {
	case o.Proof.delivers(t):
		b.WriteString(idle + ". herdr was restarted while it worked, so its turn may have been cut off; what it delivered is from before.")
	case o.Proof.Commit:
		b.WriteString(idle + ", and there is no report since it was prompted, though its branch has new commits.")
	case unread(t, o.Proof) != "":
		b.WriteString(idle + ", and no report was written. Whether there is a commit is not known: " + unread(t, o.Proof) + ".")
	case t.Camp != nil && t.Camp.Branch != "" || t.ReportPath != "":
		b.WriteString(idle + ", and there is no commit nor report since it was prompted.")
	default:
		b.WriteString(idle + ", and there is no commit since.")
	}
	if o.Agent != nil {
		b.WriteString(" Do not judge by a `herdr pane read`, which can show an old viewport; this is the reading at that moment.")
	}
	b.WriteString(shows(o))
	return b.String()
}
