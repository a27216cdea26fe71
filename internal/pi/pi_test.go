package pi

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/receipt"
)

const token = "7f3a9c51e8d24b06"

const recordings = "../../testdata/transcripts/pi-1.6.0"

// What the recordings of the real client prove for the token: testdata/transcripts/README.md.
var recorded = map[string]receipt.Receipt{
	"idle":             receipt.TurnStarted,
	"new":              receipt.TurnStarted,
	"queued":           receipt.Absent,
	"queued-told":      receipt.TurnStarted,
	"killed-queued":    receipt.Absent,
	"killed-continued": receipt.TurnStarted,
	"escape":           receipt.Absent,
	"failed":           receipt.TurnFailed,
	"mentioned":        receipt.Absent,
}

// session writes a session's file into a directory of its own.
func session(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "2026-12-01T00-00-00-000Z_1.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func shown(t *testing.T, path string, size int64) receipt.Receipt {
	t.Helper()
	got, err := FindReceipt(path, size, time.Time{}, token)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRecordingsOfTheRealClient(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".jsonl")
		names = append(names, name)
		path := session(t, string(data))
		if got := shown(t, path, 0); got != recorded[name] {
			t.Errorf("%s: %v, want %v", name, got, recorded[name])
		}
		if got := shown(t, path, int64(len(data))); got != receipt.Absent {
			t.Errorf("%s, all of it before the delivery: %v, want absent", name, got)
		}
		if got, err := FindReceipt(path, 0, time.Time{}, "0123456789abcdef"); got != receipt.Absent || err != nil {
			t.Errorf("%s, another token: %v, %v, want absent", name, got, err)
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(maps.Keys(recorded)); !slices.Equal(names, want) {
		t.Errorf("the recordings are %q, expected are %q", names, want)
	}
}

// A client can be looked at, or killed, at any moment.
func TestNoBeginningOfARecordingProvesTooMuch(t *testing.T) {
	for name, want := range recorded {
		data, err := os.ReadFile(filepath.Join(recordings, name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		proof := len(data)
		if i := bytes.Index(data, []byte(token)); i >= 0 {
			proof = i
		}
		for cut := 0; cut <= len(data); cut += 1 + len(data)/40 {
			got := shown(t, session(t, string(data[:cut])), 0)
			if cut <= proof && got != receipt.Absent || got > receipt.Absent && got != receipt.TurnStarted && got != want {
				t.Errorf("%s, %d of %d bytes: %v, and %v in the end", name, cut, len(data), got, want)
			}
		}
	}
}

func message(role, content, rest string) string {
	return fmt.Sprintf(`{"type":"message","id":"a0000001","parentId":null,"timestamp":"2026-12-01T00:00:00.000Z","message":{"role":%q,"content":%s%s}}`, role, content, rest)
}

func TestWhatARowProves(t *testing.T) {
	text := `"vx: news (delivery ` + token + `)"`
	blocks := `[{"type":"text","text":` + text + `}]`
	told := message("user", blocks, "")
	answer := message("assistant", `[{"type":"text","text":"fine"}]`, `,"stopReason":"stop"`)
	failed := message("assistant", `[]`, `,"stopReason":"error"`)
	prompt := message("user", `"hello"`, "")
	for _, c := range []struct {
		name string
		rows []string
		want receipt.Receipt
	}{
		{"nothing", []string{prompt, answer}, receipt.Absent},
		{"an empty file", nil, receipt.Absent},
		{"a message of the user", []string{prompt, answer, told}, receipt.TurnStarted},
		{"one whose content is a string", []string{message("user", text, "")}, receipt.TurnStarted},
		{"one with the role behind the text", []string{`{"message":{"content":` + text + `,"role":"user"},"type":"message"}`}, receipt.TurnStarted},
		{"one with a picture before the text", []string{message("user", `[{"type":"image","data":"x"},{"text":`+text+`,"type":"text"}]`, "")}, receipt.TurnStarted},
		{"one that was answered", []string{told, answer}, receipt.TurnStarted},
		{"one that the service failed", []string{told, failed}, receipt.TurnFailed},
		{"one that it failed first and then answered", []string{told, failed, failed, answer}, receipt.TurnStarted},
		{"one that it failed, then another prompt", []string{told, failed, prompt, answer}, receipt.TurnFailed},
		{"one that was answered, then a prompt that failed", []string{told, answer, prompt, failed}, receipt.TurnStarted},
		{"one that was cut off by Esc", []string{told, message("assistant", `[]`, `,"stopReason":"aborted"`)}, receipt.TurnStarted},
		{"the model says it", []string{message("assistant", blocks, "")}, receipt.Absent},
		{"a tool prints it", []string{message("toolResult", blocks, `,"toolName":"bash"`)}, receipt.Absent},
		{"a person runs a command with it", []string{`{"type":"message","message":{"role":"bashExecution","command":` + text + `,"output":` + text + `}}`}, receipt.Absent},
		{"the system prompt has it", []string{message("system", text, "")}, receipt.Absent},
		{"another extension's message", []string{`{"type":"custom_message","customType":"x","content":` + text + `,"display":true}`}, receipt.Absent},
		{"a summary quotes it", []string{`{"type":"compaction","summary":` + text + `,"firstKeptEntryId":"x"}`, `{"type":"branch_summary","summary":` + text + `}`}, receipt.Absent},
		{"the session's name", []string{`{"type":"session_info","name":` + text + `}`}, receipt.Absent},
		{"somewhere else in a message of the user", []string{`{"type":"message","message":{"role":"user","content":"x","note":` + text + `}}`}, receipt.Absent},
		{"a thought in a message of the user", []string{message("user", `[{"type":"thinking","text":`+text+`}]`, "")}, receipt.Absent},
		{"a type of tomorrow", []string{`{"type":"queued","content":` + text + `}`}, receipt.NoTranscript},
		{"a role of tomorrow", []string{message("operator", text, "")}, receipt.NoTranscript},
		{"a line that was cut off", []string{told[:len(told)-5]}, receipt.NoTranscript},
		{"a line that was cut off, then the whole", []string{told[:len(told)-5], told}, receipt.TurnStarted},
		{"what is no row", []string{"nonsense " + token, "\x00\xff"}, receipt.NoTranscript},
	} {
		if got := shown(t, session(t, strings.Join(c.rows, "\n")), 0); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestASessionWithoutAFileProvesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.jsonl")
	if got := shown(t, path, 0); got != receipt.NoTranscript {
		t.Errorf("no file: %v", got)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, path, 0); got != receipt.NoTranscript {
		t.Errorf("a directory: %v", got)
	}
	if got := shown(t, session(t, ""), 100); got != receipt.NoTranscript {
		t.Errorf("a file that is shorter than it was: %v", got)
	}
}

func TestTheProofMayBeInTheSessionThatPiWentOnIn(t *testing.T) {
	noted := session(t, message("user", `"hello"`, "")+"\n")
	next := filepath.Join(filepath.Dir(noted), "2026-12-01T01-00-00-000Z_2.jsonl")
	if err := os.WriteFile(next, []byte(message("user", `"`+token+`"`, "")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, noted, 0); got != receipt.TurnStarted {
		t.Errorf("%v, want turn started", got)
	}
	if err := os.Chtimes(next, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := FindReceipt(noted, 0, time.Now(), token); got != receipt.Absent || err != nil {
		t.Errorf("a session that ended long before: %v, %v, want absent", got, err)
	}
}
