package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
	"vx/internal/state"
)

// The test binary is also the sentinel, its launcher, and, called "start", one who starts it.
func TestMain(m *testing.M) {
	switch {
	case Launching():
		os.Exit(Launch())
	case len(os.Args) == 2 && os.Args[1] == command:
		os.Exit(playSentinel())
	case len(os.Args) == 2 && os.Args[1] == "start":
		dir, err := state.Open()
		if err == nil {
			err = Ensure(dir)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// playSentinel is a sentinel whose sweeps take no time. A file called "crash" in its HOME makes it die right away of what
// the file says.
func playSentinel() int {
	dir, err := state.Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vx:", err)
		return 1
	}
	switch how, _ := os.ReadFile(filepath.Join(os.Getenv("HOME"), "crash")); string(how) {
	case "panic":
		panic("a panic that the test wants")
	case "exit":
		return 1
	}
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	held, err := Claim(dir, "1.2.3")
	if err != nil {
		fmt.Fprintln(os.Stderr, "vx:", err)
		return 1
	}
	out, err := OpenLog(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vx:", err)
		return 1
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	for ctx.Err() == nil {
		if why := held.Over(); why != "" {
			log.Info("ends", "why", why)
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := held.Release(); err != nil {
		log.Error("release", "err", err)
		return 1
	}
	return 0
}

// A world is a state directory and a HOME of its own, with the program in it.
type world struct {
	*testing.T
	dir     *state.Dir
	home    string
	program string // a copy, which can be replaced
}

func newWorld(t *testing.T) world {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{T: t, home: filepath.Join(top, "home"), program: filepath.Join(top, "bin", "vx")}
	for _, dir := range []string{w.home, filepath.Dir(w.program)} {
		w.must(os.MkdirAll(dir, 0o700))
	}
	t.Setenv("HOME", w.home)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector's second at the end of each of hundreds of processes
	t.Setenv("VEXILLUM_HOME", filepath.Join(top, "state"))
	w.dir, err = state.Open()
	w.must(err)
	w.install(w.program)
	t.Cleanup(w.end)
	return w
}

// install puts the program at a path, as a build does: a new file under the old name. It is a link where that will do.
func (w world) install(path string) {
	w.Helper()
	self, err := os.Executable()
	w.must(err)
	if err := os.Link(self, path+".new"); err != nil {
		data, err := os.ReadFile(self)
		w.must(err)
		w.must(os.WriteFile(path+".new", data, 0o700))
	}
	w.must(os.Rename(path+".new", path))
}

// rebuild puts a copy at a path that differs in nothing but that it is another file.
func (w world) rebuild(path string) {
	w.Helper()
	data, err := os.ReadFile(path)
	w.must(err)
	fi, err := os.Stat(path)
	w.must(err)
	w.must(os.WriteFile(path+".new", data, 0o700))
	w.must(os.Chtimes(path+".new", fi.ModTime(), fi.ModTime()))
	w.must(os.Rename(path+".new", path))
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// end ends whatever runs in this world: what holds its lock, or held it when it was removed.
func (w world) end() {
	for range 3 {
		ids := Others(w.dir)
		if info, running, _ := Look(w.dir); running && info.PID != 0 && info.PID != os.Getpid() {
			ids = append(ids, info.ID)
		}
		if len(ids) == 0 {
			return
		}
		for _, id := range ids {
			if h, err := proc.Open(id); err == nil {
				h.Signal(int(unix.SIGKILL))
				h.Close()
			}
			for id.Status() != proc.Gone {
				time.Sleep(time.Millisecond)
			}
		}
	}
	w.Error("sentinels are left")
}

// command is a command of the program, as a shell would run it.
func (w world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.program, args...)
	cmd.Dir = w.home
	return cmd
}

// start starts a sentinel by a command of its own, and waits until it says who it is and has swept.
func (w world) start() Info {
	w.Helper()
	// The lock may be held for an instant by what one that has just ended has left, its launcher.
	for range 30 {
		if out, err := w.command("start").CombinedOutput(); err != nil {
			w.Fatalf("start: %v: %s", err, out)
		}
		for range 400 {
			if info, ok := w.up(); ok {
				return info
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return w.running()
}

// up is a sentinel that has come up, if there is one.
func (w world) up() (Info, bool) {
	info, running, err := Look(w.dir)
	_, serr := os.Lstat(w.dir.Join(startsName))
	_, lerr := os.Lstat(w.dir.Join(LogName))
	return info, err == nil && running && info.PID != 0 && errors.Is(serr, fs.ErrNotExist) && lerr == nil
}

// running waits for a sentinel that has come up.
func (w world) running() (info Info) {
	w.Helper()
	w.eventually("a sentinel", func() (ok bool) {
		info, ok = w.up()
		return ok
	})
	return info
}

func (w world) ends(info Info) {
	w.Helper()
	w.eventually(fmt.Sprintf("the end of sentinel %d", info.PID), func() bool { return info.Status() == proc.Gone })
}

// eventually waits far longer than anything takes.
func (w world) eventually(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(w.dir.Join(LogName))
			w.Fatalf("not within a minute: %s; the log:\n%s", what, log)
		}
	}
}

func (w world) log() string {
	w.Helper()
	text, err := os.ReadFile(w.dir.Join(LogName))
	w.must(err)
	return string(text)
}

// files are the names in the state directory that are the sentinel's.
func (w world) files() string {
	w.Helper()
	entries, err := os.ReadDir(w.dir.Path())
	w.must(err)
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sentinel.") || strings.HasPrefix(e.Name(), ".sentinel") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}
