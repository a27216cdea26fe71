package commander

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vx/internal/awaiter"
	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/state"
)

// This binary is also a harness, by the name that it is started as, and the command that one runs.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("BE_COMMAND") != "":
		beCommand()
	case os.Getenv("BE_HARNESS") != "":
		beHarness()
	default:
		os.Exit(m.Run())
	}
}

// beHarness runs the command through a shell, as harnesses do.
func beHarness() {
	cmd := exec.Command("sh", "-c", os.Getenv("BE_HARNESS")+"; exit $?")
	cmd.Env = append(os.Environ(), "BE_COMMAND=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.Run() != nil {
		os.Exit(1)
	}
}

// told is what the command found out.
type told struct {
	Entry   Entry
	Project string
	Client  proc.ID
}

func beCommand() {
	dir, err := state.OpenAt(os.Getenv("STATE"))
	if err != nil {
		panic(err)
	}
	var t told
	t.Entry, t.Project, err = Self(context.Background(), dir, Here{os.Getenv("PANE"), os.Getenv("SOCKET")})
	t.Client = Client()
	if err = errors.Join(err, json.NewEncoder(os.Stdout).Encode(t)); err != nil {
		panic(err)
	}
}

// harness is a program of that name that runs a command, which says whom it takes itself to be run by.
func (w *world) harness(name, pane string, env ...string) (id proc.ID, t told) {
	w.Helper()
	path := filepath.Join(w.TempDir(), name)
	if err := os.Symlink(os.Args[0], path); err != nil {
		w.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.TempDir(), "BE_HARNESS=" + os.Args[0],
		"STATE=" + w.dir.Path(), "PANE=" + pane, "SOCKET=" + w.herdr.Socket,
	}, env...)
	cmd.Stderr = w.Output()
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &t)
	}
	if err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	return proc.ID{PID: cmd.Process.Pid, Start: t.Client.Start}, t
}

func TestACommandKnowsTheHarnessThatRunsIt(t *testing.T) {
	w := newWorld(t)
	pane := w.herdr.Agent(herdrtest.Agent{CWD: w.shop})
	terminal := w.terminal(pane)
	for _, c := range []struct {
		name, env, want string
	}{
		{"pi", "X=", "pi"},
		{"opencode", "X=", "opencode"},
		{"opencode.exe", "X=", "opencode"},
		{"node", "AI_AGENT=pi", "pi"},
		{"node", "PI_CODING_AGENT=true", "pi"},
		{"bun", "OPENCODE=1", "opencode"},
		{"opencode", "AI_AGENT=pi", "opencode"}, // that was started from Pi
		{"pi", "BE_HARNESS=timeout 60 " + os.Args[0], "pi"},
	} {
		id, got := w.harness(c.name, pane.ID, c.env)
		want := told{Entry{Harness: c.want, Process: id, Pane: pane.ID, Socket: w.herdr.Socket, Terminal: terminal}, w.shop, id}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c, diff)
		}
	}
}

func (w *world) terminal(pane *herdrtest.Pane) string {
	w.Helper()
	a, err := inPane(w.Context(), Here{pane.ID, w.herdr.Socket})
	if err != nil || a.TerminalID == "" {
		w.Fatal(a, err)
	}
	return a.TerminalID
}

func TestOutsideOfHerdrACommandIsNobodys(t *testing.T) {
	w := newWorld(t)
	if _, got := w.harness("pi", ""); !cmp.Equal(got.Entry, Entry{}, cmpopts.IgnoreUnexported(Entry{})) || got.Project != "" || got.Client.IsZero() {
		t.Errorf("%+v", got)
	}
}

func TestASessionRecordOrAnAwaitSaysMoreThanAName(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	config := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", config)
	client, _ := process(t)
	self := proc.Self()
	none := func(string) string { return "" }
	chain := []proc.Info{{ID: proc.ID{PID: 1 << 30, Start: 1}, Name: "zsh"}, {ID: proc.ID{PID: 1<<30 + 1, Start: 1}, Name: "python3"}, {ID: client, Name: "node"}, {ID: self, Name: "herdr"}}
	is := func(want, got Entry) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	// A person may type the command in the shell of a pane whose session sleeps in the background.
	is(Entry{}, who(chain, []awaiter.Entry{{Record: awaiter.Record{Harness: "claude", Session: "s0"}}}, none))
	is(Entry{}, who(nil, nil, func(string) string { return "pi" }))
	await := awaiter.Entry{Record: awaiter.Record{Client: client, Harness: "pi", Session: "s1", Since: time.Now()}}
	is(Entry{Harness: "pi", Session: "s1", Process: client}, who(chain, []awaiter.Entry{await}, none))
	await.Harness = ""
	is(Entry{}, who(chain, []awaiter.Entry{await}, none))
	record := fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":"0f3c","cwd":"/home/u/shop","kind":"interactive","status":"busy"}`, client.PID, client.Start)
	at := filepath.Join(config, "sessions", fmt.Sprintf("%d.json", client.PID))
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(record), 0o600)); err != nil {
		t.Fatal(err)
	}
	is(Entry{Harness: "claude", Session: "0f3c", Process: client}, who(chain, nil, none))
	// One that a session started itself is nearer.
	pi := proc.Info{ID: proc.ID{PID: 1<<30 + 2, Start: 1}, Name: "MainThread", Args: []string{"/usr/bin/node", "/x/node_modules/@earendil-works/pi-coding-agent/dist/cli.js"}}
	is(Entry{Harness: "pi", Process: pi.ID}, who(append([]proc.Info{pi}, chain...), nil, none))
}
