package screen

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An answer may hold a copy of any screen, each line of it where the answer puts its lines: while it streams, nothing
// of that makes the session idle.
func TestACopyOfAnIdleScreenInAnAnswerProvesNothing(t *testing.T) {
	layouts := map[string]struct {
		head, margin string
		input        func(lines pane) int // where the input begins
	}{
		"claude": {"● ", "  ", func(lines pane) int {
			if box, ok := findClaudeBox(lines); ok {
				return box.top
			}
			return -1
		}},
		"codex": {"• ", "  ", func(lines pane) int {
			if prompt, ok := codexPrompt(lines); ok {
				return prompt
			}
			return -1
		}},
	}
	var idle, streams []capture // streams: nothing on the screen shows the turn
	for _, c := range corpus(t) {
		_, known := layouts[c.agent]
		switch {
		case known && c.truth == "idle":
			idle = append(idle, c)
		case known && c.truth == "working" && Read(c.agent, c.text, "").State == Unknown:
			streams = append(streams, c)
		}
	}
	for _, c := range streams {
		layout := layouts[c.agent]
		lines := read(c.text)
		at := layout.input(lines)
		if at < 0 {
			continue
		}
		for _, other := range idle {
			if other.agent != c.agent {
				continue
			}
			copied := read(other.text)
			end := layout.input(copied)
			if end < 0 {
				continue
			}
			for end > 0 && copied[end-1] == "" {
				end--
			}
			for _, shown := range [][]string{copied, copied[:end]} {
				for _, keep := range []bool{true, false} {
					answer := []string{"❯ Go on", "", layout.head + "It said:", ""}
					for _, line := range shown {
						if !keep {
							line = strings.TrimSpace(line)
						}
						answer = append(answer, strings.TrimRight(layout.margin+line, " "))
					}
					text := strings.Join(append(append(answer, "", ""), lines[at:]...), "\n")
					if r := Read(c.agent, text, ""); r.State == Idle {
						t.Errorf("%s with a copy of %s: idle by %s %q", c.path, other.path, r.By, r.Evidence)
					}
				}
			}
		}
	}
}

// Of these two screens one is at rest, and on the other an answer streams whose last line is the first one's summary:
// they are the same, so that it takes the title to tell them apart.
func TestASummaryOfCodexAndItsCopyAreToldByTheTitleAlone(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "screens", "codex-0.171.0", "80x24")
	rest, err := os.ReadFile(filepath.Join(dir, "idle-twin-1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	streams, err := os.ReadFile(filepath.Join(dir, "working-twin-1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rest, streams) {
		t.Fatal("the screens differ")
	}
	for title, want := range map[string]State{"": Unknown, "Hello | shop": Idle, "⠸ Hello | shop": Working} {
		if r := Read("codex", string(rest), title); r.State != want {
			t.Errorf("title %q: got %+v, want %s", title, r, want)
		}
	}
}
