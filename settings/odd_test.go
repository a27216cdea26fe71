package settings

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
)

// odd are files that nobody writes on purpose, by what has to come of them. ENTRY is a right entry of ours, CMD its command.
var odd = map[string][]string{
	"add": {
		// Keys and values that are not what they look like.
		`{"ho\u006fks":{"St\u006fp":[]}}`,
		`{"Hooks":{"Stop":1},"HOOKS":[],"hooks":{"stop":1,"STOP":[]}}`,
		`{"hooks\u0000":1,"a\u0000":"\u0000","hooks":{}}`,
		`{"hooks.Stop":1,"hooks":{"Stop.0":2,"a|b":1,"@this":2,"#":3,"-1":4,"":5}}`,
		`{"":{"":[]},"hooks":{"":1}}`,
		`{"__proto__":{"hooks":1},"hooks":{"__proto__":[]}}`,
		`{"env":{"hooks":{"Stop":[{"hooks":[{"command":"vx sentinel await"}]}]}},"x":[{"hooks":1}]}`,
		`{"a":1,"a":2,"hooks":{"PreToolUse":[],"PreToolUse":[]}}`,
		`{"a":"\ud800","\udc00":1,"b":"\ud83d\ude00","hooks\ud800":1,"hooks":{}}`,
		`{"a":1E400,"b":-0,"c":-0.0,"d":1e-400,"e":123456789012345678901234567890,"f":1.10}`,
		`{"a":"}{][\"","hooks":{"Stop":[{"hooks":[{"type":"command","command":"echo \"}]\" \\"}]}]}}`,
		"{\"a\":\"\u2028\u2029\u202e\x7f\"}",
		`{"note":", \"hooks\": {\"Stop\": [","hooks":{"SubagentStop":[{"hooks":[ENTRY]}]}}`,
		// Under Stop, but not ours.
		`{"hooks":{"Stop":[{}]}}`,
		`{"hooks":{"Stop":[{"hooks":[]}]}}`,
		`{"hooks":{"Stop":[{"matcher":"*"},{"matcher":"","hooks":[{"type":"command","command":"say done"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"vx sentinel await"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"C:\\bin\\vx sentinel await"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"vx sentinel await --flag"},{}]}]}}`,
		// Layouts.
		"   ", "\t\n\t", byteOrderMark, byteOrderMark + " \r\n", "\r\n",
		"{   }", "{\n\n\n}\n", "{\r\n}", "{}\r\n", "{\r}\r",
		`{ "hooks" : { } }`,
		"{\n  \"hooks\": {\n    \"Stop\": [\n    ]\n  }\n}\n",
		"{\n\t\"a\": 1,\n  \"hooks\": {\n \t \"PreToolUse\": []\n\t}\n}\n",
		"{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{\r\n\t\t\t\t\"hooks\": []\r\n\t\t\t}\r\n\t\t]\r\n\t}\r\n}\r\n",
		"{\r\n  \"hooks\": {\"Stop\": [{\"hooks\": []}]}\r\n}",
		"\r\n\r\n{\"a\":1}\r\n",
		"{\r\n  \"a\": 1,\n  \"b\": 2\n}\n", "{\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n",
		"{\r  \"a\": 1,\r  \"b\": {\r    \"c\": 2\r  }\r}\r",
		"{\"a\":1}   \t \n", "{\n  \"a\": 1\n}\n\n\n\n", "\n\n  \n{\"a\":1}",
		"{   \n  \"a\": 1,   \n  \"b\": 2   \n}   \n   ",
		"{ \"a\": 1\n, \"b\": 2\n, \"hooks\": { \"Stop\": [ {\"hooks\": [ ] }\n , { } ] }\n}\n",
		"{\n  \"hooks\":\n  {\n    \"Stop\":\n    [\n      {\n        \"hooks\":\n        [\n        ]\n      }\n    ]\n  }\n}\n",
		"{\n\"a\": 1,\n\"hooks\": {\n\"Stop\": [\n]\n}\n}\n",
		byteOrderMark + "{\r\n    \"a\": 1\r\n}\r\n",
		`{"a":` + strings.Repeat("[", 9990) + strings.Repeat("]", 9990) + `}`,
	},
	"repair": {
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","comm\u0061nd":"v\u0078 sentinel \u0061wait"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[ENTRY,ENTRY]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[ENTRY]},{"matcher":"x","hooks":[ENTRY]},{"hooks":[ENTRY]}]},"y":2}`,
		`{"hooks":{"Stop":[{"hooks":[{"command":"a"},ENTRY,{"command":"b"},{"command":"vx sentinel await"},{"command":"c"},ENTRY]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"command":"vexillum sentinel await"},ENTRY]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":CMD,"asyncRewake":true,"timeout":"3600"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":CMD,"asyncRewake":true,"timeout":{"a":[1,"]}"]}}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":CMD,"asyncRewake":1,"timeout":1e999}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"command","command":CMD,"asyncRewake":[ ],"timeout":null}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"type":"prompt","command":CMD,"asyncRewake":"true","timeout":-3600}]}]}}`,
		"{\"hooks\"\n:\n{\"Stop\"\n:\n[\n{\n\"hooks\"\n:\n[\n{\n\"command\"\n:\nCMD\n}\n]\n}\n]\n}\n}",
		"{\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      {\r\n        \"hooks\": [\r\n          {\r\n            \"command\": \"vx sentinel await\"\r\n          }\r\n        ]\r\n      }\r\n    ]\r\n  }\r\n}\r\n",
		byteOrderMark + `{"hooks":{"Stop":[{"hooks":[{"command":"\"/Users/My Name/bin/vx\" sentinel drain"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[` + strings.Repeat("ENTRY,", 500) + `ENTRY]}]}}`,
	},
	"noop": {
		`{"hooks":{"Stop":[{"hooks":[{"timeout":3600.0,"asyncRewake":true,"command":CMD,"type":"command"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"x":{"type":"z"},"type":"comm\u0061nd","command":CMD,"asyncRewake":true,"timeout":36e2}]}]}}`,
		`{"ho\u006fks":{"St\u006fp":[{"matcher":"*","h\u006foks":[ENTRY]}]}}`,
		`{"hooks":{"Stop":[{"matcher":"","id":"x","hooks":[ENTRY,{"command":"mine"}]}]}}`,
	},
	"refuse": {
		// Twice where we look.
		`{"hooks":{},"ho\u006fks":{}}`,
		`{"\u0068ooks":{"Stop":[]},"a":1,"\u0068\u006f\u006f\u006bs":{"Stop":[]}}`,
		`{"hooks":{"Stop":[],"St\u006Fp":[]}}`,
		`{"hooks":{"Stop":[{"hooks":[],"hook\u0073":[]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"command":"x","comm\u0061nd":"y"}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"command":CMD,"timeout":1,"timeou\u0074":3600}]}]}}`,
		// Not what it has to be.
		`null`, `"x"`, `1`, `true`, `[]`,
		`{"hooks":null}`, `{"hooks":[]}`, `{"hooks":false}`, `{"hooks":""}`,
		`{"hooks":{"Stop":""}}`, `{"hooks":{"Stop":{}}}`, `{"hooks":{"Stop":0}}`,
		`{"hooks":{"Stop":[null]}}`, `{"hooks":{"Stop":[1]}}`, `{"hooks":{"Stop":[[]]}}`, `{"hooks":{"Stop":["vx sentinel await"]}}`,
		`{"hooks":{"Stop":[{"hooks":null}]}}`, `{"hooks":{"Stop":[{"hooks":{}}]}}`, `{"hooks":{"Stop":[{"hooks":"x"}]}}`,
		`{"hooks":{"Stop":[{"hooks":[null]}]}}`, `{"hooks":{"Stop":[{"hooks":[[]]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"command":null}]}]}}`, `{"hooks":{"Stop":[{"hooks":[{"command":["vx"]}]}]}}`,
		// Not JSON.
		`{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":0x10}`, `{"a":-}`, `{"a":NaN}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
		"{\"a\":\"x\ty\"}", "{\"a\":\"x\ny\"}", "{\"a\":\"\x00\"}", "{\"a\":1}\x00", strings.Repeat("\x00", 100),
		"{\"a\":\"\xff\xfe\"}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"hooks\xff\":1}",
		wide(`{"a":1}`), byteOrderMark + byteOrderMark + `{}`, `{}` + byteOrderMark, byteOrderMark[:2] + `{}`,
		"\f", "\v{}", "\u00a0{}", "{\u2028}", `{}{}`, "{}\n{}\n", `{} x`, `{"a":1}}`, `{"a":[1}]`, `{"a":1 "b":2}`, `{"a"::1}`,
		"// x\n{}", "{}\n// x\n", `{/* x */}`, "# x\n{}", `/* x */`, `{"a":1,}`, `{"a":[1,]}`, `{,}`, `{"a":1,,"b":2}`,
		`{a:'x'}`, `{'a':1}`, `{hooks:{}}`, "<<<<<<< HEAD\n{}\n=======\n{\"a\":1}\n>>>>>>> x\n",
		`{"a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`, strings.Repeat("[", 200000),
	},
}

// wide is a text as UTF-16 with its mark.
func wide(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func TestOddFilesComeOutRightOrAreRefused(t *testing.T) {
	fill := strings.NewReplacer("ENTRY", entry, "CMD", quoted)
	for expect, files := range odd {
		for _, file := range files {
			in := []byte(fill.Replace(file))
			out, undo, err := Add(in, Stop)
			if expect == "refuse" {
				_, ok := errors.AsType[*Refusal](err)
				if _, removeErr := Remove(in, Stop, nil); !ok || out != nil || removeErr == nil {
					t.Errorf("%.80q: %v, want a Refusal", file, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%.80q: %v", file, err)
				continue
			}
			checkAdded(t, in, out)
			switch {
			case expect == "add" && undo != nil:
				checkInsertion(t, in, out, undo)
			case expect == "noop" && bytes.Equal(out, in):
			case expect == "repair" && undo == nil && !bytes.Equal(out, in):
			default:
				t.Errorf("%.80q: no %s, but %.200q", file, expect, out)
			}
			if t.Failed() {
				t.Fatalf("in %.80q", file)
			}
		}
	}
}

func TestAFileThatBreaksOffIsRefused(t *testing.T) {
	for _, c := range testCases(t) {
		if c.expect == "refuse" {
			continue
		}
		whole := readCase(t, c.name)
		for n := range len(bytes.TrimSpace(whole)) {
			part := whole[:n]
			if len(bytes.TrimSpace(bytes.TrimPrefix(part, []byte(byteOrderMark)))) == 0 {
				continue
			}
			if out, _, err := Add(part, Stop); err == nil {
				t.Fatalf("%s to byte %d: %q", c.name, n, out)
			}
		}
	}
}
