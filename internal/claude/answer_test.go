package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	prompted  = `{"type":"user","message":{"role":"user","content":"Go on"},"origin":{"kind":"human"}}`
	calls     = `{"type":"assistant","message":{"content":[{"type":"text","text":"Let me see."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}`
	result    = `{"type":"user","message":{"content":[{"type":"tool_result","content":"a"}]}}`
	says      = `{"type":"assistant","message":{"content":[{"type":"text","text":"It is done.\n\nneeds-decision: Keep it?"}]}}`
	adds      = `{"type":"assistant","message":{"content":[{"type":"text","text":"That is all."}]}}`
	closes    = `{"type":"system","subtype":"turn_duration","durationMs":4000}`
	sidechain = `{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"of a subagent"}]}}`
	fails     = `{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error: 400"}]}}`
	esc       = `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`
	local     = `{"type":"user","message":{"content":"<local-command-stdout>Compacted</local-command-stdout>"}}`
)

// first is a row with an id, and that of what it was said to.
func first(id, to, row string) string {
	return fmt.Sprintf(`{"uuid":%q,"parentUuid":%q,%s`, id, to, row[1:])
}

func TestTheAnswerIsWhatTheLastTurnEndedWith(t *testing.T) {
	const answer = "It is done.\n\nneeds-decision: Keep it?"
	for name, c := range map[string]struct {
		rows []string
		want string
	}{
		"a turn":                       {[]string{prompted, says}, answer},
		"with a tool":                  {[]string{prompted, calls, result, says, closes}, answer},
		"in two rows":                  {[]string{prompted, calls, result, says, adds, closes}, answer + "\n\nThat is all."},
		"of the last turn alone":       {[]string{prompted, says, closes, prompted, adds}, "That is all."},
		"with a subagent beside it":    {[]string{prompted, says, sidechain}, answer},
		"with a command behind it":     {[]string{prompted, says, local}, answer},
		"with a line that is cut off":  {[]string{prompted, says, `{"type":"assis`}, answer},
		"interrupted":                  {[]string{prompted, says, closes, prompted, calls, esc}, ""},
		"that died":                    {[]string{prompted, says, closes, prompted, fails}, ""},
		"in the middle":                {[]string{prompted, says, closes, prompted, calls, result}, ""},
		"whose beginning is not there": {[]string{says}, ""},
		"written before its prompt":    {[]string{first("a", "c", says), first("b", "", prompted), first("c", "b", closes)}, answer},
		"written before, in two rows":  {[]string{first("a", "b", says), first("d", "a", adds), first("b", "", prompted)}, answer + "\n\nThat is all."},
		"of a circle":                  {[]string{first("a", "b", prompted), first("b", "a", says)}, ""},
		"none":                         {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := config(t)
			self := other(t)
			s := Session{Process: self, SessionID: "0f3c"}
			folder := filepath.Join(dir, "projects", "-home-u-shop")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(folder, "0f3c.jsonl"), strings.Join(c.rows, "\n")+"\n")
			if got := s.Answer(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheAnswerOfALongTranscriptIsFound(t *testing.T) {
	dir := config(t)
	folder := filepath.Join(dir, "projects", "p")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "s.jsonl"), strings.Repeat(calls+"\n", 20_000)+prompted+"\n"+says+"\n")
	if got := (Session{Process: other(t), SessionID: "s"}).Answer(); !strings.HasPrefix(got, "It is done.") {
		t.Errorf("got %q", got)
	}
}

func TestTheNameOfASessionLeadsNowhereElse(t *testing.T) {
	dir := config(t)
	if err := os.MkdirAll(filepath.Join(dir, "projects", "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "secret.jsonl"), prompted+"\n"+says+"\n")
	for _, id := range []string{"../../secret", filepath.Join(dir, "secret"), ""} {
		if got := (Session{Process: other(t), SessionID: id}).Answer(); got != "" {
			t.Errorf("%q says %q", id, got)
		}
	}
}
