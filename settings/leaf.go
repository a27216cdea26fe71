package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// want is what a right entry of ours has, in the order in which it is written. asyncRewake makes the hook run beside the
// idle client and lets its exit wake the model.
//
// It is made at the first use: the hook starts with every turn, and does not use it.
var want = sync.OnceValue(func() [fieldCount]field {
	return [fieldCount]field{
		{"type", `"command"`},
		{"command", quote(Command)},
		{"asyncRewake", "true"},
		{"timeout", strconv.Itoa(Timeout)},
	}
})

// field is a field's name, and its value as it is written.
type field struct{ name, raw string }

const fieldCount = 4

const commandField = 1 // index in want

func fieldIndex(name string) int {
	for i, w := range want() {
		if w.name == name {
			return i
		}
	}
	return -1
}

// right tells whether a field has the value it should have. Other spellings of a value are as good: 3600.0, "\u0063ommand".
func right(field int, v gjson.Result) bool {
	if !v.Exists() {
		return false
	}
	w := gjson.Parse(want()[field].raw)
	return v.Type == w.Type && v.Str == w.Str && v.Num == w.Num
}

// wrong lists what is not as it should be in an entry of ours.
func (l *leaf) wrong() []string {
	var wrong []string
	for i, w := range want() {
		v := l.fields[i]
		switch {
		case right(i, v):
		case !v.Exists():
			wrong = append(wrong, fmt.Sprintf("%s is missing, want %s", w.name, w.raw))
		case i == commandField:
			wrong = append(wrong, fmt.Sprintf("command is an earlier form: %q", v.Str))
		default:
			wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", w.name, clip(v.Raw), w.raw))
		}
	}
	return wrong
}

// clip keeps a value from a file short enough for a line. Valid JSON has no raw control characters but white space.
func clip(raw string) string {
	raw = strings.ToValidUTF8(raw[:min(len(raw), 1000)], "")
	raw = strings.Join(strings.Fields(raw), " ")
	if r := []rune(raw); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return raw
}

// newValue is what Add inserts, compact: our entry in a group of its own, wrapped in what else is missing.
func (e Event) newValue(wrap ...string) string {
	leaf := "{}"
	for _, w := range want() {
		leaf = set(leaf, w.name, w.raw)
	}
	value := set("{}", "hooks", "["+leaf+"]")
	for _, name := range wrap {
		if name == string(e) {
			value = "[" + value + "]"
		}
		value = set("{}", name, value)
	}
	return value
}

// set is sjson on JSON of our own making, where it cannot fail: what it trusts is so.
func set(object, name, raw string) string {
	out, err := sjson.SetRaw(object, name, raw)
	if err != nil {
		panic(fmt.Sprintf("settings: set %s: %v", name, err))
	}
	return out
}

// quote is a JSON string in which && stays readable.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(fmt.Sprintf("settings: quote: %v", err))
	}
	return strings.TrimSpace(b.String())
}
