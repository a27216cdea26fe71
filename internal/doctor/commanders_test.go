package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

func TestWhoWaitsIsNamed(t *testing.T) {
	w := newWorld(t)
	w.says("await")
	q := w.project(w.root)
	w.says("await", "info no await, and nothing waits")
	w.put(q, "a")
	w.says("await", "warn no await, 1 wake waits; delivered at the end of the next turn: start claude there, or give it a prompt")
	w.put(q, "b")

	r := awaiter.Record{Process: proc.Self(), Project: w.root, Harness: "claude", Client: proc.ID{PID: 42, Start: 1}, Since: time.Date(2026, 1, 2, 14, 2, 0, 0, time.Local)}
	a, err := awaiter.Register(q.Project.State(), q.Project, r)
	w.must(err)
	w.says("await", "ok 1 waiting, for claude (process 42) since 2026-01-02 14:02")
	w.must(a.Close())
	w.says("await", "warn no await since "+time.Now().Format("15:04")+", 2 wakes wait; delivered at the end of the next turn: *")

	// One that was killed ended at a time that nobody knows.
	w.write(q.Project.State().Awaiters()+"/"+q.Project.ID()+"-1-00000000.json", "{}")
	w.says("await", "warn no await, 2 wakes wait; *")

	w.must(q.Project.Update(func(c *state.Config) { c.Await = "" }))
	w.says("await", "warn *: vx init --await always, if the session is not in a herdr pane")
	t.Setenv("HERDR_WORKSPACE_ID", "w1")
	w.says("await", "warn *: start claude there, or give it a prompt")
}

// registered makes commanders known, in processes that live as long as the test; the first is this one.
func (w world) registered(q *wake.Queue, all ...commander.Entry) {
	w.Helper()
	processes := []proc.ID{proc.Self()}
	parent, err := proc.Find(os.Getppid())
	w.must(err)
	processes = append(processes, parent)
	for i, e := range all {
		e.Process = processes[i]
		w.must(commander.Register(q.Project, e))
	}
}

func TestAProjectWhoseCommanderLivesIsWellWithoutAnAwait(t *testing.T) {
	w := newWorld(t)
	w.says("commanders")
	q := w.project(w.root)
	w.says("commanders")
	w.registered(q, commander.Entry{Harness: "claude", Pane: "w1:p2"})
	w.says("commanders", fmt.Sprintf("ok claude (process %d) in pane w1:p2, without an await", os.Getpid()))
	w.says("await", "info no await, and nothing waits")
	w.put(q, "a")
	w.put(q, "b")
	w.says("await", "info no await, 2 wakes wait; delivered at the end of the next turn")
	w.says("sentinel", "ok not running, nothing to watch")
	w.registered(q, commander.Entry{Harness: "claude", Pane: "w1:p2", Socket: "/s", Terminal: "term_1"})
	w.must(q.Project.Update(func(c *state.Config) { c.Nudge = true }))
	w.says("await", "info no await, 2 wakes wait; the sentinel types into pane w1:p2 once claude is idle there")
	w.says("sentinel", "warn not running, so nobody sends what no await asks for: vx sentinel, or *")
	w.must(q.Project.Update(func(c *state.Config) { c.Nudge = false }))
	w.says("sentinel", "ok not running, nothing to watch")
	w.registered(q, commander.Entry{Harness: "opencode", Session: "ses_1", Server: &commander.Server{URL: "http://127.0.0.1:4096"}})
	w.says("await", "info no await, 2 wakes wait; the sentinel delivers to opencode")
	w.says("sentinel", "warn not running, so nobody sends what no await asks for: vx sentinel, or *")

	r := awaiter.Record{Process: proc.Self(), Project: w.root, Harness: "opencode", Client: proc.Self(), Since: time.Now()}
	a, err := awaiter.Register(q.Project.State(), q.Project, r)
	w.must(err)
	w.says("commanders", fmt.Sprintf("ok opencode (process %d) in pane w1:p2", os.Getpid()))
	w.must(a.Close())
}

func TestDoctorTellsWhoseTurnsFail(t *testing.T) {
	w := newWorld(t)
	q := w.project(w.root)
	w.registered(q, commander.Entry{Harness: "claude", Session: "s1"})
	w.says("brake", "ok off")
	self := proc.Self()
	failed := `{"type":"assistant","isApiErrorMessage":true,"timestamp":"` + time.Now().UTC().Format(time.RFC3339Nano) + `","message":{"role":"assistant","content":[]}}` + "\n"
	w.write(filepath.Join(w.home, ".claude/projects/p/s1.jsonl"), failed)
	w.write(filepath.Join(w.home, fmt.Sprintf(".claude/sessions/%d.json", self.PID)),
		fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":"s1","cwd":"/","version":"2.1.332","kind":"interactive","entrypoint":"cli","status":"idle"}`, self.PID, self.Start))
	w.says("brake", fmt.Sprintf("warn turns of process %d ended in an API error, 1 in a row: no wake for it until *", os.Getpid()))
}

func TestCommandersWhoShareAQueueAreWarned(t *testing.T) {
	w := newWorld(t)
	w.says("commanders share one wake queue")
	q := w.project(w.root)
	w.registered(q, commander.Entry{Harness: "claude", Since: time.Unix(1000, 0)})
	w.says("commanders share one wake queue")
	w.registered(q, commander.Entry{Harness: "claude"}, commander.Entry{Harness: "pi"})
	w.says("commanders share one wake queue", "warn 2 commanders are live in this project (claude, pi) and a wake is delivered once, to whichever asks first, so the other is not told: vx status and vx forum inbox, where nothing is lost")
	a, err := awaiter.Register(q.Project.State(), q.Project, awaiter.Record{Process: proc.Self(), Project: w.root, Since: time.Now().Add(time.Hour)})
	w.must(err)
	w.says("commanders share one wake queue", "warn 3 commanders are live in this project (claude, pi, a client) and a wake is delivered once, to whichever asks first, so the others are not told: *")
	w.must(a.Close())
}

func TestDoctorRemovesNoCommander(t *testing.T) {
	w := newWorld(t)
	q := w.project(w.root)
	w.must(commander.Register(q.Project, commander.Entry{Harness: "pi", Process: proc.ID{PID: 1 << 30, Start: 1}}))
	w.registered(q, commander.Entry{Harness: "claude"})
	self := filepath.Join("commanders", fmt.Sprintf("%d-%d.json", os.Getpid(), proc.Self().Start))
	w.must(os.WriteFile(q.Project.Join(self), []byte("{"), 0o600))
	before := w.tree(q.Project.Dir)
	w.says("commanders", "warn *: vx commander list; one that cannot be read is made anew by its next vx dispatch")
	w.says("commanders share one wake queue")
	if after := w.tree(q.Project.Dir); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v became %v", before, after)
	}
}
