package daemon

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
)

func TestOfTwoHundredStartersOneStartsOneSentinel(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if out, err := w.command("start").CombinedOutput(); err != nil {
				t.Errorf("start: %v: %s", err, out)
			}
		})
	}
	wg.Wait()
	info := w.running()
	if others := Others(w.dir); len(others) > 0 {
		t.Errorf("sentinel %d, and %v too", info.PID, others)
	}
	if starts := strings.Count(w.log(), "msg="); starts > 0 {
		t.Errorf("the log says\n%s", w.log())
	}
}

func TestOfTwoThatStartAtTheSameInstantOneLives(t *testing.T) {
	w := newWorld(t)
	for range 100 {
		ends := make(chan error, 2)
		start := make(chan bool)
		for range 2 {
			cmd := w.command(command)
			go func() {
				<-start
				ends <- cmd.Run()
			}()
		}
		close(start)
		// The one that does not live says which one does: it can be found by then.
		if err := <-ends; err == nil {
			t.Fatal("one has ended with 0, want 1")
		}
		info, running, err := Look(w.dir)
		if err != nil || !running || info.PID == 0 {
			t.Fatalf("none lives: %v, %v, %v", info, running, err)
		}
		if _, err := Stop(t.Context(), w.dir); err != nil {
			t.Fatal(err)
		}
		if err := <-ends; err != nil {
			t.Fatalf("the one that lived has ended with %v", err)
		}
	}
}

func TestASecondOneNamesTheFirst(t *testing.T) {
	w := newWorld(t)
	info := w.start()
	out, err := w.command(command).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "process "+strconv.Itoa(info.PID)+" is it already") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestASentinelSaysWhoItIs(t *testing.T) {
	w := newWorld(t)
	info := w.start()
	if pid, err := os.ReadFile(w.dir.Join(pidName)); err != nil || string(pid) != strconv.Itoa(info.PID)+"\n" {
		t.Errorf("sentinel.pid holds %q, %v", pid, err)
	}
	data, err := os.ReadFile(w.dir.Join(recordName))
	w.must(err)
	var record struct {
		PID   int
		Start uint64
		Build map[string]any
	}
	w.must(json.Unmarshal(data, &record))
	id, err := proc.Find(record.PID)
	if err != nil || id.Start != record.Start || id != info.ID {
		t.Errorf("the record names %d, %d; found %v, %v", record.PID, record.Start, id, err)
	}
	var st unix.Stat_t
	w.must(unix.Stat(w.program, &st))
	for name, want := range map[string]any{
		"version": "1.2.3", "path": w.program, "device": float64(st.Dev), "inode": float64(st.Ino), "size": float64(st.Size),
	} {
		if record.Build[name] != want {
			t.Errorf("build.%s is %v, want %v", name, record.Build[name], want)
		}
	}
	if record.Build["mtime"] == nil || record.Build["ctime"] == nil {
		t.Errorf("no times in %s", data)
	}
	for _, name := range strings.Fields(w.files()) {
		if fi, err := os.Stat(w.dir.Join(name)); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, fi.Mode(), err)
		}
	}
}

func TestASentinelThatWasAskedToEndLeavesOnlyItsLockAndItsLog(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		w := newWorld(t)
		cmd := w.command(command)
		w.must(cmd.Start())
		w.running()
		w.must(cmd.Process.Signal(sig))
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", sig, err)
		}
		if got := w.files(); got != "sentinel.lock sentinel.log" {
			t.Errorf("%v leaves %s", sig, got)
		}
	}
}

func TestStopEndsTheSentinelAndSaysIfThereIsNone(t *testing.T) {
	w := newWorld(t)
	if _, err := Stop(t.Context(), w.dir); !errors.Is(err, ErrNone) {
		t.Errorf("at first: %v", err)
	}
	info := w.start()
	stopped, err := Stop(t.Context(), w.dir)
	if err != nil || stopped.ID != info.ID || info.Status() != proc.Gone {
		t.Errorf("stopped %v, %v; %s", stopped.ID, err, info.Status())
	}
	if _, err := Stop(t.Context(), w.dir); !errors.Is(err, ErrNone) {
		t.Errorf("at last: %v", err)
	}
}

func TestStopSignalsNobodyWhoIsNoSentinel(t *testing.T) {
	w := newWorld(t)
	data, err := json.Marshal(Info{ID: proc.Self()})
	w.must(err)
	w.must(os.WriteFile(w.dir.Join(recordName), data, 0o600))
	// SIGTERM would end this test.
	if _, err := Stop(t.Context(), w.dir); err == nil || !strings.Contains(err.Error(), "not a sentinel's") {
		t.Errorf("it says %v", err)
	}
}

func TestWhatAKilledSentinelLeftDoesNotCount(t *testing.T) {
	w := newWorld(t)
	cmd := w.command(command)
	w.must(cmd.Start())
	first := w.running()
	w.must(cmd.Process.Kill())
	w.ends(first) // not waited for yet: a zombie is none either
	if info, running, err := Look(w.dir); running || err != nil {
		t.Errorf("%v runs, %v", info, err)
	}
	if second := w.start(); second.ID == first.ID {
		t.Error("it is the first still")
	}
	cmd.Wait()
}

func TestAnUnreadableRecordIsNamedAndTheLockTells(t *testing.T) {
	w := newWorld(t)
	w.must(os.WriteFile(w.dir.Join(recordName), []byte("{"), 0o600))
	if _, running, err := Look(w.dir); running || err == nil {
		t.Errorf("running is %v, %v", running, err)
	}
	info := w.start()
	w.must(os.WriteFile(w.dir.Join(recordName), []byte("{"), 0o600))
	if _, running, err := Look(w.dir); !running || err == nil {
		t.Errorf("running is %v, %v", running, err)
	}
	data, err := json.Marshal(info)
	w.must(err)
	w.must(os.WriteFile(w.dir.Join(recordName), data, 0o600))
}

func TestASentinelEndsWhenItsStateIsGone(t *testing.T) {
	for name, remove := range map[string]func(world){
		"the directory": func(w world) { w.must(os.RemoveAll(w.dir.Path())) },
		"the lock":      func(w world) { w.must(os.Remove(w.dir.Join(lockName))) },
		"another lock": func(w world) {
			w.must(os.WriteFile(w.dir.Join("other"), nil, 0o600))
			w.must(os.Rename(w.dir.Join("other"), w.dir.Join(lockName)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			info := w.start()
			remove(w)
			w.ends(info)
			if _, err := os.Lstat(w.dir.Path()); name == "the directory" && err == nil {
				t.Errorf("the state directory is there again, with %s", w.files())
			}
		})
	}
}

func TestOneWhoseLockWasTakenAwayLeavesItsSuccessorsRecordAlone(t *testing.T) {
	w := newWorld(t)
	held, err := Claim(w.dir, "1")
	w.must(err)
	w.must(os.Remove(w.dir.Join(lockName)))
	info := w.start()
	w.must(held.Release())
	if now, running, err := Look(w.dir); !running || now.ID != info.ID || err != nil {
		t.Errorf("%v, %v, %v", now, running, err)
	}
}

func TestASentinelWhoseLockIsGoneIsOneTooMany(t *testing.T) {
	w := newWorld(t)
	info := w.start()
	h, err := proc.Open(info.ID)
	w.must(err)
	defer h.Close()
	w.must(h.Signal(int(unix.SIGSTOP))) // so that it does not leave by itself
	w.must(os.Remove(w.dir.Join(lockName)))
	w.start2(info)
	if others := Others(w.dir); len(others) != 1 || others[0] != info.ID {
		t.Errorf("others: %v, want %v", others, info.ID)
	}
	w.must(h.Signal(int(unix.SIGCONT)))
	w.ends(info)
}

// start2 starts another one, of which the record tells in the end.
func (w world) start2(first Info) {
	w.Helper()
	if out, err := w.command("start").CombinedOutput(); err != nil {
		w.Fatalf("start: %v: %s", err, out)
	}
	w.eventually("the second sentinel", func() bool {
		info, running, err := Look(w.dir)
		return err == nil && running && info.PID != 0 && info.ID != first.ID
	})
}
