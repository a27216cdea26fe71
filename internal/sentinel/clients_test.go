package sentinel

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"vx/internal/claude"
	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/task"
	"vx/internal/wake"
)

// clientProcess is a process that keeps a record of itself as Claude Code does.
type clientProcess struct {
	t   *testing.T
	cmd *exec.Cmd
	id  proc.ID
}

func startClaude(t *testing.T) *clientProcess {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	c := &clientProcess{t, cmd, id}
	t.Cleanup(func() { c.kill(); os.Remove(c.path()) })
	return c
}

func (c *clientProcess) path() string {
	return filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "sessions", strconv.Itoa(c.id.PID)+".json")
}

func (c *clientProcess) session() string { return "s" + strconv.Itoa(c.id.PID) }

// is writes the record, in place, as the client does.
func (c *clientProcess) is(status, waiting string) {
	c.t.Helper()
	r := map[string]any{
		"pid": c.id.PID, "procStart": strconv.FormatUint(c.id.Start, 10), "sessionId": c.session(), "cwd": "/", "version": "2.1.332",
		"kind": "interactive", "entrypoint": "cli", "status": status, "statusUpdatedAt": time.Now().UnixMilli(),
	}
	if waiting != "" {
		r["waitingFor"] = waiting
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(c.path(), data, 0o644)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *clientProcess) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

// watched is a task for a client in any terminal.
func (w *world) watched(c *clientProcess) *worker {
	w.t.Helper()
	added, err := w.tasks.Add(context.Background(), task.Task{
		Kind: wake.KindMission, Status: task.Running, Agent: "claude", Dir: w.t.TempDir(), PromptedAt: time.Now(),
		Session: &task.Session{PID: c.id.PID, Start: c.id.Start, Record: c.path()},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return &worker{world: w, id: added.ID}
}

func TestAWatchedSessionIsToldOfByItsRecordAlone(t *testing.T) {
	w := newWorld(t)
	c := startClaude(t)
	c.is("busy", "")
	a := w.watched(c)
	w.start()
	a.stays(task.Running, 20*time.Second)
	c.is("waiting", "permission prompt")
	told := w.told("dialog")
	if told[0].Dialog != "process "+strconv.Itoa(c.id.PID) || told[0].Detail != "permission prompt" {
		t.Errorf("told %+v", told[0])
	}
	c.is("shell", "")
	a.stays(task.Running, 20*time.Second)
	c.is("idle", "")
	a.becomes(task.Done)
	w.told("dialog", "running -> done")
	c.is("busy", "")
	a.becomes(task.Running)
	c.kill()
	a.becomes(task.Interrupted)
	w.told("dialog", "running -> done", "running -> interrupted")
	if n := len(w.herdr.Requests("")); n != 0 {
		t.Errorf("herdr was asked %d times", n)
	}
}

func TestARecordThatChangesBringsTheSweepForward(t *testing.T) {
	w := newWorld(t)
	c := startClaude(t)
	c.is("busy", "")
	a := w.watched(c)
	w.start()
	w.until("it was seen at work", func() bool { e := a.task().Evidence; return e != nil && e.State == "working" })
	w.passes(9 * time.Second)
	sweeps := w.sweeps.Load()
	w.until("the next sweep", func() bool { return w.sweeps.Load() > sweeps })
	c.is("idle", "")
	w.until("the next sweep", func() bool { return w.sweeps.Load() > sweeps+1 })
	a.becomes(task.Done)
}

func TestAClientInAPaneIsFoundThroughItsForegroundProcess(t *testing.T) {
	w := newWorld(t)
	c := startClaude(t)
	c.is("busy", "")
	a := w.dispatch("a", func(t *task.Task) { t.Agent = "claude" })
	a.Gone()
	a.Pane = w.herdr.Agent(herdrtest.Agent{Kind: "claude", Name: "a2", CWD: a.camp, Title: "✳ Fix", Processes: []herdrtest.Process{{PID: c.id.PID, Name: "claude"}}})
	_, err := w.tasks.Update(context.Background(), a.id, task.Running, func(t *task.Task) error {
		t.Herdr.Pane, t.Herdr.Agent, t.Herdr.TerminalID, t.Herdr.StateChangeSeq = a.ID, "a2", w.terminal(w.herdr, a.ID), a.Seq()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Working()
	w.start()
	w.passes(12 * time.Second)
	// herdr takes it for idle in the middle of a silent tool, with a commit already made.
	a.commit(a.camp)
	a.Idle()
	a.stays(task.Running, 40*time.Second)
	if e := a.task().Evidence; e == nil || e.By != "record" || e.State != "working" {
		t.Errorf("evidence %+v", e)
	}
	c.is("idle", "")
	a.becomes(task.Done)
	if n := len(w.herdr.Requests("agent.explain")); n != 0 {
		t.Errorf("herdr was asked %d times to explain what the record says", n)
	}
	if n := len(w.herdr.Requests("pane.process_info")); n != 1 {
		t.Errorf("the process was asked for %d times", n)
	}
}

func TestAClientThatDiedInItsPaneIsInterruptedThoughHerdrListsIt(t *testing.T) {
	w := newWorld(t)
	c := startClaude(t)
	c.is("busy", "")
	a := w.dispatch("a", func(t *task.Task) { t.Agent = "claude" })
	a.Gone()
	a.Pane = w.herdr.Agent(herdrtest.Agent{Kind: "claude", Name: "a2", CWD: a.camp, Processes: []herdrtest.Process{{PID: c.id.PID, Name: "claude"}}})
	_, err := w.tasks.Update(context.Background(), a.id, task.Running, func(t *task.Task) error {
		t.Herdr.Pane, t.Herdr.Agent, t.Herdr.TerminalID, t.Herdr.StateChangeSeq = a.ID, "a2", w.terminal(w.herdr, a.ID), a.Seq()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Working()
	w.start()
	w.until("its process is known", func() bool { return len(w.herdr.Requests("pane.process_info")) > 0 })
	w.passes(10 * time.Second)
	a.commit(a.camp)
	c.kill()
	a.Foreground()
	a.Idle()
	a.becomes(task.Interrupted)
	w.told("running -> interrupted")
}

func TestAWatchedSessionsQuestionIsReadFromItsTranscript(t *testing.T) {
	w := newWorld(t)
	c := startClaude(t)
	c.is("busy", "")
	a := w.watched(c)
	w.start()
	a.stays(task.Running, 20*time.Second)
	folder := filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "projects", "-")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	rows := `{"type":"user","message":{"content":"Go on"}}` + "\n" +
		`{"type":"assistant","message":{"content":[{"type":"text","text":"needs-decision: Keep them?\n- yes"}]}}` + "\n"
	if err := os.WriteFile(filepath.Join(folder, c.session()+".jsonl"), []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	c.is("idle", "")
	if told := w.told("running -> blocked"); told[0].Detail != "Keep them?\n- yes" {
		t.Errorf("the commander was told %q", told[0].Detail)
	}
}

// known is a watch of a client whose record was read when it had long been as it was.
func (c *clientProcess) known(all *clients) *watch {
	c.t.Helper()
	c.is("busy", "")
	c.touched(-time.Hour)
	all.want(c.id)
	s, ok := claude.SessionOf(c.id)
	if !ok {
		c.t.Fatal("no record")
	}
	return &watch{client: c.id, record: s}
}

// touched gives the record another time, which no watch tells of.
func (c *clientProcess) touched(by time.Duration) {
	c.t.Helper()
	at := time.Now().Add(by)
	if err := os.Chtimes(c.path(), at, at); err != nil {
		c.t.Fatal(err)
	}
}

func TestARecordWhoseChangeIsToldIsReadAgain(t *testing.T) {
	called := make(chan bool, 100)
	c, all := startClaude(t), newClients(func() { called <- true })
	t.Cleanup(all.close)
	w := c.known(all)
	if !w.still(all, time.Second) {
		t.Fatal("it is not what it was, and nobody wrote it")
	}
	c.is("idle", "")
	if all.changes != nil {
		<-called
	}
	if w.still(all, 2*time.Second) {
		t.Error("it counts as unchanged")
	}
}

func TestARecordIsReadAgainAfterAWhileWhateverItsStamps(t *testing.T) {
	c, all := startClaude(t), newClients(func() {})
	t.Cleanup(all.close)
	w := c.known(all)
	if w.still(all, twoWitnesses) {
		t.Error("what is told and its file are believed for ever")
	}
	all.close()
	if w.still(all, lookAgain) {
		t.Error("its file alone is believed for as long as two witnesses")
	}
}

func TestNoRecordOutlivesItsProcess(t *testing.T) {
	c, all := startClaude(t), newClients(func() {})
	t.Cleanup(all.close)
	w := c.known(all)
	if !w.still(all, time.Second) {
		t.Fatal("it is not what it was, and nobody wrote it")
	}
	other := &watch{client: w.client, record: w.record}
	other.client.Start++ // another process with its pid
	other.record.Process = other.client
	if other.still(all, lookAgain) {
		t.Error("the record of a process whose pid is another's counts")
	}
	c.kill()
	if w.still(all, 2*time.Second) {
		t.Error("the record of an ended process counts")
	}
}
