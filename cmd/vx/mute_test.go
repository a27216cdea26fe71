//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/state"
)

func TestADurationMayBeInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "90m": 90 * time.Minute, "0s": 0, "-1h": -time.Hour,
	} {
		var s span
		if err := s.UnmarshalText([]byte(text)); err != nil || time.Duration(s) != want {
			t.Errorf("%s is %s, %v; want %s", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{"", "d", "3", "1.5d", "-2d", "999999d", "1dd", "1d2", "soon"} {
		var s span
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %s", text, time.Duration(s))
		}
	}
}

// What has come while it was muted is not to wait for the poll.
func TestUnmuteRings(t *testing.T) {
	t.Setenv("VEXILLUM_HOME", filepath.Join(t.TempDir(), "state"))
	root := t.TempDir()
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := dir.Project(root)
	vx := func(command string) {
		t.Helper()
		if status := run([]string{command, "--project", root}, stdio{nil, out, out}); status != 0 {
			said, _ := os.ReadFile(out.Name())
			t.Fatalf("vx %s: exit %d\n%s", command, status, said)
		}
	}
	vx("mute")
	a, err := awaiter.Register(dir, p, awaiter.Record{Process: proc.Self(), Project: root})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	rung := func() bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(a.FD()), Events: unix.POLLIN}}, 0)
		return n == 1
	}
	if c, err := p.Config(); err != nil || !c.Muted(time.Now().Add(1000*time.Hour)) || rung() {
		t.Errorf("muted: %+v, %v; rung: %v", c, err, rung())
	}
	vx("unmute")
	if c, err := p.Config(); err != nil || c.Muted(time.Now()) || !rung() {
		t.Errorf("muted: %+v, %v; rung: %v", c, err, rung())
	}
}
