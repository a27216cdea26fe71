//go:build !windows

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

func TestALoopShowsOnATerminalInOneLineHowFarItIs(t *testing.T) {
	dir := t.TempDir()
	task := filepath.Join(dir, "task.md")
	if err := os.WriteFile(task, []byte("# Mend the till\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	shown := make(chan []byte)
	go func() {
		data, _ := io.ReadAll(master) // it ends with an error when the terminal is gone
		shown <- data
	}()
	cmd := vx(t, "loop", "green", task, "true", "1", "--judge", "none", "--writer", `echo '{"total_cost_usd":0.25}'`)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, slave
	err = cmd.Run()
	slave.Close()
	got := string(<-shown)
	if err != nil || out.String() != "verified after 1 pass\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, want := range []string{"\r\x1b[Kpass 1 of 1: writer, 0s", "\r\x1b[Kpass 1 of 1: gate, ", ", $0.25"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	// The line is gone when what stays is printed.
	if _, last, _ := strings.Cut(got, "pass 1 of 1: gate"); strings.Contains(last, "pass") || !strings.Contains(last, "\r\x1b[K") {
		t.Errorf("%q", got)
	}
}
