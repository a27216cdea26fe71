package claude

import (
	"strings"
	"testing"
	"time"
)

func TestFailedTurnsAreCountedAtTheEnd(t *testing.T) {
	prompt := func(text string) string {
		return `{"type":"user","message":{"role":"user","content":"` + text + `"}}`
	}
	failed := func(at string) string {
		return `{"type":"assistant","timestamp":"` + at + `","message":{"content":[{"type":"text","text":"API Error: 529"}]},"isApiErrorMessage":true}`
	}
	const (
		first  = "2026-11-30T17:51:17.347Z"
		second = "2026-11-30T17:55:17.000Z"
		fine   = `{"type":"assistant","message":{"content":[{"type":"text","text":"fine"}]}}`
		result = `{"type":"user","message":{"content":[{"type":"tool_result","content":"` + "API Error" + `"}]}}`
		aside  = `{"type":"assistant","isSidechain":true,"message":{"content":[]},"isApiErrorMessage":true}`
		blocks = `{"type":"user","message":{"content":[{"type":"text","text":"again"}]}}`
		local  = `{"type":"user","message":{"content":"<command-name>/model</command-name>"}}`
	)
	for _, c := range []struct {
		name string
		rows []string
		want int
		last string
	}{
		{"no turn", []string{prompt("hello")}, 0, ""},
		{"a turn that worked", []string{prompt("hello"), fine}, 0, ""},
		{"one failed", []string{prompt("a"), fine, prompt("b"), failed(first)}, 1, first},
		{"two failed", []string{prompt("a"), failed(first), blocks, failed(second)}, 2, second},
		{"two rows of one turn", []string{prompt("a"), failed(first), failed(second)}, 1, second},
		{"after a tool", []string{prompt("a"), fine, result, failed(first)}, 1, first},
		{"a command of the client between", []string{prompt("a"), failed(first), local, failed(second)}, 1, second},
		{"one that worked after it", []string{prompt("a"), failed(first), prompt("b"), fine}, 0, ""},
		{"one that has not answered yet", []string{prompt("a"), failed(first), prompt("b")}, 1, first},
		{"a subagent's", []string{prompt("a"), fine, aside}, 0, ""},
		{"a line that is no row", []string{prompt("a"), failed(first), `{"type":`}, 1, first},
		{"two failed, the client's own rows between them longer than what is read first", []string{prompt("a"), failed(first), prompt("b"),
			`{"type":"api-request-shape","shape":"` + strings.Repeat("x", 79<<10) + `"}`, failed(second)}, 2, second},
		{"a row longer than what is read first", []string{prompt("a"), failed(first), prompt(strings.Repeat("x", 70<<10))}, 1, first},
	} {
		n, last := Failures(transcript(t, c.rows...))
		if n != c.want {
			t.Errorf("%s: %d failed, want %d", c.name, n, c.want)
		}
		if want, _ := time.Parse(time.RFC3339, c.last); n > 0 && !last.Equal(want) {
			t.Errorf("%s: the last failed at %v, want %v", c.name, last, want)
		}
	}
	if n, _ := Failures(t.TempDir() + "/none"); n != 0 {
		t.Errorf("without a transcript %d failed", n)
	}
}

func TestRecordedFailuresAreCounted(t *testing.T) {
	for _, version := range []string{"2.1.197", "2.1.332"} {
		for name, want := range map[string]int{"api-error": 1, "api-error-mid-turn": 1, "idle": 0, "killed-enqueued-continued": 0} {
			n, last := Failures("../../testdata/transcripts/" + version + "/" + name + ".jsonl")
			if n != want || last.IsZero() == (want > 0) {
				t.Errorf("%s of %s: %d failed, the last at %v; want %d", name, version, n, last, want)
			}
		}
	}
}
