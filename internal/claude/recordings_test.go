package claude

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the recordings of the real client prove for the token: testdata/transcripts/README.md. A case with a second file,
// CASE.1.jsonl, was noted with that one, and went on in the other after /clear.
var recorded = map[string]Receipt{
	"idle":                      TurnStarted,
	"idle-twice":                TurnStarted,
	"half-typed":                TurnStarted,
	"idle-then-prompt":          TurnStarted,
	"streaming":                 TurnStarted,
	"tool-running":              TurnStarted,
	"two-at-once":               TurnStarted,
	"two-mid-turn":              TurnStarted,
	"prompt-queued":             TurnStarted,
	"popped":                    TurnStarted,
	"clear":                     TurnStarted,
	"clear-enqueued":            TurnStarted,
	"escape":                    TurnStarted,
	"compact":                   TurnStarted,
	"echoed":                    TurnStarted,
	"api-error":                 TurnFailed,
	"api-error-mid-turn":        TurnFailed,
	"killed-turn":               TurnStarted,
	"killed-turn-continued":     TurnStarted,
	"killed-dequeued":           Enqueued,
	"killed-dequeued-continued": Enqueued,
	"killed-enqueued":           Enqueued,
	"killed-enqueued-continued": Enqueued,
	"term-enqueued":             Enqueued,
	"term-enqueued-continued":   Enqueued,
	"stopped":                   Absent,
	"stopped-continued":         TurnStarted,
	"mentioned":                 Absent,
}

// others are the tokens of the second delivery, where there was one.
var others = map[string]string{"idle-twice": "1111111111111111", "two-at-once": "2222222222222222", "two-mid-turn": "2222222222222222"}

// recording copies a case into a directory of its own; the path is the transcript that was noted.
func recording(t *testing.T, version, name string) string {
	t.Helper()
	dir := t.TempDir()
	noted := filepath.Join(dir, name+".jsonl")
	files, err := filepath.Glob(filepath.Join(version, name+"*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		base := filepath.Base(f)
		if base != name+".jsonl" && base != name+".1.jsonl" {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, base), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if base == name+".1.jsonl" {
			noted = filepath.Join(dir, base)
		}
	}
	return noted
}

func versions(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("../../testdata/transcripts/[0-9]*")
	if err != nil || len(dirs) < 2 {
		t.Fatalf("recordings of %d versions, %v", len(dirs), err)
	}
	return dirs
}

func TestRecordingsOfTheRealClient(t *testing.T) {
	for _, version := range versions(t) {
		found := map[string]bool{}
		files, err := filepath.Glob(filepath.Join(version, "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".jsonl")
			if name = strings.TrimSuffix(name, ".1"); !strings.HasSuffix(name, ".stdin") {
				found[name] = true
			}
		}
		names := slices.Sorted(maps.Keys(found))
		if want := slices.Sorted(maps.Keys(recorded)); !slices.Equal(names, want) {
			t.Errorf("%s has %q, expected are %q", version, names, want)
		}
		for _, name := range names {
			path := recording(t, version, name)
			// The recordings' own times are long past, or to come.
			if got, err := FindReceipt(path, 0, time.Time{}, token); got != recorded[name] || err != nil {
				t.Errorf("%s %s: %v, %v, want %v", version, name, got, err, recorded[name])
			}
			if second := others[name]; second != "" {
				if got, err := FindReceipt(path, 0, time.Time{}, second); got != TurnStarted || err != nil {
					t.Errorf("%s %s, second delivery: %v, %v, want turn started", version, name, got, err)
				}
			}
			if got, err := FindReceipt(path, 0, time.Time{}, "0123456789abcdef"); got != Absent || err != nil {
				t.Errorf("%s %s, another token: %v, %v, want absent", version, name, got, err)
			}
		}
	}
}

// A client can be looked at at any moment: what a recording shows never goes beyond what its whole rows so far prove.
func TestNoBeginningOfARecordingProvesTooMuch(t *testing.T) {
	for _, version := range versions(t) {
		for name, want := range recorded {
			path := recording(t, version, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			proof := len(data)
			if i := bytes.Index(data, []byte(token)); i >= 0 {
				proof = i
			}
			for cut := 0; cut < len(data); cut += 1 + len(data)/15 {
				begun := filepath.Join(t.TempDir(), "begun.jsonl")
				if err := os.WriteFile(begun, data[:cut], 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := FindReceipt(begun, 0, time.Time{}, token)
				if err != nil {
					t.Fatal(err)
				}
				if got > max(want, Absent) && got != TurnStarted || cut <= proof && got != Absent {
					t.Errorf("%s %s, %d of %d bytes: %v, and %v in the end", version, name, cut, len(data), got, want)
				}
			}
		}
	}
}
