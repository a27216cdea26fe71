package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A testCase is a file of testdata/settings and what has to come of it: add, repair, noop or refuse.
type testCase struct{ name, expect string }

func testCases(t testing.TB) []testCase {
	t.Helper()
	table, err := os.ReadFile("testdata/settings/EXPECT.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var cases []testCase
	for line := range strings.Lines(string(table)) {
		f := strings.Split(line, "\t")
		cases = append(cases, testCase{f[0], f[1]})
	}
	return cases
}

func readCase(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/settings", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEveryCaseComesOutAsTheTableSays(t *testing.T) {
	cases := testCases(t)
	if len(cases) < 24 {
		t.Fatalf("%d cases, want all of them", len(cases))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old := readCase(t, c.name)
			out, undo, err := Add(old, Stop)
			if c.expect == "refuse" {
				if _, ok := errors.AsType[*Refusal](err); !ok {
					t.Fatalf("Add: %v, want a Refusal", err)
				}
				if _, err := Remove(old, Stop, nil); err == nil {
					t.Error("Remove takes what Add refuses")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkAdded(t, old, out)
			switch c.expect {
			case "add":
				checkInsertion(t, old, out, undo)
			case "repair":
				if undo != nil || bytes.Equal(out, old) {
					t.Error("a repair has no undo and changes something")
				}
			case "noop":
				if !bytes.Equal(out, old) {
					t.Errorf("changed a right file: %s", out)
				}
			default:
				t.Fatalf("unknown expectation %q", c.expect)
			}
		})
	}
}

// checkAdded holds for whatever Add did.
func checkAdded(t testing.TB, old, out []byte) {
	t.Helper()
	r, err := Inspect(out, Stop)
	if err != nil || !r.Right() {
		t.Fatalf("after Add: %v, %+v\n%s", err, r.Own, out)
	}
	if again, undo, err := Add(out, Stop); err != nil || undo != nil || !bytes.Equal(again, out) {
		t.Errorf("adding twice is not adding once: %v\n%s", err, again)
	}
	if got, want := users(t, out), users(t, old); !slices.Equal(got, want) {
		t.Errorf("user's hooks: %q, want %q", got, want)
	}
	if bytes.HasPrefix(out, []byte(byteOrderMark)) != bytes.HasPrefix(old, []byte(byteOrderMark)) {
		t.Error("byte order mark changed")
	}
	if bytes.Contains(old, []byte("\r\n")) && !bytes.Contains(bytes.ReplaceAll(old, []byte("\r\n"), nil), []byte("\n")) &&
		bytes.Contains(bytes.ReplaceAll(out, []byte("\r\n"), nil), []byte("\n")) {
		t.Error("a bare line feed in a CRLF file")
	}
	if len(old) > 0 && bytes.HasSuffix(old, []byte("\n")) != bytes.HasSuffix(out, []byte("\n")) {
		t.Error("final newline changed")
	}
	bare, err := Remove(out, Stop, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Inspect(bare, Stop); err != nil || len(r.Own) > 0 {
		t.Errorf("after Remove: %v, %+v", err, r.Own)
	}
	if got, want := users(t, bare), users(t, old); !slices.Equal(got, want) {
		t.Errorf("user's hooks after Remove: %q, want %q", got, want)
	}
}

// checkInsertion holds where there was no entry of ours before.
func checkInsertion(t testing.TB, old, out []byte, undo *Undo) {
	t.Helper()
	if undo == nil {
		t.Fatal("an insertion without an undo")
	}
	if strings.Trim(undo.Replaced, " \t\r\n") != "" {
		t.Errorf("the insertion replaced %q", undo.Replaced)
	}
	at := bytes.Index(out, []byte(undo.Inserted))
	if at < 0 || !bytes.HasPrefix(old[min(at, len(old)):], []byte(undo.Replaced)) {
		t.Fatalf("%q is not what was inserted in\n%s", undo.Inserted, out)
	}
	want := slices.Concat(old[:at], []byte(undo.Inserted), old[at+len(undo.Replaced):])
	if !bytes.Equal(out, want) {
		t.Errorf("more than one splice:\n%s", out)
	}
	// The undo has to survive being kept in a file.
	kept, err := json.Marshal(undo)
	if err != nil {
		t.Fatal(err)
	}
	var read Undo
	if err := json.Unmarshal(kept, &read); err != nil {
		t.Fatal(err)
	}
	back, err := Remove(out, Stop, &read)
	if err != nil || !bytes.Equal(back, old) {
		t.Errorf("Remove gives %q, %v\nwant %q", back, err, old)
	}
}

// users reads, with another JSON reader, every hook under Stop that is not ours, and everything else in the file.
func users(t testing.TB, b []byte) []string {
	t.Helper()
	b = bytes.TrimPrefix(b, []byte(byteOrderMark))
	file := map[string]any{}
	if len(bytes.TrimSpace(b)) > 0 {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&file); err != nil {
			t.Fatalf("not JSON: %v\n%s", err, b)
		}
	}
	var found []string
	if hooks, ok := file["hooks"].(map[string]any); ok {
		groups, _ := hooks["Stop"].([]any)
		for _, g := range groups {
			g := g.(map[string]any)
			leaves, _ := g["hooks"].([]any)
			for _, l := range leaves {
				if command, _ := l.(map[string]any)["command"].(string); !isOwn(command) {
					found = append(found, text(t, l))
				}
			}
			delete(g, "hooks")
			if len(g) > 0 {
				found = append(found, text(t, g))
			}
		}
		delete(hooks, "Stop")
		if len(hooks) == 0 {
			delete(file, "hooks")
		}
	}
	return append(found, text(t, file))
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
