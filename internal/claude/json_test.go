package claude

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func readOne(line, token string) (row, int64, error) {
	r := newRowReader(strings.NewReader(line), 0, int64(len(line)), []byte(token))
	row, err := r.next()
	return row, r.pos, err
}

func TestARowEndsWithItsLine(t *testing.T) {
	lines := `{"type":"a"}` + "\n" + `{"type":"b"` + "\n" + `  {"type" : "c" , "x" : [ ] } ` + "\r\n\n" + `{"type":"d"}{}` + "\n" + `{"type":"e"}`
	r := newRowReader(strings.NewReader(lines), 0, int64(len(lines)), nil)
	var got []string
	for {
		row, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, errForm) {
			t.Fatal(err)
		}
		if err != nil {
			row.kind = "?"
		}
		got = append(got, row.kind)
	}
	if s := strings.Join(got, " "); s != "a ? c ? ? e" || r.pos != int64(len(lines)) {
		t.Errorf("rows %s, end at %d of %d", s, r.pos, len(lines))
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	if _, _, err := readOne(`{"a":`+strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20)+"}", token); !errors.Is(err, errForm) {
		t.Errorf("%v, want errForm", err)
	}
	if _, _, err := readOne(`{"a":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+"}", token); err != nil {
		t.Errorf("100 deep: %v", err)
	}
}

// FuzzRow: whatever a line holds, reading it ends behind its newline; a JSON object is a row, with the kind that a JSON
// decoder sees; and nothing is a proof that lacks the token.
func FuzzRow(f *testing.F) {
	for _, line := range []string{enqueueRow, userRow, answerRow, errorRow, promptRow, `{"type":"user","message":{"content":[{"type":"text","text":"` + token + `"}]}}`,
		`{}`, ` { "a" : [ 1 , -2.5e3 , true , null ] , "type" : "x" } `, `{"type":"us`, `nul`, `{"a":"\u00e9\\\""}`, `{"a":{}}x`, "\x00", `{"type":"a","type":"b"}`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, end, err := readOne(line+"\n"+line, token)
		whole, _, _ := strings.Cut(line, "\n")
		if end != int64(len(whole)+1) {
			t.Fatalf("row %q ends at %d, want %d", line, end, len(whole)+1)
		}
		var want struct {
			Type json.RawMessage `json:"type"`
		}
		dec := map[string]json.RawMessage{}
		if json.Unmarshal([]byte(whole), &dec) == nil && dec != nil {
			want.Type = dec["type"]
			if err != nil && strings.Count(whole, "[")+strings.Count(whole, "{") < maxDepth && !strings.Contains(whole, "\t") && longestNumber(whole) <= maxPrefix {
				t.Fatalf("row %q: %v", whole, err)
			}
			kind := strings.Trim(string(want.Type), `"`)
			if err == nil && strings.HasPrefix(string(want.Type), `"`) && len(kind) <= maxPrefix && !strings.Contains(whole, `\`) && got.kind != kind {
				t.Fatalf("row %q: kind %q, want %q", whole, got.kind, kind)
			}
		}
		if !strings.Contains(whole, token) && got.find() >= queued {
			t.Fatalf("row %q proves %v without the token", whole, got.find())
		}
	})
}

func longestNumber(s string) int {
	longest := 0
	for _, digits := range strings.FieldsFunc(s, func(c rune) bool { return c < '0' || c > '9' }) {
		longest = max(longest, len(digits))
	}
	return longest
}
