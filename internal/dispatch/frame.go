package dispatch

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// maxPrompt is in bytes; herdr takes a megabyte with all around it.
const maxPrompt = 256 << 10

// frame is what a soldier is told before its prompt. The prompt comes last, so that what stands behind its end on the
// screen is the soldier's own; and the line of the form that a question has holds a placeholder, which is never a question.
// internal/screen relies on both.
func (d *Desk) frame(t task.Task) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("You are working on a task that was handed to you through vx (task %s). Nobody watches this session: whoever gave you the task is woken when you have finished, and not before. What counts is this.", Short(t.ID))
	line("")
	line("- You are in a git worktree of your own, on the branch %s. Stay in it and on that branch; do not merge, and do not push.", t.Camp.Branch)
	if t.Kind == wake.KindScout {
		line("- You are done when your report is written to %s. Write that file at the very end, and change no code. Then say in a few lines what it says.", state.Quote(t.ReportPath))
	} else {
		line("- You are done when your work is committed on that branch. Commit all of it; what is not committed does not count. Then say in a few lines what you did.")
	}
	line("- If you cannot go on without a decision, end your turn with a line of the following form, at the left edge and not in a code block, and below it the options as a list:")
	line("needs-decision: <question>")
	line("- If you end your turn only to wait for something that goes on elsewhere, run `touch %s` before, and remove that file as soon as you go on. Without it an idle session counts as one that has ended.", state.Quote(d.pauseFile(t)))
	line("- Wait in the foreground for what you start yourself; leave nothing running in the background when you finish.")
	return b.String()
}

// framed is all that a new soldier is told.
func (d *Desk) framed(t task.Task) string {
	return d.frame(t) + "\nThe task:\n\n" + t.Prompt
}

// again is what the successor of an interrupted soldier is told: the same, and what came later.
func (d *Desk) again(t task.Task) string {
	var b strings.Builder
	b.WriteString(d.frame(t))
	b.WriteString("\nAnother session began this task and was interrupted. What it left is in the worktree: look at git log and git status first, and go on from there.\n")
	b.WriteString("\nThe task:\n\n" + t.Prompt)
	for _, a := range t.Amendments {
		b.WriteString("\n\nLater it was told:\n\n" + a.Text)
	}
	return b.String()
}

// answer is what a soldier is told that asked for a decision.
func answer(t task.Task, text string) string {
	if t.Decision == nil || t.Decision.Question == "" {
		return text
	}
	return fmt.Sprintf("You asked: %s\nThe decision: %s", t.Decision.Question, text)
}

func (d *Desk) pauseFile(t task.Task) string { return d.Project.Join("pauses", t.ID) }

// spoken is a text as it can be typed into a terminal: without control characters, which a terminal would take for keys.
func spoken(text string) (string, error) {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	switch {
	case strings.TrimSpace(text) == "":
		return "", &Refusal{"prompt", "it is empty", "say what is to be done, or - for what comes on stdin"}
	case len(text) > maxPrompt:
		return "", &Refusal{"prompt", fmt.Sprintf("it is too much to be typed: more than %d bytes", maxPrompt), "write it to a file of the repository, and name that in the prompt"}
	}
	return strings.TrimSpace(text), nil
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == utf8.RuneError }
