package hook

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vx/internal/proc"
)

func TestANoteIsReadAsItWasWritten(t *testing.T) {
	n := &note{
		state: "/a b/state", dir: "/a b/state/projects/x", project: "/a\nb", session: "s\x00\"1", transcript: "/t/\xff.jsonl", pane: "w1:p1",
		record: "/r", spare: "/s/owner", sentinel: "/l", claude: true, client: proc.ID{PID: 7, Start: 1<<64 - 1},
		began: 3 * time.Hour, parent: 1, lock: 2, bell: 3, held: 4, stderr: 5, signals: signals{6, 7},
	}
	if v := reflect.ValueOf(*n); true {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the test leaves %s at zero", v.Type().Field(i).Name)
			}
		}
	}
	text := n.encode()
	var got note
	if err := got.decode(text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*n, got, cmp.AllowUnexported(note{}, signals{})); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range [][]byte{nil, text[:len(text)/2], append(bytes.Clone(text), '\n'), bytes.ReplaceAll(text, []byte("true"), []byte("soon"))} {
		if err := new(note).decode(wrong); err == nil {
			t.Errorf("%q is read as a note", wrong)
		}
	}
}
