//go:build !windows

package main

import (
	"bytes"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestTheLiveViewStaysWithinTheTerminalAndLeavesItsCursor(t *testing.T) {
	cmd := vx(t, "status", "--watch", "--project", t.TempDir())
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	defer time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() }).Stop() // and the reads below end
	var all []byte
	reads := func(until string) {
		t.Helper()
		for block := make([]byte, 4096); !bytes.Contains(all, []byte(until)); {
			n, err := master.Read(block)
			all = append(all, block[:n]...)
			if err != nil && !bytes.Contains(all, []byte(until)) {
				t.Fatalf("no %q in %q: %v", until, all, err)
			}
		}
	}
	reads("nothi…\r\n")
	if err := cmd.Process.Signal(os.Signal(syscall.SIGINT)); err != nil {
		t.Fatal(err)
	}
	reads("\x1b[?25h")
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestAgesAreInTheLargestUnit(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m", 90 * time.Minute: "1h", 47 * time.Hour: "47h", 50 * time.Hour: "2d",
	} {
		if got := age(now.Add(-d), now); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	if got := age(time.Time{}, now); got != "?" {
		t.Errorf("since nobody knows when is %s", got)
	}
}
