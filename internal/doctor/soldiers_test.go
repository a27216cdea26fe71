package doctor

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/state"
	"vx/internal/task"
)

// task writes a task's record.
func (w world) task(p *state.Project, id, status, more string) {
	w.Helper()
	w.write(p.Join("tasks", id+".json"), fmt.Sprintf(`{"id":%q,"kind":"mission","status":%q%s}`, id, status, more))
}

// answering is a socket at which every request is answered with one line.
func (w world) answering(line string) (path string) {
	w.Helper()
	path = filepath.Join(w.TempDir(), "s")
	l, err := net.Listen("unix", path)
	w.must(err)
	w.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			bufio.NewReader(c).ReadString('\n')
			fmt.Fprintln(c, line)
			c.Close()
		}
	}()
	return path
}

func TestHerdrIsLookedForOnlyWhereItMatters(t *testing.T) {
	w := newWorld(t)
	w.says("herdr")
	p := w.project(w.root).Project
	w.task(p, "0000000000000001", "landed", `,"herdr":{"socket":"/nowhere/herdr.sock"}`)
	w.task(p, "0000000000000002", "running", `,"session":{"pid":1,"start":1}`)
	w.says("herdr")
	t.Setenv("HERDR_PANE_ID", "w1:p2")
	w.says("herdr", "warn none at ~/.config/herdr/herdr.sock, and none on PATH: install herdr, and start it")
	w.program(w.home+"/bin/herdr", "exit 1")
	t.Setenv("PATH", w.home+"/bin:/usr/bin:/bin")
	w.says("herdr", "warn none at ~/.config/herdr/herdr.sock: start herdr")
	t.Setenv("HERDR_SESSION", "../x")
	w.says("herdr", `warn *HERDR_SESSION is no session's name*: set it right, or unset it`)
}

func TestEveryHerdrIsAskedOnce(t *testing.T) {
	w := newWorld(t)
	srv := herdrtest.New(t, herdrtest.Options{Profile: 17})
	p := w.project(w.root).Project
	other := w.project(t.TempDir()).Project
	at := fmt.Sprintf(`,"herdr":{"socket":%q}`, srv.Socket)
	w.task(p, "0000000000000001", "running", at)
	w.task(other, "0000000000000002", "done", at)
	old := w.answering(`{"id":"ping","result":{"type":"pong","version":"0.6.9","protocol":16}}`)
	mad := w.answering("\x1b]0;hello\a")
	w.task(p, "0000000000000003", "blocked", fmt.Sprintf(`,"herdr":{"socket":%q}`, old))
	w.task(other, "0000000000000004", "done", fmt.Sprintf(`,"herdr":{"socket":%q}`, mad))
	t.Setenv("HERDR_SOCKET_PATH", srv.Socket)
	w.says("herdr",
		"ok *, protocol 17, at *, where 2 tasks live",
		"warn 0.6.9 at *, where 1 task lives speaks protocol 16; vx needs 17: update herdr",
		"warn none that answers at *, where 1 task lives: *not herdr's answer*: restart that herdr")
	if n := len(srv.Requests("ping")); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestTasksThatCannotBeReadAreNamed(t *testing.T) {
	w := newWorld(t)
	w.says("tasks")
	p := w.project(w.root).Project
	w.says("tasks")
	w.task(p, "0000000000000001", "running", "")
	w.says("tasks", "ok 1 known")
	w.write(p.Join("tasks", "0000000000000002.json"), "{")
	other := w.project("/nowhere/else").Project
	w.write(other.Join("tasks", "0000000000000003.json"), `{"id":"\u001b[31m4"}`)
	w.says("tasks",
		"warn task 0000000000000002: unexpected end of JSON input: mend it in ~/.vexillum/projects/shop-*/tasks, or move it away",
		"warn /nowhere/else: task 0000000000000003: *: mend it in *")
}

func TestCampsWithoutATaskAndTasksWithoutACampAreNamed(t *testing.T) {
	w := newWorld(t)
	p := w.project(w.root).Project
	w.says("camps")
	gone := func(p *state.Project, id string) string {
		return fmt.Sprintf(`,"camp":{"path":%q,"branch":"vx/a-%.8s"}`, p.Join("camps", id), id)
	}
	stands := func(id string) string {
		w.write(p.Join("camps", id, ".git"), "gitdir: x")
		return gone(p, id)
	}
	w.task(p, "0000000000000001", "running", stands("0000000000000001"))
	w.task(p, "0000000000000002", "landed", gone(p, "0000000000000002"))
	w.task(p, "0000000000000003", "landed", stands("0000000000000003"))
	w.task(p, "0000000000000004", "running", `,"dir":"/elsewhere"`)
	w.says("camps", "ok 1, each with its task")
	stands("0000000000000005")
	w.write(p.Join("tasks", "0000000000000005.json"), "{") // it may say anything
	stands("it's")
	w.task(p, "0000000000000006", string(task.Struck), stands("0000000000000006"))
	w.task(p, "0000000000000007", "done", gone(p, "0000000000000007"))
	w.task(p, "0000000000000008", "running", gone(p, "0000000000000008"))
	mine := filepath.Join(w.root, "mine")
	w.write(mine+"/file", "precious")
	w.task(p, "000000000000000a", "done", fmt.Sprintf(`,"camp":{"path":%q,"branch":"main"}`, mine))
	other := w.project("/nowhere/it's").Project
	w.task(other, "0000000000000009", "done", gone(other, "0000000000000009"))
	w.says("camps",
		"warn task 0000000000000007 is done, and its camp */0000000000000007 is gone: vx strike 0000000000000007",
		"warn task 0000000000000008 is running, and its camp */0000000000000008 is gone: vx task show 0000000000000008",
		`warn task 000000000000000a: its record says that its camp is *mine on branch "main", and vx made none there: mend *000000000000000a.json, or move it away`,
		"warn ~/.vexillum/projects/shop-*/camps/0000000000000006 is of task 0000000000000006, which is struck: git -C "+w.root+" worktree remove */0000000000000006",
		`warn ~/.vexillum/projects/shop-*/camps/it's belongs to no task: git -C `+w.root+` worktree remove '*/camps/it'\''s'`,
		`warn task 0000000000000009 of /nowhere/it's is done, and its camp */0000000000000009 is gone: vx strike 0000000000000009 --project '/nowhere/it'\''s'`)
	if _, err := os.Stat(p.Join("camps", "it's", ".git")); err != nil {
		t.Error(err)
	}
}

func TestADispatchThatWasCutShortIsNamed(t *testing.T) {
	w := newWorld(t)
	p := w.project(w.root).Project
	at := func(ago time.Duration, more string) string {
		return fmt.Sprintf(`,"updated_at":%q%s`, time.Now().Add(-ago).Format(time.RFC3339), more)
	}
	w.task(p, "0000000000000001", "pending", at(10*time.Minute, ""))
	w.task(p, "0000000000000002", "pending", at(3*time.Minute, `,"herdr":{"pane":"w1:p2"}`))
	w.task(p, "0000000000000003", "running", at(time.Hour, ""))
	w.says("tasks", "ok 3 known")
	w.task(p, "0000000000000001", "pending", at(16*time.Minute, ""))
	w.task(p, "0000000000000002", "pending", at(6*time.Minute, `,"herdr":{"pane":"w1:p2"}`))
	w.says("tasks",
		"warn task 0000000000000001 is pending since *: its dispatch was cut short: vx strike 0000000000000001",
		"warn task 0000000000000002 is pending since *: its dispatch was cut short: vx strike 0000000000000002")
}
