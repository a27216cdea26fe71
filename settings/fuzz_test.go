package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// What holds for any bytes: refused, or valid and only our entry changed; adding is idempotent; what was added can be
// taken out to the byte; what was repaired is taken out as if it had not been repaired.
func FuzzAddAndRemove(f *testing.F) {
	for _, c := range testCases(f) {
		f.Add(readCase(f, c.name))
	}
	for _, s := range []string{
		`{"hooks":{"Stop":[{"hooks":[` + entry + `,{"command":"vx sentinel await"},{"x":1}]},{"hooks":[` + entry + `]},{}]}}`,
		"{\r\n\t\"hooks\" : { \"Stop\" : [ ] , \"x\" : [ ] }\r\n}\r\n",
		`{"hook\u0073":{},"hooks":{}}`,
		"\n\n{ }",
		byteOrderMark,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := slices.Clone(in)
		out, undo, err := Add(in, Stop)
		bare, removeErr := Remove(in, Stop, nil)
		report, inspectErr := Inspect(in, Stop)
		if !bytes.Equal(in, before) {
			t.Fatal("the input was written to")
		}
		if err != nil {
			if _, ok := errors.AsType[*Refusal](err); !ok {
				t.Fatalf("Add: %v", err)
			}
			if removeErr == nil || inspectErr == nil || out != nil {
				t.Fatalf("refused by Add alone: %v", err)
			}
			return
		}
		if removeErr != nil || inspectErr != nil {
			t.Fatalf("refused by Remove or Inspect alone: %v, %v", removeErr, inspectErr)
		}
		if !json.Valid(bytes.TrimPrefix(out, []byte(byteOrderMark))) {
			t.Fatalf("not JSON: %q", out)
		}
		checkAdded(t, in, out)
		if len(report.Own) == 0 {
			checkInsertion(t, in, out, undo)
			return
		}
		if undo != nil {
			t.Fatal("a repair gave an undo")
		}
		if again, err := Remove(out, Stop, nil); err != nil || !bytes.Equal(again, bare) {
			t.Fatalf("the original without our entries is\n%q, after a repair\n%q, %v", bare, again, err)
		}
	})
}

// An undo comes from a file in the state directory, which may be old or damaged.
func FuzzRemoveWithAForeignUndo(f *testing.F) {
	f.Add([]byte(`{"a":1,"hooks":{"Stop":[{"hooks":[`+entry+`]}]}}`), `,"hooks":{"Stop":[{"hooks":[`+entry+`]}]}`, "")
	f.Add([]byte(`{"a":{"hooks":1},"hooks":{"Stop":[{"hooks":[`+entry+`,2]}]}}`), entry, `{"command":"vx sentinel await"}`)
	f.Add([]byte(`{"hooks":{"Stop":[{"hooks":[`+entry+`]}]}}`), "", "")
	f.Fuzz(func(t *testing.T, in []byte, inserted, replaced string) {
		out, err := Remove(in, Stop, &Undo{Inserted: inserted, Replaced: replaced})
		if err != nil {
			return
		}
		if r, err := Inspect(out, Stop); err != nil || len(r.Own) != 0 {
			t.Fatalf("%v, %+v in %q", err, r.Own, out)
		}
	})
}

func TestRandomLayoutsComeBackToTheByte(t *testing.T) {
	values := []string{`1`, `"x"`, `{}`, `[]`, `{ "hooks": [ ] }`, `[{"hooks":[{"command":"mine"}]}]`, `{"Stop":[]}`, `{"Stop" : [ {} ]}`, `{"PreToolUse":[]}`}
	spaces := []string{"", " ", "\n", "\n  ", "\r\n\t", "\t", " \r\n  \r\n"}
	n := uint32(1)
	pick := func(from []string) string {
		n = n*1664525 + 1013904223
		return from[int(n>>16)%len(from)]
	}
	for range 3000 {
		var b strings.Builder
		b.WriteString(pick([]string{"", byteOrderMark}) + pick(spaces) + "{")
		for i, key := range []string{`"a"`, `"hooks"`, `"b"`}[:n%4] {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(pick(spaces) + key + pick(spaces) + ":" + pick(spaces) + pick(values) + pick(spaces))
		}
		b.WriteString(pick(spaces) + "}" + pick(spaces))
		in := []byte(b.String())
		out, undo, err := Add(in, Stop)
		if _, ok := errors.AsType[*Refusal](err); ok {
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		checkAdded(t, in, out)
		checkInsertion(t, in, out, undo)
		if t.Failed() {
			t.Fatalf("in %q", in)
		}
	}
}
