package loop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/proc"
	"vx/internal/state"
)

// TestMain lets the test binary be the owner of a run, that its parent kills.
func TestMain(m *testing.M) {
	if os.Getenv("LOOP_TEST_OWNER") != "" {
		if err := beOwner(os.Args[1], os.Args[2], os.Getenv("LOOP_TEST_OWNER")); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// beOwner begins a run with a worker, says so, and waits for its end; or it dies in the middle of a step.
func beOwner(home, root, dieAt string) error {
	if step, what, ok := strings.Cut(dieAt, " "); ok {
		atomicfile.Before = func(s, path string) error {
			if s == step && filepath.Base(path) == what {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		}
	}
	d, err := state.LookAt(home)
	if err != nil {
		return err
	}
	r, err := Create(d.Project(root), Plan{Kind: "green", Tree: root})
	if err != nil {
		return err
	}
	worker := exec.Command("sleep", "600")
	if err := errors.Join(r.Begin(1), r.Start(worker)); err != nil {
		return err
	}
	fmt.Println(r.Dir)
	return r.Wait(worker)
}

// owner is another process that has a run with a worker.
type owner struct {
	cmd    *exec.Cmd
	dir    string // of the run
	worker proc.ID
}

func (w *world) owner(dieAt string) *exec.Cmd {
	w.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(exe, w.p.State().Path(), w.p.Root)
	cmd.Env = append(os.Environ(), "LOOP_TEST_OWNER="+dieAt)
	cmd.Stderr = w.t.Output()
	return cmd
}

func (w *world) live() *owner {
	w.t.Helper()
	cmd := w.owner("not")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	o := &owner{cmd: cmd}
	w.t.Cleanup(func() { o.kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error") {
		w.t.Fatalf("%q, %v", line, err)
	}
	o.dir = strings.TrimSuffix(line, "\n")
	record, err := readRecord(o.dir)
	if err != nil || record == nil || record.Worker == nil {
		w.t.Fatalf("%+v, %v", record, err)
	}
	o.worker = record.Worker.ID
	w.t.Cleanup(func() {
		if o.worker.Status() == proc.Running {
			syscall.Kill(-o.worker.PID, syscall.SIGKILL)
		}
	})
	return o
}

func (o *owner) kill() {
	o.cmd.Process.Kill()
	o.cmd.Wait()
}

func TestARunSaysWhoseItIs(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	f := w.only()
	owner, alive := f.Owner()
	if f.ID != r.ID || f.Kind != "green" || f.Title != "mend the till" || f.State != Running || f.Limit != 8 || owner != proc.Self() || !alive {
		t.Errorf("%+v", f)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(r.Dir, recordFile))), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kind", "command", "pid", "start", "boot_id", "started_at", "heartbeat_at", "title", "limits", "tree"} {
		if fields[name] == nil {
			t.Errorf("run.json has no %s: %v", name, fields)
		}
	}
	if fi, err := os.Stat(r.Dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

func TestTheHeartbeatKeepsWhatItDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.create(w.plan())
		path := filepath.Join(r.Dir, recordFile)
		r.mu.Lock()
		first := r.record.Heartbeat
		r.mu.Unlock()
		text := strings.Replace(read(t, path), `"limits": {`, `"limits": {"naps": 3, `, 1)
		write(t, path, strings.Replace(text, "{", `{"mood": ["fine"], `, 1))
		time.Sleep(heartbeat + time.Second)
		synctest.Wait()
		record, data, err := readRecordFile(r.Dir)
		if err != nil || !record.Heartbeat.Equal(first.Add(heartbeat)) {
			t.Errorf("heartbeat %v, want 30 s after %v; %v", record.Heartbeat, first, err)
		}
		for _, kept := range []string{`"mood"`, `"fine"`, `"naps"`, `"iterations"`} {
			if !strings.Contains(string(data), kept) {
				t.Errorf("%s is lost:\n%s", kept, data)
			}
		}
		if err := r.Finish(Done, ""); err != nil {
			t.Fatal(err)
		}
		last := read(t, path)
		time.Sleep(time.Hour)
		if read(t, path) != last {
			t.Error("it beats on after the end")
		}
	})
}

func TestARunEndsOnce(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	var all sync.WaitGroup
	for _, reason := range []Reason{Done, Failed, Stopped, Interrupted} {
		all.Go(func() {
			if err := r.Finish(reason, ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text := progressOf(t, r.Dir)
	if strings.Count(text, reasonKey) != 1 || strings.Count(text, complete) != 1 {
		t.Errorf("%s", text)
	}
	if err := r.Note(Field{"task", "late"}); err == nil {
		t.Error("it writes on after its end")
	}
	if f := w.only(); f.State != Ended {
		t.Errorf("%+v", f)
	}
}

func TestAnEndOfAnotherHandStaysTheOnlyOne(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	if err := add(r.Dir, marker(Failed, nil), true); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(Done, "late"); err != nil {
		t.Fatal(err)
	}
	if f := w.only(); f.Reason != Failed || strings.Count(progressOf(t, r.Dir), complete) != 1 {
		t.Errorf("%+v", f)
	}
	w.create(w.plan())
}

func TestNothingIsWrittenThroughALink(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	path, victim := filepath.Join(r.Dir, progressFile), filepath.Join(w.p.Root, "victim")
	write(t, victim, "")
	if err := errors.Join(os.Remove(path), os.Symlink(victim, path)); err != nil {
		t.Fatal(err)
	}
	if err := r.Log("text"); err == nil || read(t, victim) != "" {
		t.Errorf("%v, %q", err, read(t, victim))
	}
}

func TestAnEndThatCannotBeWrittenIsNoEnd(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	path := filepath.Join(r.Dir, progressFile)
	aside := path + ".aside"
	if err := errors.Join(os.Rename(path, aside), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(Done, ""); err == nil {
		t.Fatal("no error")
	}
	if err := errors.Join(os.Remove(path), os.Rename(aside, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(w.p, w.plan()); err == nil {
		t.Error("the tree is free while the run goes on")
	}
	if err := r.Finish(Done, ""); err != nil {
		t.Fatal(err)
	}
	if f := w.only(); f.Reason != Done {
		t.Errorf("%+v", f)
	}
}

func TestATreeHasOneLoop(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	_, err := Create(w.p, w.plan())
	busy, ok := errors.AsType[*Busy](err)
	if !ok || busy.Run != r.ID || busy.PID != os.Getpid() || busy.Project != w.p.Root || !strings.Contains(err.Error(), r.ID) {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(busy.Hint(), "vx loop stop --run "+r.ID) {
		t.Errorf("hint: %s", busy.Hint())
	}
	// From another project, too: what counts is the tree.
	other := w.p.State().Project(filepath.Dir(w.p.Root))
	if _, err := Create(other, w.plan()); err == nil {
		t.Error("another project has a loop on the same tree")
	}
	elsewhere := w.plan()
	elsewhere.Tree = filepath.Join(w.p.Root, "worktree")
	second := w.create(elsewhere)
	if err := errors.Join(r.Finish(Done, ""), second.Finish(Done, "")); err != nil {
		t.Fatal(err)
	}
	w.create(w.plan())
}

func TestAGivenDirectoryIsListedAndUsedOnce(t *testing.T) {
	w := newWorld(t)
	plan := w.plan()
	plan.Dir = filepath.Join(t.TempDir(), "My run")
	r := w.create(plan)
	if f := w.only(); f.ID != r.ID || f.Kind != "green" {
		t.Errorf("%+v", f)
	}
	if err := r.Finish(Done, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(w.p, plan); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	// The link is no run of its own, nor is one that leads nowhere.
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	if all := w.list(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

func TestTheNameOfADirectoryIsNoEnd(t *testing.T) {
	w := newWorld(t)
	plan := w.plan()
	plan.Dir = filepath.Join(originals(w.p.Root), "promise=COMPLETE")
	r := w.create(plan)
	shell := filepath.Join(originals(w.p.Root), "completion_reason=DONE promise=COMPLETE")
	if err := os.Mkdir(shell, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(shell); err != nil {
		t.Fatal(err)
	}
	if text := progressOf(t, r.Dir) + progressOf(t, shell); strings.Contains(text, complete) {
		t.Errorf("%s", text)
	}
}

func TestARunThatWasKilledIsMarkedOnceByItsFinders(t *testing.T) {
	w := newWorld(t)
	o := w.live()
	if f := w.only(); f.State != Running {
		t.Fatalf("%+v", f)
	}
	o.kill()
	var all sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for range 16 {
		all.Go(func() {
			found, bad := List(w.p.Root, w.p)
			if len(bad) > 0 || len(found) != 1 || found[0].State != Dead || found[0].Reason != Crashed {
				t.Errorf("%+v, %v", found, bad)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if found[0].Fresh {
				fresh++
			}
		})
	}
	all.Wait()
	text := progressOf(t, o.dir)
	if fresh != 1 || strings.Count(text, reasonKey+"CRASHED\n"+complete) != 1 || strings.Count(text, complete) != 1 {
		t.Errorf("%d found it first:\n%s", fresh, text)
	}
	// The tree is free, and its worker can still be ended.
	f := w.only()
	if id, ok := f.Worker(); !ok || id != o.worker {
		t.Errorf("its worker is %v, %v", id, ok)
	}
	if ended, err := f.EndWorker(); !ended || err != nil {
		t.Errorf("%v, %v", ended, err)
	}
	eventually(t, "the worker's end", func() bool { return o.worker.Status() == proc.Gone })
	w.create(w.plan())
}

// A crash of Create leaves nothing that a finder takes for active, and nothing in the way of the next run.
func TestAnOwnerThatIsKilledAtAnyStepLeavesNoActiveRun(t *testing.T) {
	for _, step := range []string{"create run.json", "sync run.json", "rename run.json"} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t)
			cmd := w.owner(step)
			if out, err := cmd.Output(); err == nil || len(out) > 0 {
				t.Fatalf("it lived: %q, %v", out, err)
			}
			for _, f := range w.list() {
				if f.Active() {
					t.Errorf("active: %+v", f)
				}
			}
			w.create(w.plan())
		})
	}
	t.Run("after run.json", func(t *testing.T) {
		w := newWorld(t)
		o := w.live()
		o.kill()
		if err := os.Remove(filepath.Join(o.dir, progressFile)); err != nil {
			t.Fatal(err)
		}
		if f := w.only(); f.State != Dead || !strings.HasSuffix(progressOf(t, o.dir), "\n\ncompletion_reason=CRASHED\npromise=COMPLETE\n") {
			t.Errorf("%+v", f)
		}
	})
}

func TestWhoIsDeadIsSaidByTheProcessAndElseByTheHeartbeat(t *testing.T) {
	now := time.Now()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	self := proc.Self()
	for name, c := range map[string]struct {
		record Record
		want   bool
	}{
		"lives":                        {Record{ID: self, BootID: proc.BootID(), Host: host}, false},
		"another with its pid":         {Record{ID: proc.ID{PID: self.PID, Start: self.Start + 1}, BootID: proc.BootID(), Host: host, Heartbeat: now}, true},
		"of another boot":              {Record{ID: self, BootID: "other", Host: host, Heartbeat: now}, true},
		"of another machine, beats":    {Record{ID: proc.ID{PID: 1 << 30, Start: 1}, BootID: "other", Host: "x" + host, Heartbeat: now.Add(-silence + time.Minute)}, false},
		"of another machine, is quiet": {Record{ID: proc.ID{PID: 1 << 30, Start: 1}, BootID: "other", Host: "x" + host, Heartbeat: now.Add(-silence - time.Minute)}, true},
		"not known, beats":             {Record{ID: proc.ID{PID: self.PID}, BootID: proc.BootID(), Host: host, Heartbeat: now}, false},
	} {
		if got := c.record.gone(now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnOwnerThatHoldsTheLockIsNotBuried(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	path := filepath.Join(r.Dir, recordFile)
	// As from another pid namespace: its pid says nothing here.
	write(t, path, strings.Replace(read(t, path), fmt.Sprintf(`"pid": %d`, os.Getpid()), `"pid": 999999999`, 1))
	if f := w.only(); f.State != Running || !f.Active() {
		t.Errorf("%+v", f)
	}
	if err := r.Finish(Done, ""); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(progressOf(t, r.Dir), complete); n != 1 {
		t.Errorf("%d ends", n)
	}
}

func TestOfTheWorkersGroupNothingIsLeft(t *testing.T) {
	w := newWorld(t)
	r := w.create(w.plan())
	pids := filepath.Join(r.Dir, "pids")
	// The child ignores SIGTERM, and outlives its leader.
	cmd := exec.Command("sh", "-c", `sh -c 'trap "" TERM; echo $$ >"$0.new"; mv "$0.new" "$0"; while :; do sleep 1; done' "$0" & wait`, pids)
	if err := r.Start(cmd); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- r.Wait(cmd) }()
	eventually(t, "the worker's child", func() bool { _, err := os.Stat(pids); return err == nil })
	var pid int
	if _, err := fmt.Sscan(read(t, pids), &pid); err != nil {
		t.Fatal(err)
	}
	child, err := proc.Find(pid)
	if err != nil {
		t.Fatal(err)
	}
	f := w.only()
	if ended, err := f.EndWorker(); !ended || err != nil {
		t.Errorf("%v, %v", ended, err)
	}
	eventually(t, "the child's end", func() bool { return child.Status() == proc.Gone })
	if err := <-waited; err == nil {
		t.Error("the worker ended well")
	}
	if record, _ := readRecord(r.Dir); record.Worker != nil {
		t.Errorf("%+v is still its worker", record.Worker)
	}
}

func TestNobodyIsEndedWhoIsNotTheWorker(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	id, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	for name, record := range map[string]Record{
		"started later":      {Host: host, BootID: proc.BootID(), Worker: &Worker{ID: proc.ID{PID: id.PID, Start: id.Start + 1}}},
		"start not known":    {Host: host, BootID: proc.BootID(), Worker: &Worker{ID: proc.ID{PID: id.PID}}},
		"another boot":       {Host: host, BootID: "other", Worker: &Worker{ID: id}},
		"boot not known":     {Host: host, Worker: &Worker{ID: id}},
		"another machine":    {Host: "x" + host, BootID: proc.BootID(), Worker: &Worker{ID: id}},
		"leads no group":     {Host: host, BootID: proc.BootID(), Worker: &Worker{ID: proc.Self()}},
		"no worker at all":   {Host: host, BootID: proc.BootID()},
		"it is pid 0":        {Host: host, BootID: proc.BootID(), Worker: &Worker{}},
		"it is all, pid -1":  {Host: host, BootID: proc.BootID(), Worker: &Worker{ID: proc.ID{PID: -1, Start: 1}}},
		"it is init, pid 1":  {Host: host, BootID: proc.BootID(), Worker: &Worker{ID: proc.ID{PID: 1, Start: 12345}}},
		"it is a group, neg": {Host: host, BootID: proc.BootID(), Worker: &Worker{ID: proc.ID{PID: -id.PID, Start: id.Start}}},
	} {
		dir := t.TempDir()
		record.Kind, record.ID = "green", proc.ID{PID: 1 << 30, Start: 1}
		if err := errors.Join(record.save(dir), add(dir, marker(Crashed, nil), false)); err != nil {
			t.Fatal(err)
		}
		if name == "leads no group" && syscall.Getpgrp() == os.Getpid() {
			continue
		}
		f := Found{ID: "r", Dir: dir, record: &record}
		if err := f.Endable(); (err != nil) != (name == "another machine") {
			t.Errorf("%s: %v", name, err)
		}
		if ended, _ := f.EndWorker(); ended || id.Status() != proc.Running {
			t.Fatalf("%s: ended %v, the process is %v", name, ended, id.Status())
		}
	}
}
