package dispatch

import (
	"strings"
	"testing"

	"vx/internal/screen"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// shown is a conversation as a client of 80 columns shows it: a prompt, wrapped, and what was answered.
func shown(prompt, said string) string {
	const columns = 80
	wrap := func(text, first, rest string) string {
		var out []string
		for line := range strings.SplitSeq(text, "\n") {
			at := rest
			if len(out) == 0 {
				at = first
			}
			row := at
			for _, word := range strings.Fields(line) {
				if len(row)+1+len(word) > columns-4 && row != at {
					out = append(out, row)
					row, at = rest, rest
				}
				if row != at {
					row += " "
				}
				row += word
			}
			out = append(out, strings.TrimRight(row, " "))
		}
		return strings.Join(out, "\n")
	}
	rule := strings.Repeat("─", columns)
	text := wrap(prompt, "❯ ", "  ")
	if said != "" {
		text += "\n\n" + wrap(said, "● ", "  ") + "\n\n✻ Baked for 4s"
	}
	return text + "\n\n" + rule + "\n❯\u00a0\n" + rule + "\n  ? for shortcuts\n"
}

// What the soldier is told about asking must never be taken for its asking, and what it asks must be found.
func TestTheFrameIsNoQuestionAndAQuestionBehindItIsOne(t *testing.T) {
	d := &Desk{Project: &state.Project{Dir: "/home/u/.vexillum/projects/shop-01234567"}}
	for _, prompt := range []string{
		"Fix it", "Add a changelog entry for the version 0.2, in the manner of the entries before.",
		"Find out why. If you are in doubt, write\nneeds-decision: keep or drop?\nas the others do.",
	} {
		for _, kind := range []task.Kind{wake.KindMission, wake.KindScout} {
			tk := task.Task{ID: "0123456789abcdef", Kind: kind, Prompt: prompt, ReportPath: "/r/a b.md", Camp: &task.Camp{Branch: "vx/x"}}
			for name, told := range map[string]string{"new": d.framed(tk), "again": d.again(tk)} {
				if q, _, ok := screen.Decision("claude", shown(told, ""), prompt); ok {
					t.Errorf("%s %s: the prompt alone asks %q", kind, name, q)
				}
				if q, _, ok := screen.Decision("claude", shown(told, "All of it is done."), prompt); ok {
					t.Errorf("%s %s: a soldier that has finished asks %q", kind, name, q)
				}
				q, options, ok := screen.Decision("claude", shown(told, "I looked at it.\n\nneeds-decision: Shall I merge the two lists?\n- yes\n- no"), prompt)
				if !ok || q != "Shall I merge the two lists?" || len(options) != 2 {
					t.Errorf("%s %s: the soldier asks, and %q %q %v was read", kind, name, q, options, ok)
				}
			}
		}
	}
}

func TestTheFrameSaysAllThatASoldierHasToKnow(t *testing.T) {
	d := &Desk{Project: &state.Project{Dir: "/home/u/.vexillum/projects/shop-01234567"}}
	tk := task.Task{ID: "0123456789abcdef", Kind: wake.KindMission, Prompt: "Fix it", Camp: &task.Camp{Branch: "vx/fix-it-01234567"}}
	for _, want := range []string{
		"\nneeds-decision: <question>\n", "on the branch vx/fix-it-01234567.", "committed",
		"touch /home/u/.vexillum/projects/shop-01234567/pauses/0123456789abcdef`", "remove that file",
	} {
		if !strings.Contains(d.framed(tk), want) {
			t.Errorf("no %q in:\n%s", want, d.framed(tk))
		}
	}
	if !strings.HasSuffix(d.framed(tk), "\n\nFix it") {
		t.Error("the prompt is not the last that it is told")
	}
	tk.Kind, tk.ReportPath = wake.KindScout, "/r/a b.md"
	if !strings.Contains(d.framed(tk), "'/r/a b.md'") || strings.Contains(d.framed(tk), "committed") {
		t.Errorf("a scout is told:\n%s", d.framed(tk))
	}
	tk.Amendments = []task.Amendment{{Text: "and the other"}}
	if again := d.again(tk); !strings.HasSuffix(again, "\n\nand the other") || !strings.Contains(again, "Fix it") || !strings.Contains(again, "interrupted") {
		t.Errorf("a successor is told:\n%s", again)
	}
}

func TestNamesAreMadeOfTitles(t *testing.T) {
	for title, want := range map[string]string{
		"Add a changelog entry": "add-a-changelog-entry", "  --Fix #12, (now)! ": "fix-12-now", "Añade la acentuación": "anade-la-acentuacion",
		"2nd try": "nd-try", "続けて": "task", strings.Repeat("long ", 20): "long-long-long-long-long-long-long-long", "../../etc": "etc",
	} {
		if got := slug(title, branchWidth); got != want {
			t.Errorf("%q is %q, want %q", title, got, want)
		}
	}
	tk := task.Task{ID: "0123456789abcdef", Title: strings.Repeat("long ", 20)}
	if got := agentOf(tk); got != "long-long-long-long-lon-01234567" {
		t.Errorf("its agent is %q", got)
	}
	tk.Redispatches = append(tk.Redispatches, tk.CreatedAt, tk.CreatedAt)
	if got := agentOf(tk); len(got) > nameWidth || !strings.HasSuffix(got, "-01234567-3") {
		t.Errorf("its third agent is %q", got)
	}
	if got := titleOf("  Add a changelog entry for all the versions that were ever released\nin this world"); got != "Add a changelog entry for all the versions that were ever…" {
		t.Errorf("the title is %q", got)
	}
}
