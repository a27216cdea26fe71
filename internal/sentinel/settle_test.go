package sentinel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// playAwait is an await for a client that may be gone: it says so, and lives until it is told to end.
func playAwait(root string, client proc.ID) {
	dir, err := state.Open()
	if err == nil {
		_, err = awaiter.Register(dir, dir.Project(root), awaiter.Record{Process: proc.Self(), Project: root, Client: client})
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		return
	}
	os.Stdout.WriteString("ready\n")
	time.Sleep(time.Hour)
}

// gone is a process that has ended.
var gone = proc.ID{PID: 1 << 30, Start: 1}

func openState(t *testing.T) *state.Dir {
	t.Helper()
	t.Setenv("VEXILLUM_HOME", filepath.Join(t.TempDir(), "state"))
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// startAwait starts an await of a client in a process of its own.
func startAwait(t *testing.T, client proc.ID) *exec.Cmd {
	t.Helper()
	data, err := json.Marshal(client)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "sentinel", "await")
	cmd.Env = append(os.Environ(), "VXTEST_CLIENT="+string(data))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "ready\n" {
		t.Fatalf("the await says %q, %v", line, err)
	}
	return cmd
}

func TestAnAwaitWhoseClientIsGoneIsEnded(t *testing.T) {
	dir := openState(t)
	h := NewHouse(dir, slog.New(slog.DiscardHandler))
	h.Keep(t.Context()) // a look before does not hide those that come
	orphan, serving := startAwait(t, gone), startAwait(t, proc.Self())
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	for {
		h.Keep(t.Context())
		select {
		case err := <-ended:
			if err == nil || err.Error() != "signal: terminated" {
				t.Errorf("it ended with %v", err)
			}
			live, err := awaiter.List(dir, nil)
			if err != nil || len(live) != 1 || live[0].Process.PID != serving.Process.Pid {
				t.Errorf("there are %v, %v; want the one that serves somebody", live, err)
			}
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestAnAwaitIsEndedOnceItsClientGoes(t *testing.T) {
	openState(t)
	client := exec.Command("sleep", "600")
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer client.Wait()
	defer client.Process.Kill()
	id, err := proc.Find(client.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	h := NewHouse(dir, slog.New(slog.DiscardHandler))
	await := startAwait(t, id)
	ended := make(chan error, 1)
	go func() { ended <- await.Wait() }()
	h.Keep(t.Context())
	time.Sleep(coarse + 100*time.Millisecond) // what was seen is believed from now on, and the client is asked all the same
	h.Keep(t.Context())
	h.Keep(t.Context())
	select {
	case err := <-ended:
		t.Fatalf("it ended with %v although its client lives", err)
	default:
	}
	client.Process.Kill()
	for id.Status() != proc.Gone {
		time.Sleep(time.Millisecond)
	}
	h.Keep(t.Context())
	<-ended
}

func TestWhatAnOwnerThatDiedHadClaimedGoesBack(t *testing.T) {
	dir := openState(t)
	h := NewHouse(dir, slog.New(slog.DiscardHandler))
	h.Keep(t.Context())
	var queues []*wake.Queue
	for _, root := range []string{t.TempDir(), t.TempDir()} {
		q := wake.Open(dir.Project(root))
		if _, err := q.Put(t.Context(), wake.Wake{Title: "the deploy"}); err != nil {
			t.Fatal(err)
		}
		d, err := q.Claim(t.Context())
		if err != nil || d == nil {
			t.Fatal(d, err)
		}
		h.Keep(t.Context())
		if n, err := q.Count(); n != 0 || err != nil {
			t.Fatalf("a living owner is robbed of its wake: %d wait, %v", n, err)
		}
		if err := d.Close(); err != nil { // as its death does
			t.Fatal(err)
		}
		queues = append(queues, q)
	}
	h.Keep(t.Context())
	for _, q := range queues {
		if n, err := q.Count(); n != 1 || err != nil {
			t.Errorf("%d wait, %v; want the one that was claimed", n, err)
		}
	}
}

func TestAMessageThatAScriptDroppedIsRungForOnce(t *testing.T) {
	dir := openState(t)
	p := dir.Project("/home/u/shop")
	h := NewHouse(dir, slog.New(slog.DiscardHandler))
	if err := errors.Join(p.Ensure(), os.Mkdir(p.Join("forum-inbox"), 0o700)); err != nil {
		t.Fatal(err)
	}
	h.Keep(t.Context())
	if err := os.WriteFile(p.Join("forum-inbox", "card.json"), []byte(`{"text":"less","session":"s"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	rings := 0
	for range 3 {
		h.Keep(t.Context())
		d, err := wake.Open(p).Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d != nil {
			rings++
			if err := errors.Join(d.Note(wake.Recipient{}), d.Emit(), d.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rings != 1 {
		t.Errorf("rung for %d times", rings)
	}
}

func TestTroubleIsLoggedOnceAndHoldsUpNoOtherProject(t *testing.T) {
	dir := openState(t)
	var log bytes.Buffer
	h := NewHouse(dir, slog.New(slog.NewTextHandler(&log, nil)))
	broken := dir.Project(t.TempDir())
	err := os.MkdirAll(broken.Dir, 0o700)
	if err == nil {
		err = os.WriteFile(broken.Join("project.json"), []byte("{"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	q := wake.Open(dir.Project(t.TempDir()))
	_, err = q.Put(t.Context(), wake.Wake{Title: "the deploy"})
	d, cerr := q.Claim(t.Context())
	if err := errors.Join(err, cerr, d.Close()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		h.Keep(t.Context())
	}
	if n, err := q.Count(); n != 1 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, broken.Dir) {
		t.Errorf("the log says\n%s", got)
	}
	time.Sleep(coarse + 100*time.Millisecond) // nothing comes or goes in the directory, and what is in it is mended
	h.Keep(t.Context())
	if err := os.WriteFile(broken.Join("project.json"), fmt.Appendf(nil, `{"path":%q}`, broken.Root), 0o600); err != nil {
		t.Fatal(err)
	}
	if h.Keep(t.Context()); len(h.Projects()) != 2 || len(h.said) != 0 {
		t.Errorf("mended, there are %d projects, and trouble with %v", len(h.Projects()), h.said)
	}
}

func TestAHouseForgetsProjectsThatAreGone(t *testing.T) {
	dir := openState(t)
	h := NewHouse(dir, slog.New(slog.DiscardHandler))
	q := wake.Open(dir.Project(t.TempDir()))
	if err := q.Ensure(); err != nil {
		t.Fatal(err)
	}
	if h.Keep(t.Context()); len(h.sent) != 1 {
		t.Errorf("%d queues are looked at, want 1", len(h.sent))
	}
	if err := q.Forget(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	if h.Keep(t.Context()); len(h.sent) != 0 {
		t.Errorf("%d queues are looked at, want none", len(h.sent))
	}
}
