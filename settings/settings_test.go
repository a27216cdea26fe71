package settings

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var quoted = quote(Command)

// entry is what Add writes on one line of a file that has one.
var entry = `{"type":"command","command":` + quoted + `,"asyncRewake":true,"timeout":3600}`

func TestTheCommandIsTheDocumentedOne(t *testing.T) {
	r, err := Inspect(readCase(t, "15-own-current.json"), Stop)
	if err != nil || len(r.Own) != 1 || r.Own[0].Command != Command {
		t.Errorf("%v, %+v", err, r.Own)
	}
	if strings.Contains(quoted, `\u0026`) {
		t.Errorf("&& is not readable: %s", quoted)
	}
}

func TestAddFollowsTheLayoutOfTheFile(t *testing.T) {
	for name, c := range map[string]struct{ in, out string }{
		"nothing":                {``, "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": CMD,\n            \"asyncRewake\": true,\n            \"timeout\": 3600\n          }\n        ]\n      }\n    ]\n  }\n}\n"},
		"only newlines":          {"\r\n\r\n", "{\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      {\r\n        \"hooks\": [\r\n          {\r\n            \"type\": \"command\",\r\n            \"command\": CMD,\r\n            \"asyncRewake\": true,\r\n            \"timeout\": 3600\r\n          }\r\n        ]\r\n      }\r\n    ]\r\n  }\r\n}\r\n"},
		"only a byte order mark": {byteOrderMark, byteOrderMark + "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": CMD,\n            \"asyncRewake\": true,\n            \"timeout\": 3600\n          }\n        ]\n      }\n    ]\n  }\n}"},
		"one line, tight": {
			`{"a":1,"hooks":{"Stop":[]}}`,
			`{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":CMD,"asyncRewake":true,"timeout":3600}]}]}}`,
		},
		"one line, spaced": {
			`{ "a": 1, "hooks": {} }` + "\n",
			`{ "a": 1, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": CMD, "asyncRewake": true, "timeout": 3600}]}]} }` + "\n",
		},
		"one line, no hooks": {
			`{"a": [1, 2]}`,
			`{"a": [1, 2], "hooks": {"Stop": [{"hooks": [{"type": "command", "command": CMD, "asyncRewake": true, "timeout": 3600}]}]}}`,
		},
		"tabs, Stop on one line": {
			"{\n\t\"hooks\": {\"Stop\": [{\"hooks\": []}]}\n}\n",
			"{\n\t\"hooks\": {\"Stop\": [{\"hooks\": []}, {\n\t\t\"hooks\": [\n\t\t\t{\n\t\t\t\t\"type\": \"command\",\n\t\t\t\t\"command\": CMD,\n\t\t\t\t\"asyncRewake\": true,\n\t\t\t\t\"timeout\": 3600\n\t\t\t}\n\t\t]\n\t}]}\n}\n",
		},
		"other event before": {
			"{\n    \"hooks\": {\n        \"PreToolUse\": []\n    }\n}",
			"{\n    \"hooks\": {\n        \"PreToolUse\": [],\n        \"Stop\": [\n            {\n                \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \"command\": CMD,\n                        \"asyncRewake\": true,\n                        \"timeout\": 3600\n                    }\n                ]\n            }\n        ]\n    }\n}",
		},
		"whole file shifted right": {
			"  {\n    \"a\": 1\n  }\n",
			"  {\n    \"a\": 1,\n    \"hooks\": {\n      \"Stop\": [\n        {\n          \"hooks\": [\n            {\n              \"type\": \"command\",\n              \"command\": CMD,\n              \"asyncRewake\": true,\n              \"timeout\": 3600\n            }\n          ]\n        }\n      ]\n    }\n  }\n",
		},
		"repair on lines": {
			"{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"x\": 1.0,\n            \"timeout\": \"60\",\n            \"command\": \"vx sentinel await\"\n          }\n        ]\n      }\n    ]\n  }\n}\n",
			"{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"x\": 1.0,\n            \"timeout\": 3600,\n            \"command\": CMD,\n            \"type\": \"command\",\n            \"asyncRewake\": true\n          }\n        ]\n      }\n    ]\n  }\n}\n",
		},
		"repair on one line": {
			`{"hooks":{"Stop":[{"hooks":[{"command":"'/opt/my tools/vexillum' sentinel drain","once":false}]}]}}`,
			`{"hooks":{"Stop":[{"hooks":[{"command":CMD,"once":false,"type":"command","asyncRewake":true,"timeout":3600}]}]}}`,
		},
		"the second goes": {
			"{\n \"hooks\": {\"Stop\": [\n  {\"hooks\": [ENTRY]},\n  {\"hooks\": [{\"command\": \"vx sentinel await\"}, {\"command\": \"mine\"}]},\n  {\"hooks\": [ENTRY]}\n ]}\n}",
			"{\n \"hooks\": {\"Stop\": [\n  {\"hooks\": [ENTRY]},\n  {\"hooks\": [{\"command\": \"mine\"}]}\n ]}\n}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fill := strings.NewReplacer("ENTRY", entry, "CMD", quoted)
			in := []byte(fill.Replace(c.in))
			out, undo, err := Add(in, Stop)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fill.Replace(c.out), string(out)); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
			checkAdded(t, in, out)
			if undo != nil {
				checkInsertion(t, in, out, undo)
			}
		})
	}
}

func TestOwnershipIsTheWholeCommand(t *testing.T) {
	for command, want := range map[string]bool{
		Command:                                           true,
		"vx sentinel await":                               true,
		"vexillum sentinel drain":                         true,
		"/usr/local/bin/vx sentinel await":                true,
		"~/.local/bin/vexillum sentinel await":            true,
		`"$HOME/.local/bin/vx" sentinel await`:            true,
		`"$CLAUDE_PROJECT_DIR"/bin/vx sentinel drain`:     true,
		`'/opt/my tools/vx' sentinel await`:               true,
		`/opt/my\ tools/vx sentinel await`:                true,
		`"vx" sentinel await`:                             true,
		"":                                                false,
		" sentinel await":                                 false,
		"vx sentinel await ":                              false,
		"vx sentinel await\n":                             false,
		" vx sentinel await":                              false,
		"vx  sentinel await":                              false,
		"vx sentinel await --verbose":                     false,
		"vx sentinel":                                     false,
		"vx sentinel awaits":                              false,
		"myvx sentinel await":                             false,
		"/opt/vx-notes sentinel await":                    false,
		"/opt/vx/run sentinel await":                      false,
		"cd /x && vx sentinel await":                      false,
		"true;/bin/vx sentinel await":                     false,
		"true&&/bin/vx sentinel await":                    false,
		"X=/bin/vx sentinel await":                        false,
		"_x1+=/bin/vx sentinel await":                     false,
		"/opt/a=b/vx sentinel await":                      true,
		"#/opt/vx sentinel await":                         false,
		"$(cat)/vx sentinel await":                        false,
		"`cat`/vx sentinel await":                         false,
		"notify.sh vx sentinel await":                     false,
		"notify.sh\n/bin/vx sentinel await":               false,
		`"/bin/vx sentinel await`:                         false,
		"VX sentinel await":                               false,
		Command + " ":                                     false,
		strings.Replace(Command, "exit 0", "exit 1", 1):   false,
		`sh -c 'exec vx sentinel await'`:                  false,
		"/home/me/vx-notes/run.sh vx sentinel await-ish":  false,
		"echo 'when idle, run' vx sentinel await | logit": false,
	} {
		if got := isOwn(command); got != want {
			t.Errorf("isOwn(%q) = %v", command, got)
		}
	}
}

func TestARefusalSaysWhatWhereAndWhy(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"// mine\n{}", "not JSON: comments are not allowed; Claude Code ignores the whole file (line 1, column 1)"},
		{"{\n  # mine\n}", "not JSON: comments are not allowed; Claude Code ignores the whole file (line 2, column 3)"},
		{"{\n  \"é\": /* */ 1\n}", "not JSON: comments are not allowed; Claude Code ignores the whole file (line 2, column 8)"},
		{"{\"a\": [1,\n]}", "not JSON: a comma before the closing bracket; Claude Code ignores the whole file (line 2, column 1)"},
		{"{\"a\": 1,}", "not JSON: a comma before the closing bracket; Claude Code ignores the whole file (line 1, column 9)"},
		{`{"hooks": {"Stop": [`, "not JSON: the file ends in the middle of a value; Claude Code ignores the whole file (line 1, column 21)"},
		{`{"a":tru`, "not JSON: the file ends in the middle of a value; Claude Code ignores the whole file (line 1, column 9)"},
		{`{"a":"\u12`, "not JSON: the file ends in the middle of a value; Claude Code ignores the whole file (line 1, column 11)"},
		{`{"a":-`, "not JSON: the file ends in the middle of a value; Claude Code ignores the whole file (line 1, column 7)"},
		{`{"a":trx`, "not JSON: invalid character 'x' in literal true (expecting 'u'); Claude Code ignores the whole file (line 1, column 8)"},
		{"{\u00a0}", "not JSON: '\\u00a0' does not belong there; Claude Code ignores the whole file (line 1, column 2)"},
		{`{}{}`, "not JSON: invalid character '{' after top-level value; Claude Code ignores the whole file (line 1, column 3)"},
		{"{\"a\":\"\xff\"}", "not UTF-8 text (line 1, column 7)"},
		{"\xff\xfe{\x00}\x00", "not UTF-8 text (line 1, column 1)"},
		{byteOrderMark + byteOrderMark + "{}", "not JSON: '\\ufeff' does not belong there; Claude Code ignores the whole file (line 1, column 1)"},
		{`[]`, "the file holds an array, want an object (line 1, column 1)"},
		{`null`, "the file holds null, want an object (line 1, column 1)"},
		{`"hooks"`, "the file holds a string, want an object (line 1, column 1)"},
		{"{\n  \"hooks\": null\n}", "hooks is null, want an object (line 2, column 12)"},
		{`{"hooks":[]}`, "hooks is an array, want an object (line 1, column 10)"},
		{`{"hooks":{"Stop":{}}}`, "hooks.Stop is an object, want an array (line 1, column 18)"},
		{`{"hooks":{"Stop":null}}`, "hooks.Stop is null, want an array (line 1, column 18)"},
		{`{"hooks":{"Stop":true}}`, "hooks.Stop is a boolean, want an array (line 1, column 18)"},
		{`{"hooks":{"Stop":["x"]}}`, "hooks.Stop[0] is a string, want an object (line 1, column 19)"},
		{`{"hooks":{"Stop":[{"hooks":{}}]}}`, "hooks.Stop[0].hooks is an object, want an array (line 1, column 28)"},
		{`{"hooks":{"Stop":[{},{"hooks":[1]}]}}`, "hooks.Stop[1].hooks[0] is a number, want an object (line 1, column 32)"},
		{`{"hooks":{"Stop":[{"hooks":[{"command":5}]}]}}`, "hooks.Stop[0].hooks[0].command is a number, want a string (line 1, column 40)"},
		{`{"hooks":{},"hooks":{}}`, "hooks is there twice (line 1, column 13)"},
		{`{"hooks":{},"hook\u0073":{}}`, "hooks is there twice (line 1, column 13)"},
		{`{"hooks":{"Stop":[],"St\u006Fp":[]}}`, "hooks.Stop is there twice (line 1, column 21)"},
		{`{"hooks":{"Stop":[{"hooks":[],"hooks":[]}]}}`, "hooks.Stop[0].hooks is there twice (line 1, column 31)"},
		{`{"hooks":{"Stop":[{"hooks":[{"command":"a","\u0063ommand":"vx sentinel await"}]}]}}`, "hooks.Stop[0].hooks[0].command is there twice (line 1, column 44)"},
		{`{"hooks":{"Stop":[{"hooks":[{"timeout":1,"command":"vx sentinel await","timeout":3600}]}]}}`, "hooks.Stop[0].hooks[0].timeout is there twice (line 1, column 72)"},
		{`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "nested more than 10000 deep (line 1, column 10005)"},
	} {
		_, _, err := Add([]byte(c.in), Stop)
		r, ok := errors.AsType[*Refusal](err)
		if !ok || r.Error() != c.want {
			t.Errorf("%.60q: %v\nwant %s", c.in, err, c.want)
		}
		if _, removeErr := Remove([]byte(c.in), Stop, nil); fmt.Sprint(removeErr) != fmt.Sprint(err) {
			t.Errorf("%.60q: Remove: %v", c.in, removeErr)
		}
		if _, inspectErr := Inspect([]byte(c.in), Stop); fmt.Sprint(inspectErr) != fmt.Sprint(err) {
			t.Errorf("%.60q: Inspect: %v", c.in, inspectErr)
		}
	}
}

func TestWhatIsNotOnTheWayToOurEntryIsNoReasonToRefuse(t *testing.T) {
	for _, in := range []string{
		`{"model":1,"model":2}`,
		`{"hooks":{"PreToolUse":null,"PreToolUse":7}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"x","timeout":"60","timeout":1}]}]}}`,
		`{"hooks":{"Stop":[{"matcher":null}]}}`,
		`{"n":123456789012345678901234567890e999,"s":"\ud800 \u0000","d":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`,
		`{"hook":1,"Hooks":2,"hooks.Stop":3,"":4}`,
		"{\r\"a\": 1\r}",
	} {
		out, undo, err := Add([]byte(in), Stop)
		if err != nil {
			t.Errorf("%.60q: %v", in, err)
			continue
		}
		r, err := Inspect(out, Stop)
		if err != nil || !r.Right() {
			t.Errorf("%.60q: %v, %+v", in, err, r.Own)
		}
		checkInsertion(t, []byte(in), out, undo)
	}
}

func TestUninstallKeepsWhatWasChangedSince(t *testing.T) {
	for name, c := range map[string]struct {
		in       string
		old, new string // what somebody replaces in what Add made
		want     string
	}{
		"another setting":           {"{\n  \"model\": \"opus\",\n  \"hooks\": {}\n}\n", `"opus"`, `"sonnet"`, "{\n  \"model\": \"sonnet\",\n  \"hooks\": {}\n}\n"},
		"a final newline":           {"{\"a\":1}", `}]}]}}`, "}]}]}}\n", "{\"a\":1}\n"},
		"an event beside ours":      {`{"hooks":{}}`, `]}]}}`, `]}],"x":[]}}`, `{"hooks":{"x":[]}}`},
		"an event beside, one line": {`{"a":1,"hooks":{}}`, `]}]}}`, `]}],"x":[]}}`, `{"a":1,"hooks":{"x":[]}}`},
		"a group behind ours":       {`{"a":1,"hooks":{"Stop":[]}}`, `]}]}}`, `]},{"hooks":[]}]}}`, `{"a":1,"hooks":{"Stop":[{"hooks":[]}]}}`},
		"a hook in our group":       {`{"a":1,"hooks":{"Stop":[]}}`, `3600}`, `3600},{"command":"mine"}`, `{"a":1,"hooks":{"Stop":[{"hooks":[{"command":"mine"}]}]}}`},
		"a field in our group":      {`{"a":1,"hooks":{"Stop":[]}}`, `"asyncRewake":true,"timeout":3600}]`, `"timeout":3600}],"x":1`, `{"a":1,"hooks":{"Stop":[{"hooks":[],"x":1}]}}`},
		"everything before it gone": {"{\n  \"a\": 1\n}\n", "\n  \"a\": 1,", "", "{}\n"},
		"our entry twice":           {`{"a":1}`, entry, entry + "," + entry, `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			out, undo, err := Add([]byte(c.in), Stop)
			if err != nil {
				t.Fatal(err)
			}
			changed := bytes.Replace(out, []byte(c.old), []byte(c.new), 1)
			if bytes.Equal(changed, out) {
				t.Fatalf("nothing changed in %s", out)
			}
			back, err := Remove(changed, Stop, undo)
			if err != nil {
				t.Fatalf("%v\n%s", err, changed)
			}
			if diff := cmp.Diff(c.want, string(back)); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestRemoveWithoutAnUndoTakesOnlyWhatItLeftEmpty(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"hooks":{"Stop":[{"hooks":[ENTRY]}]}}`, `{}`},
		{`{"hooks":{"Stop":[{"matcher":"","hooks":[ENTRY]}]}}`, `{}`},
		{`{"hooks":{"Stop":[{"matcher":"x","hooks":[ENTRY]}]}}`, `{"hooks":{"Stop":[{"matcher":"x","hooks":[]}]}}`},
		{`{"hooks":{"Stop":[{"hooks":[]},{"hooks":[ENTRY]}]}}`, `{"hooks":{"Stop":[{"hooks":[]}]}}`},
		{`{"hooks":{"Stop":[{"hooks":[ENTRY]}],"x":1},"y":2}`, `{"hooks":{"x":1},"y":2}`},
		{`{"y":2, "hooks":{"Stop":[{"hooks":[ENTRY]}]}, "z":3}`, `{"y":2, "z":3}`},
		{`{"hooks":{"Stop":[{"hooks":[{"command":"a"}, ENTRY, ENTRY, {"command":"b"}, ENTRY]}]}}`, `{"hooks":{"Stop":[{"hooks":[{"command":"a"}, {"command":"b"}]}]}}`},
		{`{"hooks":{"Stop":[{"hooks":[ENTRY, ENTRY, {"command":"b"}]},{"hooks":[ENTRY]}]}}`, `{"hooks":{"Stop":[{"hooks":[{"command":"b"}]}]}}`},
		{`{"hooks":{"Stop":[{"hooks":[{"command":"mine"}]}]}}`, `{"hooks":{"Stop":[{"hooks":[{"command":"mine"}]}]}}`},
	} {
		in := strings.ReplaceAll(c.in, "ENTRY", entry)
		out, err := Remove([]byte(in), Stop, nil)
		if err != nil || string(out) != c.want {
			t.Errorf("%s\n%v, got %s\nwant %s", c.in, err, out, c.want)
		}
	}
}

func TestInspectNamesWhatMakesTheClientDropHooks(t *testing.T) {
	in := `{
  "disableAllHooks": true,
  "hooks": {
    "PreToolUse": {},
    "PostToolUse": [
      5,
      {"matcher": 1, "hooks": [{"command": "x"}, {"type": "command"}, {"type": "command", "command": "y", "timeout": "60", "async": "true"}]},
      {}
    ],
    "Stop": [{"hooks": [
      {"type": "command", "command": "vx sentinel await", "asyncRewake": "true"},
      {"type": "http", "url": "http://localhost"},
      {"type": "command", "command": "mine"}
    ]}]
  }
}`
	r, err := Inspect([]byte(in), Stop)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.Problems {
		got = append(got, p.String())
	}
	want := []string{
		"hooks.PreToolUse: an object, want an array (line 4, column 19)",
		"hooks.PostToolUse[0]: a number, want an object (line 6, column 7)",
		"hooks.PostToolUse[1]: matcher is a number, want a string (line 7, column 19)",
		"hooks.PostToolUse[1].hooks[0]: type is missing (line 7, column 32)",
		"hooks.PostToolUse[1].hooks[1]: command is missing (line 7, column 50)",
		"hooks.PostToolUse[1].hooks[2]: timeout is a string, want a number (line 7, column 118)",
		"hooks.PostToolUse[1].hooks[2]: async is a string, want true or false (line 7, column 133)",
		"hooks.PostToolUse[2]: hooks is missing (line 8, column 7)",
		"hooks.Stop[0].hooks[0]: asyncRewake is a string, want true or false (line 11, column 74)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if r.DisableAllHooks == nil || !*r.DisableAllHooks {
		t.Error("disableAllHooks was not seen")
	}
	if diff := cmp.Diff([]string{`{"type": "http", "url": "http://localhost"}`, "mine"}, r.Others); diff != "" {
		t.Error(diff)
	}
	own := []Leaf{{
		Path: "hooks.Stop[0].hooks[0]", Line: 11, Column: 7, Command: "vx sentinel await",
		Wrong: []string{
			`command is an earlier form: "vx sentinel await"`,
			`asyncRewake is "true", want true`,
			"timeout is missing, want 3600",
		},
	}}
	if diff := cmp.Diff(own, r.Own); diff != "" {
		t.Error(diff)
	}
}

func TestInspectStillReportsWhatItCanOfAFileThatIsRefused(t *testing.T) {
	r, err := Inspect([]byte(`{"hooks":{"SessionStart":7,"Stop":{}}}`), Stop)
	if err == nil || len(r.Problems) != 2 {
		t.Errorf("%v, %v", err, r.Problems)
	}
}

func TestOtherSpellingsOfARightValueAreRight(t *testing.T) {
	in := `{"hooks":{"Stop":[{"hooks":[{"type":"\u0063ommand","command":` + quoted + `,"asyncRewake":true,"timeout":3.6e3}]}]}}`
	out, _, err := Add([]byte(in), Stop)
	if err != nil || string(out) != in {
		t.Errorf("%v, %s", err, out)
	}
}

func TestAFileThatSaysNothingIsEmpty(t *testing.T) {
	for in, want := range map[string]bool{
		"": true, "\n": true, byteOrderMark: true, "{}": true, byteOrderMark + "{ \n}\n": true,
		`{"a":1}`: false, "[]": false, "{": false, "null": false,
	} {
		if Empty([]byte(in)) != want {
			t.Errorf("Empty(%q) = %v", in, !want)
		}
	}
}

func TestAnUndoThatAddDidNotMakeIsNotUsed(t *testing.T) {
	in := []byte(`{"hooks":{"Stop":[{"hooks":[` + entry + `]}]}}`)
	for _, undo := range []Undo{{}, {Inserted: string(in), Replaced: `{"a":1}`}, {Inserted: string(in) + " "}, {Inserted: entry, Replaced: `{"command":"x"}`}} {
		if out, err := Remove(in, Stop, &undo); err != nil || string(out) != "{}" {
			t.Errorf("%.40q: %s, %v", undo.Replaced, out, err)
		}
	}
}
