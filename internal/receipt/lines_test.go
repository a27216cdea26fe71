package receipt

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

const token = "7f3a9c51e8d24b06"

// kind is a row's type, and whether the token stands in any string of it.
type kind struct {
	name string
	hit  bool
}

func (k *kind) String(path, text []byte, hit bool) {
	if string(path) == "type" {
		k.name = string(text)
	}
	k.hit = k.hit || hit
}

func (k *kind) Literal(path, text []byte) {}
func (k *kind) End(path []byte)           {}

func readOne(line string) (kind, int64, error) {
	var k kind
	lines := NewLines(strings.NewReader(line), 0, int64(len(line)), []byte(token))
	err := lines.Next(&k)
	return k, lines.Offset(), err
}

func TestARowEndsWithItsLine(t *testing.T) {
	text := `{"type":"a"}` + "\n" + `{"type":"b"` + "\n" + `  {"type" : "c" , "x" : [ ] } ` + "\r\n\n" + `{"type":"d"}{}` + "\n" + `{"type":"e"}`
	lines := NewLines(strings.NewReader(text), 0, int64(len(text)), nil)
	var got []string
	for {
		var k kind
		err := lines.Next(&k)
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, ErrForm) {
			t.Fatal(err)
		}
		if err != nil {
			k.name = "?"
		}
		got = append(got, k.name)
	}
	if s := strings.Join(got, " "); s != "a ? c ? ? e" || lines.Offset() != int64(len(text)) {
		t.Errorf("rows %s, end at %d of %d", s, lines.Offset(), len(text))
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	if _, _, err := readOne(`{"a":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}"); !errors.Is(err, ErrForm) {
		t.Errorf("%v, want ErrForm", err)
	}
	if _, _, err := readOne(`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}"); err != nil {
		t.Errorf("100 deep: %v", err)
	}
}

// paths notes where a row's values stand.
type paths []string

func (p *paths) String(path, text []byte, hit bool) { *p = append(*p, string(path)+"="+string(text)) }
func (p *paths) Literal(path, text []byte)          { *p = append(*p, string(path)+"="+string(text)) }
func (p *paths) End(path []byte)                    { *p = append(*p, string(path)+"}") }

func TestEveryValueIsToldWithItsPlace(t *testing.T) {
	var p paths
	line := `{"a":"x","b":{"c":[1,{"d":null},["e"]]},"f":true}`
	if err := NewLines(strings.NewReader(line), 0, int64(len(line)), nil).Next(&p); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(p, " "), "a=x b.c[]=1 b.c[].d=null b.c[]} b.c[][]=e b} f=true }"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzLine: whatever a line holds, reading it ends behind its newline; a JSON object is a row, with the kind that a JSON
// decoder sees; and the token is seen only where it stands.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		`{"type":"user","message":{"content":[{"type":"text","text":"` + token + `"}]}}`, `{"type":"message","x":"` + token[:8] + `\n` + token[8:] + `"}`,
		`{}`, ` { "a" : [ 1 , -2.5e3 , true , null ] , "type" : "x" } `, `{"type":"us`, `nul`, `{"a":"\u00e9\\\""}`, `{"a":{}}x`, "\x00", `{"type":"a","type":"b"}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, end, err := readOne(line + "\n" + line)
		whole, _, _ := strings.Cut(line, "\n")
		if end != int64(len(whole)+1) {
			t.Fatalf("row %q ends at %d, want %d", line, end, len(whole)+1)
		}
		if got.hit && !strings.Contains(whole, token) {
			t.Fatalf("row %q holds no token", whole)
		}
		dec := map[string]json.RawMessage{}
		if json.Unmarshal([]byte(whole), &dec) != nil || dec == nil {
			return
		}
		if err != nil && strings.Count(whole, "[")+strings.Count(whole, "{") < maxDepth && !strings.Contains(whole, "\t") && longestNumber(whole) <= maxPrefix {
			t.Fatalf("row %q: %v", whole, err)
		}
		name := strings.Trim(string(dec["type"]), `"`)
		if err == nil && strings.HasPrefix(string(dec["type"]), `"`) && len(name) <= maxPrefix && !strings.Contains(whole, `\`) && got.name != name {
			t.Fatalf("row %q: kind %q, want %q", whole, got.name, name)
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
