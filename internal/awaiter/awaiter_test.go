package awaiter

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
	"vx/internal/state"
)

// The test binary is an awaiter too, when it is called "sentinel await ROOT": it registers, says so, and lives until its
// standard input ends.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "sentinel" {
		if err := child(os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(root string) error {
	dir, err := state.Open()
	if err != nil {
		return err
	}
	a, err := Register(dir, dir.Project(root), Record{Process: proc.Self(), Project: root})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return a.Close()
}

// start runs an awaiter in a process of its own.
func start(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, root)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("child says %q, %v", line, err)
	}
	return cmd
}

func open(t *testing.T) *state.Dir {
	t.Helper()
	t.Setenv("VEXILLUM_HOME", filepath.Join(t.TempDir(), "state"))
	dir, err := state.Open()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func register(t *testing.T, dir *state.Dir, root string, start uint64) *Awaiter {
	t.Helper()
	id := proc.ID{PID: os.Getpid(), Start: start}
	a, err := Register(dir, dir.Project(root), Record{Process: id, Project: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func rings(a *Awaiter) bool {
	fds := []unix.PollFd{{Fd: int32(a.FD()), Events: unix.POLLIN}}
	n, _ := unix.Poll(fds, 0)
	return n == 1
}

// sorted are the awaiters in the order in which they are rung.
func sorted(all ...*Awaiter) []*Awaiter {
	slices.SortFunc(all, func(a, b *Awaiter) int { return strings.Compare(a.base, b.base) })
	return all
}

func left(t *testing.T, dir *state.Dir) []string {
	t.Helper()
	names, err := readNames(dir.Awaiters())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestTheBellRingsFromRegistrationOnUntilItIsAnswered(t *testing.T) {
	dir := open(t)
	a := register(t, dir, "/p", 1)
	if rings(a) {
		t.Fatal("a new bell rings")
	}
	Ring(dir, dir.Project("/p"))
	if !rings(a) {
		t.Fatal("the bell does not ring")
	}
	a.Answer()
	if rings(a) {
		t.Fatal("an answered bell rings")
	}
}

func TestEachRingGoesToAnAwaiterThatIsNotRungYet(t *testing.T) {
	dir := open(t)
	p := dir.Project("/p")
	all := sorted(register(t, dir, "/p", 1), register(t, dir, "/p", 2), register(t, dir, "/p", 3))
	other := register(t, dir, "/other", 4)
	for i := range 5 {
		Ring(dir, p)
		for j, a := range all {
			if rings(a) != (j <= i) {
				t.Errorf("after %d rings awaiter %d: rings is %v", i+1, j, rings(a))
			}
		}
	}
	if rings(other) {
		t.Error("another project's awaiter rings")
	}
	for _, a := range all {
		if n, err := unix.IoctlGetInt(a.FD(), fionread); err != nil || n != 1 {
			t.Errorf("the doorbell holds %d bytes (%v), want 1", n, err)
		}
	}
}

func TestABellThatIsPassedOnGoesOnlyForward(t *testing.T) {
	dir := open(t)
	all := sorted(register(t, dir, "/p", 1), register(t, dir, "/p", 2), register(t, dir, "/p", 3))
	all[1].RingAfter()
	if rings(all[0]) || rings(all[1]) || !rings(all[2]) {
		t.Error("passed on from the second, it does not ring the third alone")
	}
	all[2].Answer()
	all[2].RingAfter()
	for i, a := range all {
		if rings(a) {
			t.Errorf("passed on from the last, it rings %d", i)
		}
	}
}

func TestRingPassesOverTheDead(t *testing.T) {
	dir := open(t)
	var dead []*exec.Cmd
	for range 3 {
		dead = append(dead, start(t, "/p", "sentinel", "await"))
	}
	a := register(t, dir, "/p", 1)
	for _, cmd := range dead {
		cmd.Process.Kill()
		cmd.Wait()
	}
	Ring(dir, dir.Project("/p"))
	if !rings(a) {
		t.Error("the living awaiter is not rung")
	}
}

func TestTellRingsThisAwaiterEvenIfItRingsAlready(t *testing.T) {
	dir := open(t)
	a, b := register(t, dir, "/p", 1), register(t, dir, "/p", 2)
	list, err := List(dir, nil)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	list[1].Tell()
	list[1].Tell()
	if rings(a) || !rings(b) {
		t.Error("not the second one alone rings")
	}
}

func TestAFileThatIsNoFIFOIsNotWrittenInto(t *testing.T) {
	dir := open(t)
	p := dir.Project("/p")
	file := dir.Awaiters() + "/" + p.ID() + "-1-00000000.fifo"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Ring(dir, p)
	if data, err := os.ReadFile(file); err != nil || len(data) != 0 {
		t.Errorf("the file holds %q", data)
	}
}

func TestListShowsTheLivingOldestFirst(t *testing.T) {
	dir := open(t)
	for _, at := range []uint64{3, 1, 2} {
		register(t, dir, "/p", at)
	}
	register(t, dir, "/q", 9)
	list, err := List(dir, dir.Project("/p"))
	if err != nil {
		t.Fatal(err)
	}
	var starts []uint64
	for _, e := range list {
		starts = append(starts, e.Process.Start)
	}
	if !slices.Equal(starts, []uint64{1, 2, 3}) {
		t.Errorf("start times %v", starts)
	}
	if all, err := List(dir, nil); err != nil || len(all) != 4 {
		t.Errorf("all projects: %d, %v", len(all), err)
	}
}

func TestWhoeverListsRemovesWhatADeadAwaiterLeft(t *testing.T) {
	dir := open(t)
	cmd := start(t, "/p", "sentinel", "await")
	if got := left(t, dir); len(got) != 3 {
		t.Fatalf("a living awaiter has %q", got)
	}
	if list, err := List(dir, nil); err != nil || len(list) != 1 || !list[0].Live() {
		t.Fatal(list, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if list, err := List(dir, nil); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	if got := left(t, dir); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	dir := open(t)
	a := register(t, dir, "/p", 1)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := left(t, dir); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
}

func TestAnAwaiterInTheMakingIsLeftAloneForAMinute(t *testing.T) {
	dir := open(t)
	base := dir.Awaiters() + "/" + dir.Project("/p").ID() + "-1-00000000"
	parts := []string{base + ".lock", temp(base + ".fifo"), base + ".fifo", temp(base + ".json")}
	for _, path := range parts {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * beingMade)
	for i, path := range parts {
		if _, err := List(dir, nil); err != nil || len(left(t, dir)) != len(parts) {
			t.Fatalf("with %d old files, left: %q, %v", i, left(t, dir), err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := List(dir, nil); err != nil || len(left(t, dir)) != 0 {
		t.Errorf("left: %q, %v", left(t, dir), err)
	}
}

func TestFilesOfOthersStayInTheRegistry(t *testing.T) {
	dir := open(t)
	id := dir.Project("/p").ID()
	want := []string{"notes.json", id + "-x-00000000.json", id + "-1-0000.lock", id + "-1-00000000.txt", "UPPERCAS-1-00000000.json"}
	slices.Sort(want)
	old := time.Now().Add(-time.Hour)
	for _, name := range want {
		path := filepath.Join(dir.Awaiters(), name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := List(dir, nil); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	if got := left(t, dir); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

func TestALivingAwaitersUnreadableRecordIsNamedAndKept(t *testing.T) {
	for _, content := range []string{"{", `{"process":{"pid":1}}`} {
		dir := open(t)
		a := register(t, dir, "/p", 1)
		if err := os.WriteFile(a.base+".json", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := List(dir, nil); err == nil || len(list) != 0 {
			t.Errorf("%s: %v, %v", content, list, err)
		}
		if got := left(t, dir); len(got) != 3 {
			t.Errorf("left: %q", got)
		}
	}
}

func TestNewcomersAreToldOnce(t *testing.T) {
	dir := open(t)
	register(t, dir, "/other", 7)
	register(t, dir, "/p", 1)
	a := register(t, dir, "/p", 2)
	count := func() int {
		t.Helper()
		fresh, err := a.Newcomers()
		if err != nil {
			t.Fatal(err)
		}
		return len(fresh)
	}
	if n := count(); n != 1 {
		t.Errorf("at first %d, want 1", n)
	}
	register(t, dir, "/p", 3)
	register(t, dir, "/p", 4)
	if n := count(); n != 2 {
		t.Errorf("then %d, want 2", n)
	}
	if n := count(); n != 0 {
		t.Errorf("at last %d, want 0", n)
	}
}

func TestAnAwaiterLearnsThatItsRegistrationIsGone(t *testing.T) {
	dir := open(t)
	a := register(t, dir, "/p", 1)
	if _, err := a.Newcomers(); err != nil {
		t.Fatal(err)
	}
	os.Remove(a.base + ".json")
	if _, err := a.Newcomers(); !errors.Is(err, ErrUnregistered) {
		t.Errorf("without its record: %v", err)
	}
	os.RemoveAll(dir.Awaiters())
	if _, err := a.Newcomers(); !errors.Is(err, ErrUnregistered) {
		t.Errorf("without the registry: %v", err)
	}
}

func TestRecordsOfOtherClientsAreNotRead(t *testing.T) {
	dir := open(t)
	p := dir.Project("/p")
	of := func(client proc.ID) *Awaiter {
		t.Helper()
		a, err := Register(dir, p, Record{Process: proc.ID{PID: os.Getpid(), Start: 1}, Project: "/p", Client: client})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	one, two := proc.ID{PID: 10, Start: 5}, proc.ID{PID: 10, Start: 6}
	mine, own, unknown := of(one), of(one), of(proc.ID{})
	for _, a := range []*Awaiter{of(two), of(two)} {
		if err := os.WriteFile(a.base+".json", []byte("unreadable"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := mine.Newcomers()
	if err != nil || len(fresh) != 2 {
		t.Fatal(fresh, err)
	}
	for _, e := range fresh {
		if e.base != own.base && e.base != unknown.base {
			t.Errorf("%s is of another client", e.base)
		}
	}
	if _, err := unknown.Newcomers(); err == nil {
		t.Error("one whose client is not known must read them all")
	}
}

func TestASampleIsBoundedAndReachesEverybody(t *testing.T) {
	dir := open(t)
	const many = 9
	for i := range many {
		register(t, dir, fmt.Sprintf("/p%d", i), uint64(i+1))
	}
	seen := map[string]bool{}
	for range 200 {
		list, err := Sample(dir, 4)
		if err != nil || len(list) != 4 {
			t.Fatal(list, err)
		}
		for _, e := range list {
			seen[e.Project] = true
		}
	}
	if len(seen) != many {
		t.Errorf("it reached %d of %d", len(seen), many)
	}
	if list, err := Sample(dir, 100); err != nil || len(list) != many {
		t.Errorf("a large sample has %d of %d, %v", len(list), many, err)
	}
	dead := start(t, "/dead", "sentinel", "await")
	dead.Process.Kill()
	dead.Wait()
	if list, err := Sample(dir, 100); err != nil || len(list) != many || len(left(t, dir)) != 3*many {
		t.Errorf("with a dead one it has %d, and %d files are left, %v", len(list), len(left(t, dir)), err)
	}
}

func TestAQuietRegistryIsNotReadAgain(t *testing.T) {
	dir := open(t)
	a := register(t, dir, "/p", 1)
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir.Awaiters(), long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Newcomers(); err != nil {
		t.Fatal(err)
	}
	register(t, dir, "/p", 2)
	if err := os.Chtimes(dir.Awaiters(), long, long); err != nil {
		t.Fatal(err)
	}
	if fresh, err := a.Newcomers(); err != nil || len(fresh) != 0 {
		t.Error("it was read though its time had not changed", fresh, err)
	}
	now := time.Now()
	if err := os.Chtimes(dir.Awaiters(), now, now); err != nil {
		t.Fatal(err)
	}
	if fresh, err := a.Newcomers(); err != nil || len(fresh) != 1 {
		t.Error("it was not read though its time had changed", fresh, err)
	}
}

func TestSameClientGoesByTheProcessAndOnlyWithoutOneByTheSession(t *testing.T) {
	one, two := proc.ID{PID: 10, Start: 5}, proc.ID{PID: 10, Start: 6}
	for _, c := range []struct {
		name string
		a, b Record
		want bool
	}{
		{"one process, session changed by /clear", Record{Client: one, Session: "a"}, Record{Client: one, Session: "b"}, true},
		{"one session in two terminals", Record{Client: one, Session: "a"}, Record{Client: two, Session: "a"}, false},
		{"no process known", Record{Session: "a"}, Record{Session: "a"}, true},
		{"one of the processes known", Record{Client: one, Session: "a"}, Record{Session: "a"}, true},
		{"nothing known", Record{}, Record{}, false},
		{"two projects", Record{Client: one, Project: "/p"}, Record{Client: one, Project: "/q"}, false},
	} {
		if c.a.SameClient(c.b) != c.want || c.b.SameClient(c.a) != c.want {
			t.Errorf("%s: not %v both ways", c.name, c.want)
		}
	}
}

func entryOf(t *testing.T, dir *state.Dir) Entry {
	t.Helper()
	list, err := List(dir, nil)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}

func TestTerminateEndsAnAwait(t *testing.T) {
	dir := open(t)
	cmd := start(t, "/p", "sentinel", "await")
	e := entryOf(t, dir)
	if err := e.Terminate(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	if err := e.Terminate(); !errors.Is(err, proc.ErrGone) {
		t.Errorf("once more: %v", err)
	}
}

func TestTerminateSparesWhateverDoesNotAgreeWithItsRecord(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		doubt func(*Entry)
		gone  bool
	}{
		{"another command line", []string{"sentinel", "drain"}, func(*Entry) {}, false},
		{"another start time", []string{"sentinel", "await"}, func(e *Entry) { e.Process.Start++ }, true},
		{"a lock that is free", []string{"sentinel", "await"}, func(e *Entry) { os.Remove(e.base + ".lock") }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := open(t)
			cmd := start(t, "/p", c.args...)
			e := entryOf(t, dir)
			c.doubt(&e)
			if err := e.Terminate(); err == nil || errors.Is(err, proc.ErrGone) != c.gone {
				t.Errorf("error %v", err)
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			// SIGINT ends it now; had it got SIGTERM before, that would show.
			cmd.Wait()
			if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGINT {
				t.Errorf("it ended with %v", cmd.ProcessState)
			}
		})
	}
}

func TestNoLivingAwaiterIsLostWhileManyRegisterAndList(t *testing.T) {
	dir := open(t)
	p := dir.Project("/p")
	const many = 50
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			a, err := Register(dir, p, Record{Process: proc.ID{PID: os.Getpid(), Start: uint64(i + 1)}, Project: "/p"})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { a.Close() })
		})
		wg.Go(func() {
			if _, err := List(dir, p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := List(dir, p); err != nil || len(list) != many {
		t.Errorf("%d of %d are there, %v", len(list), many, err)
	}
}
