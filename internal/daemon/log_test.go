package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vx/internal/atomicfile"
)

func TestTheLogIsRotatedAndForItsUserAlone(t *testing.T) {
	w := newWorld(t)
	w.must(os.WriteFile(w.dir.Join(LogName), []byte("from before\n"), 0o644))
	w.must(os.Chmod(w.dir.Join(LogName), 0o644))
	l, err := OpenLog(w.dir)
	w.must(err)
	defer l.Close()
	line := []byte(strings.Repeat("x", 8<<10) + "\n")
	for range 300 {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("one log set aside", func() bool { return len(w.logs()) == 2 })
	for _, path := range w.logs() {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 || fi.Size() > 1<<20 {
			t.Errorf("%s: %v, %v", path, fi, err)
		}
	}
	// What a crash adds behind the log's back is not overwritten.
	f, err := os.OpenFile(w.dir.Join(LogName), os.O_WRONLY|os.O_APPEND, 0)
	w.must(err)
	_, err = fmt.Fprintln(f, "panic: now")
	w.must(err)
	w.must(f.Close())
	_, err = l.Write([]byte("time=later\n"))
	w.must(err)
	if !strings.HasSuffix(w.log(), "x\npanic: now\ntime=later\n") {
		t.Errorf("the log ends with %q", w.log()[max(0, len(w.log())-40):])
	}
}

func (w world) logs() []string {
	w.Helper()
	all, err := filepath.Glob(w.dir.Join("sentinel*.log"))
	w.must(err)
	return all
}

func TestStderrFollowsTheLog(t *testing.T) {
	w := newWorld(t)
	f, err := atomicfile.OpenLog(w.dir.Join(LogName))
	w.must(err)
	saved, err := unix.Dup(2)
	w.must(err)
	defer unix.Close(saved)
	w.must(dup2(int(f.Fd()), 2))
	defer dup2(saved, 2)
	w.must(f.Close())
	l, err := OpenLog(w.dir)
	w.must(err)
	defer l.Close()
	w.must(os.Remove(w.dir.Join(LogName)))
	if _, err := l.Write([]byte("time=0\n")); err == nil {
		t.Error("it is there again at once")
	}
	l.gone = l.gone.Add(-removing)
	_, err = l.Write([]byte("time=1\n"))
	w.must(err)
	fmt.Fprintln(os.Stderr, "panic: now")
	_, err = l.Write([]byte("time=2\n"))
	w.must(err)
	if got := w.log(); got != "time=1\npanic: now\ntime=2\n" {
		t.Errorf("the log holds %q", got)
	}
}

func TestTheLogDoesNotMakeAStateDirectoryAgain(t *testing.T) {
	w := newWorld(t)
	l, err := OpenLog(w.dir)
	w.must(err)
	defer l.Close()
	w.must(os.RemoveAll(w.dir.Path()))
	if _, err := l.Write([]byte("x\n")); err == nil {
		t.Error("it was written")
	}
	l.gone = l.gone.Add(-removing)
	if _, err := l.Write([]byte("x\n")); err == nil {
		t.Error("it was written")
	}
	if _, err := os.Lstat(w.dir.Path()); err == nil {
		t.Error("the directory is there again")
	}
}

func TestNoLogIsWrittenThroughALinkOrIntoAFIFO(t *testing.T) {
	w := newWorld(t)
	w.must(os.Symlink(w.home+"/elsewhere", w.dir.Join(LogName)))
	if _, err := OpenLog(w.dir); err == nil {
		t.Error("a link is followed")
	}
	w.must(os.Remove(w.dir.Join(LogName)))
	w.must(unix.Mkfifo(w.dir.Join(LogName), 0o600))
	if _, err := OpenLog(w.dir); err == nil {
		t.Error("a FIFO is written into")
	}
}

func TestTheLastLineOfALogIsOneThatSaysSomething(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"":                             "",
		"time=1 msg=a\ntime=2 msg=b\n": "time=2 msg=b",
		"time=1 msg=a\npanic: b\n\ngoroutine 1 [running]:\nmain()\n": "panic: b",
		"vx: state: no\nhint: vx doctor\n":                           "vx: state: no",
	} {
		w.must(os.WriteFile(w.dir.Join(LogName), []byte(text), 0o600))
		if got := lastLine(w.dir); got != want {
			t.Errorf("of %q it is %q", text, got)
		}
	}
}
