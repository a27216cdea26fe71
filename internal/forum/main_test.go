package forum

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"vx/internal/atomicfile"
	"vx/internal/state"
	"vx/internal/wake"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == crashArg {
		os.Exit(crash(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func open(t *testing.T) *Inbox {
	t.Helper()
	dir, err := state.OpenAt(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return Open(dir.Project("/home/u/shop"))
}

func post(t *testing.T, b *Inbox, m Message) Message {
	t.Helper()
	m, fresh, err := b.Post(t.Context(), m)
	if err != nil || !fresh {
		t.Fatalf("posted %+v, new %v, %v", m, fresh, err)
	}
	return m
}

func drop(t *testing.T, b *Inbox, name, data string) {
	t.Helper()
	temp := b.join("." + name)
	err := os.MkdirAll(b.Dir(), 0o700)
	if err = errors.Join(err, os.WriteFile(temp, []byte(data), 0o600), os.Rename(temp, b.join(name))); err != nil {
		t.Fatal(err)
	}
}

func recoverAll(t *testing.T, b *Inbox) {
	t.Helper()
	if err := Recover(t.Context(), b.Project); err != nil {
		t.Fatal(err)
	}
}

func waiting(t *testing.T, b *Inbox) []Message {
	t.Helper()
	all, bad := b.Waiting()
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return all
}

// told drains the project's queue: the lines that its commander is told.
func told(t *testing.T, b *Inbox) (lines []string) {
	t.Helper()
	q := wake.Open(b.Project)
	q.News = News(b.Project.State(), b.Project)
	for {
		d, err := q.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d == nil {
			return lines
		}
		for line := range strings.Lines(d.Text) {
			if line, ok := strings.CutPrefix(line, "- "); ok {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		if err := errors.Join(d.Note(wake.Recipient{}), d.Emit(), d.Close(), q.Settle(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

// crashArg is the first argument of this binary as a process that crashes: what it does, the state directory, and how many
// steps it lives.
const crashArg = "crash"

func crash(args []string) int {
	dir, err := state.OpenAt(args[1])
	if err != nil {
		return 1
	}
	b := Open(dir.Project("/home/u/shop"))
	lives, _ := strconv.Atoi(args[2])
	step := func(name string) error {
		fmt.Println(name)
		if lives--; lives == 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	b.queue.Before = func(s wake.Step) error { return step(string(s)) }
	atomicfile.Before = func(s, _ string) error { return step("file: " + s) }
	if args[0] == "recover" {
		err = b.recover(context.Background())
	} else {
		_, _, err = b.Post(context.Background(), Message{ID: "m1", Session: "s", File: "notes.md", Text: "more"})
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// die has a process do its work up to the nth step. It returns the step that it died at, "" if it lived.
func die(t *testing.T, b *Inbox, what string, nth int) (step string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], crashArg, what, b.Project.State().Path(), strconv.Itoa(nth))
	out, err := cmd.Output()
	if err == nil {
		return ""
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("%s at step %d: %v: %s", what, nth, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
