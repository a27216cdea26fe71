//go:build amd64 || arm64

package hook

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/settings"
)

// rests waits until an await has become the program that rests.
func rests(t *testing.T, e awaiter.Entry) {
	t.Helper()
	eventually(t, "the await rests", func() bool { return resting(e) })
}

func resting(e awaiter.Entry) bool {
	args, err := proc.Args(e.Process)
	return err == nil && len(args) == 4 && poller(e.Process.PID)
}

// poller reports whether the process sleeps in the runtime's poller with all that it waits for: a nested epoll.
func poller(pid int) bool {
	n := 0
	for _, to := range descriptors(pid) {
		if to == "anon_inode:[timerfd]" {
			n++
		}
	}
	return n == 2
}

// descriptors are what a process has open, by number.
func descriptors(pid int) map[string]string {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	open := map[string]string{}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			open[e.Name()] = to
		}
	}
	return open
}

// isKept reports whether a descriptor is of those that an await keeps.
func isKept(to string) bool {
	for _, kind := range []string{".lock", ".fifo", "socket:", "[pidfd]"} {
		if strings.Contains(to, kind) {
			return true
		}
	}
	return false
}

// A restCase is an await that rests, and what happens to it then.
type restCase struct {
	name  string
	start func(w *world) *hookProcess
	then  func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry)
}

func plain(w *world) *hookProcess { return w.start("await", stop("s1", false)) }

// The awaits rest side by side: it takes them a tick to come to it.
func TestAnAwaitThatRests(t *testing.T) {
	var sentinel *lock.Lock
	cases := []restCase{
		{"delivers what is put", plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			w.put("the tests are green")
			delivers(t, h.wait(), "the tests are green")
			w.holds(0, 0, 1)
			w.waitFor(0)
		}},
		{"finds what is dropped without a ring", plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			drop(t, w, "dropped.json")
			delivers(t, h.wait(), "by hand")
		}},
		{"finds what is dropped into the forum's box", plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			drop(t, w, "forum/dropped.json")
			delivers(t, h.wait(), "by hand")
		}},
		{"ends when stderr hangs up", plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			h.stderr.Close()
			h.cmd.Wait()
			if got := h.cmd.ProcessState.ExitCode(); got != 0 {
				t.Errorf("it ended with %d", got)
			}
			w.waitFor(0)
		}},
		{"leaves for a younger one", plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			fresh := w.start("await", stop("s2", false))
			quiet(t, h.wait())
			w.put("for the younger")
			delivers(t, fresh.wait(), "for the younger")
			if log := w.log(); !strings.Contains(log, "a younger one waits") || strings.Contains(log, "SIGTERM") {
				t.Errorf("it did not leave by itself: %s", log)
			}
		}},
		{"ends when its registration is gone, without a ring", plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			records, err := filepath.Glob(w.dir.Awaiters() + "/*.json")
			if err != nil || len(records) != 1 {
				t.Fatal(records, err)
			}
			os.Remove(records[0])
			quiet(t, h.wait())
		}},
		{"rests again after a ring for nothing", plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			before := descriptors(e.Process.PID)
			e.Tell()
			eventually(t, "it is awake", func() bool { return !resting(e) })
			rests(t, e)
			if after := descriptors(e.Process.PID); len(after) != len(before) {
				t.Errorf("it had %v open, now %v", before, after)
			}
			w.put("still here")
			delivers(t, h.wait(), "still here")
		}},
		{"ends with its parent", func(w *world) *hookProcess {
			cmd := hookCommand("sh", "-c", `"$0" sentinel await & read line`, os.Args[0])
			cmd.Dir, cmd.Env = w.project.Root, w.with()
			return w.launch(cmd, "…")
		}, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			h.in.Close()
			gone(t, e.Process)
			w.waitFor(0)
		}},
		{"asks for a sentinel as soon as none runs", func(w *world) *hookProcess {
			l, err := lock.Try(filepath.Join(w.home, "sentinel.lock"))
			if err != nil {
				t.Fatal(err)
			}
			sentinel = l
			return w.start("await", stop("s1", false), "VXTEST_SENTINEL="+filepath.Join(w.home, "sentinel.lock"))
		}, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			asked := func() bool { _, err := os.Stat(filepath.Join(w.home, "sentinel.lock.asked")); return err == nil }
			if asked() {
				t.Error("it asked though one ran")
			}
			if err := sentinel.Unlock(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it asks", asked)
			w.put("still here")
			delivers(t, h.wait(), "still here")
		}},
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		cases = append(cases, restCase{"ends by itself on " + sig.String(), plain, func(t *testing.T, w *world, h *hookProcess, e awaiter.Entry) {
			syscall.Kill(e.Process.PID, sig)
			quiet(t, h.wait())
			w.waitFor(0)
			if log := w.log(); !strings.Contains(log, "a signal") {
				t.Errorf("it ended for another reason: %s", log)
			}
		}})
	}
	worlds, hooks, entries := make([]*world, len(cases)), make([]*hookProcess, len(cases)), make([]awaiter.Entry, len(cases))
	for i, c := range cases {
		worlds[i] = newWorld(t)
		hooks[i] = c.start(worlds[i])
		entries[i] = worlds[i].waitFor(1)[0]
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rests(t, entries[i])
			worlds[i].t = t
			c.then(t, worlds[i], hooks[i], entries[i])
		})
	}
}

// drop puts a wake into the queue as a script does.
func drop(t *testing.T, w *world, name string) {
	t.Helper()
	temp := filepath.Join(w.home, "wake")
	err := os.WriteFile(temp, []byte(`{"title":"by hand"}`), 0o600)
	if err := errors.Join(err, os.Rename(temp, w.project.Join("wakes", name))); err != nil {
		t.Fatal(err)
	}
}

func TestARestIsTheSameAwaitToEverybody(t *testing.T) {
	w := newWorld(t)
	c := w.client(1, stop("s1", false), "dash", "-c", settings.Command)
	before := w.waitFor(1)[0]
	open := descriptors(before.Process.PID)
	rests(t, before)
	after := w.waitFor(1)[0]
	if before.Process != after.Process || before.Client != after.Client {
		t.Errorf("it was %+v, and is %+v", before.Record, after.Record)
	}
	args, err := proc.Args(after.Process)
	if err != nil || !slices.Equal(args[1:3], []string{"sentinel", "await"}) {
		t.Errorf("its command line is %q, %v", args, err)
	}
	if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", after.Process.PID)); string(comm) != "vx\n" {
		t.Errorf("it is called %q, %v", comm, err)
	}
	maps.DeleteFunc(open, func(_, to string) bool { return !isKept(to) })
	now := descriptors(after.Process.PID)
	maps.DeleteFunc(now, func(_, to string) bool { return !isKept(to) })
	if !maps.Equal(open, now) {
		t.Errorf("it had %v open, and has %v", open, now)
	}
	c.signal(syscall.SIGKILL)
	gone(t, after.Process)
	w.waitFor(0)
}

// The program may be replaced or removed while its await waits: what goes on is what was started.
func TestAnAwaitRestsAlthoughItsProgramIsGone(t *testing.T) {
	w := newWorld(t)
	h, bin := w.ownProgram()
	e := w.waitFor(1)[0]
	if err := os.Remove(bin); err != nil {
		t.Fatal(err)
	}
	rests(t, e)
	w.put("still here")
	delivers(t, h.wait(), "still here")
}

func TestAnAwaitThatCannotRestGoesOnAsItIs(t *testing.T) {
	w := newWorld(t)
	h, bin := w.ownProgram()
	e := w.waitFor(1)[0]
	before := descriptors(e.Process.PID)
	if err := os.Chmod(bin, 0o644); err != nil {
		t.Fatal(err)
	}
	tried := func() int { return strings.Count(w.log(), "the await goes on in the program that it started in") }
	eventually(t, "it has tried", func() bool { return tried() > 0 })
	for fd, to := range before {
		if n, _ := strconv.Atoi(fd); n < 3 || !isKept(to) {
			continue
		}
		flags, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", e.Process.PID, fd))
		if err != nil {
			t.Fatal(err)
		}
		// What it keeps over an exec is closed over any other again.
		var bits uint64
		for line := range strings.Lines(string(flags)) {
			if octal, ok := strings.CutPrefix(line, "flags:"); ok {
				bits, _ = strconv.ParseUint(strings.TrimSpace(octal), 8, 64)
			}
		}
		if bits&unix.O_CLOEXEC == 0 {
			t.Errorf("descriptor %s (%s) would be inherited: %q", fd, to, flags)
		}
	}
	w.put("still here")
	delivers(t, h.wait(), "still here")
	if n := tried(); n != 1 {
		t.Errorf("it tried %d times", n)
	}
}

// ownProgram starts an await from a file of its own.
func (w *world) ownProgram() (*hookProcess, string) {
	w.t.Helper()
	bin := filepath.Join(w.home, "vx")
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(bin, data, 0o755)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := hookCommand(bin, "sentinel", "await")
	cmd.Dir, cmd.Env = w.project.Root, w.with()
	return w.launch(cmd, stop("s1", false)), bin
}

func TestWhatWaitsKeepsAnAwaitFromResting(t *testing.T) {
	w := newWorld(t)
	n := &note{dir: w.project.Dir, project: w.project.Root, record: filepath.Join(w.home, "r"), parent: os.Getppid()}
	if err := os.WriteFile(n.record+".json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if at := n.wait(); !at.Quiet() {
		t.Error("an empty queue is not quiet")
	}
	w.put("muted, say")
	if at := n.wait(); at.Quiet() {
		t.Error("a queue with a wake is quiet")
	}
}

func TestWhatIsNoNoteEndsSilently(t *testing.T) {
	w := newWorld(t)
	for _, arg := range []string{"3", "99"} {
		cmd := hookCommand(os.Args[0], "sentinel", "await", arg)
		cmd.Env = w.with()
		quiet(t, w.launch(cmd, "").wait())
	}
	for _, arg := range []string{"0", "2", "-3", "x", ""} {
		if IsNote(arg) {
			t.Errorf("%q is taken for a note", arg)
		}
	}
}

// A shell that runs something in the background, and nohup, start it so.
func TestASignalThatWasIgnoredAtTheStartEndsAnAwait(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTERM} {
		w := newWorld(t)
		cmd := hookCommand("sh", "-c", `trap "" INT HUP QUIT TERM; exec "$0" sentinel await`, os.Args[0])
		cmd.Dir, cmd.Env = w.project.Root, w.with()
		h := w.launch(cmd, stop("s1", false))
		syscall.Kill(w.waitFor(1)[0].Process.PID, sig)
		quiet(t, h.wait())
		if log := w.log(); !strings.Contains(log, "a signal") {
			t.Errorf("%v: it ended for another reason: %s", sig, log)
		}
	}
}

// What a start of the sentinel leaves is for its parent to bury, which the next program would not know.
func TestAChildKeepsAnAwaitFromResting(t *testing.T) {
	w, free := newWorld(t), newWorld(t)
	cmd := hookCommand("sh", "-c", `sleep 1000 <&- >&- 2>&- & echo $! >"$HOME/child"; exec "$0" sentinel await`, os.Args[0])
	cmd.Dir, cmd.Env = w.project.Root, w.with()
	h := w.launch(cmd, stop("s1", false))
	busy := w.waitFor(1)[0]
	text, err := os.ReadFile(filepath.Join(w.home, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(child, syscall.SIGKILL)
	plain(free) // begins later
	rests(t, free.waitFor(1)[0])
	if args, err := proc.Args(busy.Process); err != nil || len(args) != 3 {
		t.Errorf("it rests: %q, %v", args, err)
	}
	w.put("still here")
	delivers(t, h.wait(), "still here")
}
