//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// A commander gives an order for another project, in which somebody else waits for that project's own news.
func TestACommanderInAnotherProjectIsToldAndNobodyElse(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		f := newField(newCommand(t, version), 20)
		other := f.repository("other")
		f.vx("init", "--project", other, "--await", "always", "--yes")
		bystander := f.startIn(other, nil)
		bystander.prompt("hello over there")
		f.awaiting(1)
		f.commandHere()

		f.api.when("haul the stone", answer{bash: aCommit + "; echo stone-is-hauled"})
		id, _ := f.dispatch("work elsewhere", "--project", other, "haul the stone")
		if task := f.tasks()[id]; task.CommanderProject != f.project || task.CommanderPane == "" {
			t.Errorf("the task's commander is in %q, pane %q", task.CommanderProject, task.CommanderPane)
		}
		f.told(id, "running -> done", "stone-is-hauled")
		f.awaiting(2)

		// The bystander still hears what is its own.
		f.vx("wake", "send", "--project", other, "--title", "news from over there", "--wait")
		f.awaiting(2)
		f.once("news from over there")
		f.nothing(id)
		for name, text := range f.transcripts() {
			heard := rowsOf(text, `"task-notification"`)
			switch {
			case strings.HasSuffix(filepath.Dir(name), "-proj"):
				if !strings.Contains(heard, id) || strings.Contains(heard, "news from over there") {
					t.Errorf("the commander heard: %s", heard)
				}
			case strings.HasSuffix(filepath.Dir(name), "-other"):
				if strings.Contains(heard, id) || !strings.Contains(heard, "news from over there") {
					t.Errorf("the bystander heard: %s", heard)
				}
			default: // the soldier's
				if heard != "" {
					t.Errorf("%s heard: %s", name, heard)
				}
			}
		}
	})
}

// rowsOf are the rows of a transcript that hold the part.
func rowsOf(text, part string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			b.WriteString(line)
		}
	}
	return b.String()
}
