package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAStartedSentinelHasNothingOfItsStarter(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("what another process was given is not told here")
	}
	w := newWorld(t)
	for _, e := range []string{"HERDR_PANE_ID=p1", "ANTHROPIC_API_KEY=secret", "CLAUDECODE=1", "CLAUDE_CONFIG_DIR=/c", "XDG_STATE_HOME=/s", "LC_TIME=C", "TZ=UTC"} {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	leaked, err := os.Open(w.home)
	w.must(err)
	defer leaked.Close()
	cmd := w.command("start")
	cmd.ExtraFiles = []*os.File{leaked, leaked}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("start: %v: %s", err, out)
	}
	info := w.running()
	at := "/proc/" + strconv.Itoa(info.PID)

	env, err := os.ReadFile(at + "/environ")
	w.must(err)
	for _, e := range strings.Split(strings.TrimSuffix(string(env), "\x00"), "\x00") {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "HERDR_") || name == "ANTHROPIC_API_KEY" || name == "CLAUDECODE" || !passed(name) && name != "VEXILLUM_HOME" && name != stage {
			t.Errorf("it is told %s", name)
		}
	}
	for _, want := range []string{"HOME=" + w.home, "VEXILLUM_HOME=" + w.dir.Path(), "CLAUDE_CONFIG_DIR=/c", "XDG_STATE_HOME=/s", "LC_TIME=C", "TZ=UTC"} {
		if !strings.Contains("\x00"+string(env), "\x00"+want+"\x00") {
			t.Errorf("it is not told %s", want)
		}
	}
	if cwd, err := os.Readlink(at + "/cwd"); err != nil || cwd != "/" {
		t.Errorf("it is in %s, %v", cwd, err)
	}
	if sid, err := unix.Getsid(info.PID); err != nil || sid != info.PID {
		t.Errorf("its session is %d, %v; want its own, %d", sid, err, info.PID)
	}
	log := w.dir.Join(LogName)
	allowed := map[string][]string{"0": {os.DevNull}, "1": {os.DevNull}, "2": {log}, "3": {w.dir.Join(lockName)}}
	entries, err := os.ReadDir(at + "/fd")
	w.must(err)
	for _, e := range entries {
		to, _ := os.Readlink(at + "/fd/" + e.Name())
		// The runtime has its own, and the log is opened once more.
		own := strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "/sys/fs/cgroup/") || to == log
		if want := allowed[e.Name()]; !slices.Contains(want, to) && (want != nil || !own) {
			t.Errorf("descriptor %s is %s", e.Name(), to)
		}
	}
	// Its starter has ended, and its launcher: it is nobody's child who could take it along.
	if parent := parentOf(t, info.PID); parent == os.Getpid() {
		t.Errorf("its parent is %d", parent)
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

func TestStartsThatFailAreTriedEverMoreSeldom(t *testing.T) {
	w := newWorld(t)
	w.must(os.WriteFile(filepath.Join(w.home, "crash"), []byte("panic"), 0o600))
	t.Setenv("PATH", filepath.Dir(w.program))
	os.Args[0], w.program = "vx", os.Args[0]
	defer func() { os.Args[0] = w.program }()

	pause := firstPause
	for n := 1; n <= 8; n++ {
		w.must(Ensure(w.dir))
		w.eventually("the crash", func() bool {
			_, running, err := Look(w.dir)
			return err == nil && !running && strings.Count(w.log(), "panic: a panic that the test wants") == n
		})
		failing, ok := errors.AsType[*Failing](Ensure(w.dir))
		if !ok {
			t.Fatalf("after %d crashes it is tried again at once", n)
		}
		if failing.Times != n || failing.Next.Sub(failing.Last) != pause || failing.Said != "panic: a panic that the test wants" {
			t.Errorf("after %d crashes: %+v, want a pause of %s", n, failing, pause)
		}
		if f := Failed(w.dir); f == nil || f.Times != n {
			t.Errorf("after %d crashes it is shown as %+v", n, f)
		}
		pause = min(2*pause, maxPause)
		// The pause passes.
		s := readStarts(w.dir)
		s.Last = s.Last.Add(-maxPause)
		w.must(s.write(w.dir))
	}
	w.must(os.Remove(filepath.Join(w.home, "crash")))
	w.must(Ensure(w.dir))
	w.running()
	if f := Failed(w.dir); f != nil {
		t.Errorf("it runs, and is shown as %+v", f)
	}
}

func TestAClockThatWasSetBackHoldsUpNoStart(t *testing.T) {
	w := newWorld(t)
	w.must(starts{Failed: 3, Last: time.Now().Add(time.Hour)}.write(w.dir))
	w.start()
}

func TestASentinelThatEndedInGoodOrderIsStartedAtOnce(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.start()
		if _, err := Stop(t.Context(), w.dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProgramThatCannotBeRunIsNamed(t *testing.T) {
	w := newWorld(t)
	self := os.Args[0]
	defer func() { os.Args[0] = self }()
	os.Args[0] = filepath.Join(w.home, "gone")
	if err := Ensure(w.dir); err == nil || !strings.Contains(err.Error(), os.Args[0]) {
		t.Errorf("it says %v", err)
	}
	if f := Failed(w.dir); f == nil || !strings.Contains(f.Error(), os.Args[0]) {
		t.Errorf("later it says %v", f)
	}
	if _, running, err := Look(w.dir); running || err != nil {
		t.Errorf("one runs: %v", err)
	}
}

func TestALockFromElsewhereIsNotTaken(t *testing.T) {
	w := newWorld(t)
	other, err := os.Create(filepath.Join(w.home, "lock"))
	w.must(err)
	defer other.Close()
	cmd := w.command(command)
	cmd.Env = append(os.Environ(), stage+`={"path":"/x"}`)
	cmd.ExtraFiles = []*os.File{other}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "not the lock of this state directory") {
		t.Errorf("%v: %s", err, out)
	}
	cmd = w.command(command)
	cmd.Env = append(os.Environ(), stage+"="+launcher)
	if err := cmd.Run(); err == nil {
		t.Error("a launcher without a lock ends with 0")
	}
}

func TestALockThatIsHandedOverIsHeldAllTheTime(t *testing.T) {
	w := newWorld(t)
	w.must(os.WriteFile(filepath.Join(w.home, "crash"), []byte("exit"), 0o600))
	fd, err := take(w.dir)
	w.must(err)
	w.must(unix.Close(fd)) // and free again
	if _, err := w.command("start").CombinedOutput(); err != nil {
		t.Fatal(err)
	}
	w.eventually("the lock, free", func() bool {
		fd, err := take(w.dir)
		if err == nil {
			unix.Close(fd)
		}
		return err == nil
	})
	if got := readStarts(w.dir).Failed; got != 1 {
		t.Errorf("%d failed starts are counted, want 1", got)
	}
}
