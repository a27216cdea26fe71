//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A process is a pid with its start time: the pid alone may be another's by the time it is used.
type process struct {
	pid   int
	start string
}

func processOf(pid int) process {
	return process{pid, stat(pid, 22)}
}

// stat returns a field of /proc/PID/stat, counted from 1 as proc(5) does; empty when there is no such process.
func stat(pid, field int) string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The second field is a name in parentheses that may hold anything.
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	fields := strings.Fields(rest)
	if field-3 >= len(fields) {
		return ""
	}
	return fields[field-3]
}

// descends reports whether the process was started by the other, or by one that was.
func (p process) descends(from process) bool {
	for pid := p.pid; pid > 1; {
		parent, err := strconv.Atoi(stat(pid, 4))
		if err != nil {
			return false
		}
		if processOf(parent) == from {
			return true
		}
		pid = parent
	}
	return false
}

// alive reports whether the process runs; a zombie does not.
func (p process) alive() bool {
	return p.start != "" && stat(p.pid, 22) == p.start && stat(p.pid, 3) != "Z"
}

func (p process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Release()
	if !p.alive() {
		t.Fatalf("process %d is gone", p.pid)
	}
	if err := handle.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process if it is still the one that works in dir. The handle is taken before the look, so that
// it is the process looked at that gets the signal.
func (p process) kill(dir string) {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return
	}
	defer handle.Release()
	if p.alive() && worksIn(p.pid, dir) {
		handle.Kill()
	}
}

func worksIn(pid int, dir string) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	cwd = strings.TrimSuffix(cwd, " (deleted)")
	return err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/"))
}

// processesIn lists the processes that work in a folder: hooks do, in the project or where the model went.
func processesIn(dir string) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []process
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && worksIn(pid, dir) {
			found = append(found, processOf(pid))
		}
	}
	return found
}

// command returns the process's arguments, with spaces between them.
func (p process) command() string {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "cmdline"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
}
