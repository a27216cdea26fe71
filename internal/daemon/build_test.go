package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASentinelMakesRoomForAnotherProgramAtItsPath(t *testing.T) {
	for name, replace := range map[string]func(world){
		"a rebuild of the same size": func(w world) { w.rebuild(w.program) },
		"a symlink that is moved": func(w world) {
			w.rebuild(filepath.Dir(w.program) + "/v2")
			w.must(os.Symlink("v2", w.program+".new"))
			w.must(os.Rename(w.program+".new", w.program))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			v1, v2 := filepath.Dir(w.program)+"/v1", filepath.Dir(w.program)+"/v2"
			w.install(v2)
			if strings.HasPrefix(name, "a symlink") {
				w.install(v1)
				w.must(os.Remove(w.program))
				w.must(os.Symlink("v1", w.program))
			}
			first := w.start()
			if first.Build.Path != w.program {
				t.Fatalf("it was invoked by %s, want %s, unresolved", first.Build.Path, w.program)
			}
			replace(w)
			w.ends(first)
			if got := w.files(); got != "sentinel.lock sentinel.log" {
				t.Errorf("it leaves %s", got)
			}
			if second := w.start(); second.Replaced() || second.Build.same(first.Build.File) {
				t.Errorf("the second runs %+v", second.Build)
			}
		})
	}
}

func TestAProgramThatIsBeingReplacedIsNoOtherYet(t *testing.T) {
	w := newWorld(t)
	held, err := Claim(w.dir, "1")
	w.must(err)
	defer held.Release()
	f, err := identify(w.program)
	w.must(err)
	held.info.Build = Build{Path: w.program, File: f}
	goesOn := func(what string) {
		t.Helper()
		if why := held.Over(); why != "" {
			t.Errorf("%s: %s", what, why)
		}
	}
	goesOn("as it was")
	w.must(os.Rename(w.program, w.program+".old"))
	goesOn("while its path leads nowhere")
	goesOn("a second time")
	w.must(os.WriteFile(w.program, []byte("half"), 0o600))
	goesOn("while another is being written")
	w.must(os.Remove(w.program))
	w.must(os.Mkdir(w.program, 0o700))
	goesOn("while a directory is there")
	w.must(os.Remove(w.program))
	w.must(os.Symlink("nowhere", w.program))
	goesOn("while a link leads nowhere")
	held.missing -= unreachable
	if why := held.Over(); why != w.program+" is gone" {
		t.Errorf("after long: %q", why)
	}
	w.must(os.Remove(w.program))
	w.must(os.Rename(w.program+".old", w.program))
	if _, err := identify(w.program); err != nil {
		t.Fatal(err)
	}
	if why := held.Over(); why == "" {
		// A rename changes the time of the change on some file systems and not on others.
		goesOn("once it is back")
	}
}

func TestEachDifferenceMakesAnotherFile(t *testing.T) {
	w := newWorld(t)
	f, err := identify(w.program)
	w.must(err)
	for name, change := range map[string]func(*File){
		"device": func(f *File) { f.Device++ },
		"inode":  func(f *File) { f.Inode++ },
		"size":   func(f *File) { f.Size++ },
		"mtime":  func(f *File) { f.Mtime = f.Mtime.Add(1) },
		"ctime":  func(f *File) { f.Changed = f.Changed.Add(1) },
	} {
		other := f
		if change(&other); f.same(other) {
			t.Errorf("another %s makes no other file", name)
		}
	}
}

func TestTheInvokedPathIsAbsoluteAndNotResolved(t *testing.T) {
	w := newWorld(t)
	link := filepath.Join(w.home, "link")
	w.must(os.Symlink(w.program, link))
	w.must(os.Symlink(w.program, filepath.Join(w.home, "vx")))
	t.Setenv("PATH", "/nowhere:"+w.home)
	t.Chdir(w.home)
	self := os.Args[0]
	defer func() { os.Args[0] = self }()
	executable, err := os.Executable()
	w.must(err)
	for arg, want := range map[string]string{
		link: link, "./link": w.home + "/link", "vx": w.home + "/vx", "no-such-command": executable,
	} {
		os.Args[0] = arg
		if got, err := invoked(); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", arg, got, err, want)
		}
	}
}

func TestTwoInstalledProgramsLeaveEachOtherAlone(t *testing.T) {
	w := newWorld(t)
	first := w.start()
	other := w
	other.program = filepath.Join(filepath.Dir(w.program), "other")
	w.rebuild(w.program) // the first leaves
	w.ends(first)
	w.must(os.Rename(w.program, other.program))
	w.install(w.program)
	mine := w.start()
	for range 5 {
		if out, err := other.command("start").CombinedOutput(); err != nil {
			t.Fatalf("start: %v: %s", err, out)
		}
	}
	if now := w.running(); now.ID != mine.ID {
		t.Errorf("%d runs now, %d before", now.PID, mine.PID)
	}
}

func TestACommandWaitsForAnOldSentinelToLeave(t *testing.T) {
	w := newWorld(t)
	first := w.start()
	self := os.Args[0]
	defer func() { os.Args[0] = self }()
	os.Args[0] = w.program
	w.must(EnsureCurrent(t.Context(), w.dir))
	if now := w.running(); now.ID != first.ID {
		t.Fatalf("a current one was replaced by %d", now.PID)
	}
	w.rebuild(w.program)
	w.must(EnsureCurrent(t.Context(), w.dir))
	if now := w.running(); now.ID == first.ID || now.Replaced() {
		t.Errorf("the old one runs still: %+v", now)
	}
}
