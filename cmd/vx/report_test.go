//go:build !windows

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"vx/internal/lock"
	"vx/internal/wake"
)

func TestTroubleOfTheMachineComesWithAHint(t *testing.T) {
	for hint, cause := range map[string]error{
		"make room on the disk": syscall.ENOSPC,
		"vx doctor":             syscall.EROFS,
		"another vx is at it":   lock.ErrHeld,
	} {
		said, err := os.Create(t.TempDir() + "/said")
		if err != nil {
			t.Fatal(err)
		}
		status := report(stdio{err: said}, fmt.Errorf("put a: %w", &fs.PathError{Op: "write", Path: "b", Err: cause}))
		said.Close()
		got, err := os.ReadFile(said.Name())
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("vx: put a: write b: %v\nhint: %s", cause, hint)
		if status != exitFailed || !strings.HasPrefix(string(got), want) || bytes.Count(got, []byte("\n")) != 2 {
			t.Errorf("%v: status %d, %q, want %q", cause, status, got, want)
		}
	}
}

func TestAWakeOfMegabytesTakesOneShortLineInAList(t *testing.T) {
	long := strings.Repeat("x\x1b[31m ", 1<<18)
	var out bytes.Buffer
	err := printListing(&out, wake.Listing{
		Waiting: []wake.Wake{{ID: long, Kind: wake.Kind(long), Title: long, OldStatus: long}, {ID: "b", Title: "short"}},
		Bad:     []wake.Bad{{Name: long}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if n := len([]rune(l)); n > 400 {
			t.Errorf("a line of %d characters", n)
		}
	}
}
