package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	calling  = `{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Let me."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"mkdir well"}}]}}`
	edits    = `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"/home/u/well","old_string":"dry"}}]}}`
	another  = `{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t3","name":"Dig","input":{"file_path":7}}]}}`
	ran      = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]}}`
	asking   = `{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t4","name":"AskUserQuestion","input":{"questions":[{"question":"Of stone?","header":"Wall","options":[{"label":"granite"},{"label":"oak"}]},{"question":"How high?"}]}}]}}`
	answered = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t4","content":"granite"}]}}`
)

func TestWhatADialogIsAboutIsWhatTheModelCalledAndHasNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		rows []string
		want string
	}{
		"a command":                 {[]string{prompted, calling}, "Bash: mkdir well"},
		"rows of other things":      {[]string{prompted, calling, closes, sidechain}, "Bash: mkdir well"},
		"two calls, one of them":    {[]string{prompted, calling, edits, ran}, "Edit: /home/u/well"},
		"two calls":                 {[]string{prompted, calling, edits}, "Bash: mkdir well\nEdit: /home/u/well"},
		"a tool that nobody knows":  {[]string{prompted, another}, "Dig"},
		"questions":                 {[]string{prompted, calling, ran, asking}, "Of stone?\n- granite\n- oak\nHow high?"},
		"answered":                  {[]string{prompted, asking, answered}, ""},
		"of the last message alone": {[]string{prompted, calling, asking, answered}, ""},
		"written before its prompt": {[]string{first("a", "b", asking), first("b", "", prompted)}, "Of stone?\n- granite\n- oak\nHow high?"},
		"nothing called":            {[]string{prompted, says}, ""},
		"none":                      {nil, ""},
		"much": {
			[]string{strings.Replace(calling, "mkdir well", strings.Repeat("ó", maxPending), 1)},
			"Bash: " + strings.Repeat("ó", (maxPending-6)/2) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(config(t), "projects", "p")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(folder, "0f3c.jsonl"), strings.Join(c.rows, "\n")+"\n")
			if got := (Session{Process: other(t), SessionID: "0f3c"}).Pending(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
