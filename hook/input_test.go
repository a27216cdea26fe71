package hook

import (
	"os"
	"strings"
	"testing"
	"time"
)

// read feeds text to readInput through a pipe that stays open.
func readText(t *testing.T, text string) input {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	go w.WriteString(text)
	return readInput(int(r.Fd()))
}

func TestInputIsTheFirstJSONValueAndWhatItIsWorth(t *testing.T) {
	for _, c := range []struct {
		name, text       string
		want             input
		claude, prompted bool
	}{
		{"Claude's", `{"session_id":"s","transcript_path":"/t.jsonl","hook_event_name":"Stop","stop_hook_active":false}`,
			input{Session: "s", Transcript: "/t.jsonl", Event: "Stop"}, true, true},
		{"in a turn that a wake started", `{"session_id":"s","hook_event_name":"Stop","stop_hook_active":true}`,
			input{Session: "s", Event: "Stop"}, true, false},
		{"not said whose turn", `{"session_id":"s","hook_event_name":"Stop"}`, input{Session: "s", Event: "Stop"}, true, false},
		{"a field of another type", `{"stop_hook_active":"no","session_id":"s","transcript_path":7,"hook_event_name":"Stop"}`,
			input{Session: "s", Event: "Stop"}, true, false},
		{"a transcript that is no path", `{"session_id":"s","transcript_path":"t.jsonl","hook_event_name":"Stop"}`,
			input{Session: "s", Event: "Stop"}, true, false},
		{"no session", `{"hook_event_name":"Stop"}`, input{Event: "Stop"}, false, false},
		{"a session of no size", `{"session_id":"` + strings.Repeat("s", 500) + `","hook_event_name":"Stop"}`, input{Event: "Stop"}, false, false},
		{"an array", `[1]`, input{}, false, false},
		{"not JSON", `}`, input{}, false, false},
		{"too much", `{"session_id":"s","hook_event_name":"` + strings.Repeat("x", maxInput) + `"}`, input{}, false, false},
		{"a lot", `{"last_assistant_message":"` + strings.Repeat("x", maxInput/2) + `","session_id":"s","hook_event_name":"Stop"}`,
			input{Session: "s", Event: "Stop"}, true, false},
		{"two", `{"session_id":"s","hook_event_name":"Stop"}{"session_id":"t"}`, input{Session: "s", Event: "Stop"}, true, false},
	} {
		got := readText(t, c.text)
		if got.claude() != c.claude || got.prompted() != c.prompted {
			t.Errorf("%s: Claude's is %v, prompted %v", c.name, got.claude(), got.prompted())
		}
		if got.Session != c.want.Session || got.Transcript != c.want.Transcript || got.Event != c.want.Event {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestAClientThatIsBusyMayBeLate(t *testing.T) {
	late := func() input {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		timer := time.AfterFunc(inputWait+500*time.Millisecond, func() {
			w.WriteString(`{"session_id":"s","hook_event_name":"Stop"}`)
		})
		defer timer.Stop()
		return readInput(int(r.Fd()))
	}
	t.Setenv("CLAUDECODE", "1")
	if !late().claude() {
		t.Error("a late client is taken for a stranger")
	}
	t.Setenv("CLAUDECODE", "")
	if late().claude() {
		t.Error("a stranger's late words are waited for")
	}
}
