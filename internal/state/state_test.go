package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"vx/internal/atomicfile"
)

// home gives the test a home of its own; the state directory is where it is by default.
func home(t *testing.T) string {
	t.Helper()
	dir := resolve(t, t.TempDir())
	t.Setenv("HOME", dir)
	t.Setenv("VEXILLUM_HOME", "")
	return dir
}

func resolve(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func mkdir(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

// refused fails the test unless the directory is refused with an *Error that names the path, says why and has a hint, both
// by Open and by Look, and unless it is left as it was.
func refused(t *testing.T, home, path, why string) {
	t.Helper()
	before := tree(t, home)
	for name, open := range map[string]func() (*Dir, error){"Open": Open, "Look": Look} {
		_, err := open()
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Path != path || !strings.Contains(e.Why, why) || e.Hint() == "" || strings.Contains(e.Error(), "\n") {
			t.Errorf("%s: %v (%+v), want an *Error about %s: %s", name, err, e, path, why)
		}
	}
	if after := tree(t, home); after != before {
		t.Errorf("changed from\n%s to\n%s", before, after)
	}
}

// tree is everything below a directory, with modes, in one text.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			fmt.Fprintf(&all, "%s %v\n", strings.TrimPrefix(path, dir), fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestOpenMakesAPrivateDirectoryOnceAndForAll(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		old := syscall.Umask(umask)
		h := home(t)
		_, none := Look()
		d, err := Open()
		syscall.Umask(old)
		if !errors.Is(none, fs.ErrNotExist) {
			t.Errorf("Look before: %v, want ErrNotExist", none)
		}
		if err != nil {
			t.Fatal(err)
		}
		if d.Path() != filepath.Join(h, ".vexillum") || d.Awaiters() != filepath.Join(h, ".vexillum", "sentinel-awaiters") {
			t.Errorf("at %s, awaiters at %s", d.Path(), d.Awaiters())
		}
		want := " drwx------\n/projects drwx------\n/sentinel-awaiters drwx------\n/state.json -rw-------\n"
		if got := tree(t, d.Path()); got != want {
			t.Errorf("umask %#o:\n%s, want\n%s", umask, got, want)
		}
		if _, err := Open(); err != nil {
			t.Errorf("Open again: %v", err)
		}
		if again, err := Look(); err != nil || again.Path() != d.Path() || tree(t, d.Path()) != want {
			t.Errorf("Look: %v, %v", again, err)
		}
	}
}

func TestOpenCompletesWhatACrashLeft(t *testing.T) {
	h := home(t)
	mkdir(t, filepath.Join(h, ".vexillum", "projects"), 0o700)
	write(t, filepath.Join(h, ".vexillum", ".state.json123"), "{")
	if _, err := Look(); err != nil {
		t.Errorf("Look: %v", err)
	}
	if _, err := Open(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h, ".vexillum", "state.json")); err != nil {
		t.Error(err)
	}
}

func TestManyMayOpenAtOnce(t *testing.T) {
	for range 20 {
		home(t)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := Open(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func TestTheDirectoryIsNamedByTheEnvironment(t *testing.T) {
	h := home(t)
	t.Setenv("VEXILLUM_HOME", filepath.Join(h, "else", "where")+"/")
	if d, err := Open(); err != nil || d.Path() != filepath.Join(h, "else", "where") {
		t.Errorf("%v, %v", d, err)
	}
	for _, relative := range []string{"state", "./state", "~/state"} {
		t.Setenv("VEXILLUM_HOME", relative)
		refused(t, h, relative, "not an absolute path")
	}
	t.Setenv("VEXILLUM_HOME", "")
	t.Setenv("HOME", "")
	refused(t, h, "~/.vexillum", "HOME is not set")
	t.Setenv("HOME", "u")
	refused(t, h, "u", "HOME is not an absolute path")
}

func TestADirectoryOfSomebodyElseIsRefused(t *testing.T) {
	h := home(t)
	path := "/usr" // root's
	if os.Geteuid() == 0 {
		path = mkdir(t, filepath.Join(h, "theirs"), 0o700)
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("VEXILLUM_HOME", path)
	refused(t, h, path, "owned by uid")
}

func TestALinkOfSomebodyElseIsNotFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a link away")
	}
	h := home(t)
	link(t, mkdir(t, filepath.Join(h, "mine"), 0o700), filepath.Join(h, ".vexillum"))
	if err := os.Lchown(filepath.Join(h, ".vexillum"), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	refused(t, h, filepath.Join(h, ".vexillum"), "owned by uid")
}

func TestADirectoryThatOthersCanWriteIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o770, 0o707, 0o777} {
		h := home(t)
		path := mkdir(t, filepath.Join(h, ".vexillum"), mode)
		refused(t, h, path, "others may write")
	}
	h := home(t)
	mkdir(t, filepath.Join(h, ".vexillum"), 0o755)
	if _, err := Open(); err != nil {
		t.Errorf("mode 0755: %v", err)
	}
	for _, inner := range []string{"projects", "sentinel-awaiters"} {
		path := mkdir(t, filepath.Join(h, ".vexillum", inner), 0o770)
		if _, err := Open(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", inner, err)
		}
		mkdir(t, path, 0o700)
	}
}

func TestALinkToADirectoryOfOnesOwnIsFollowed(t *testing.T) {
	h := home(t)
	disk := mkdir(t, filepath.Join(h, "disk", "state"), 0o700)
	link(t, "disk/state", filepath.Join(h, ".vexillum"))
	d, err := Open()
	if err != nil || d.Path() != disk {
		t.Fatalf("%v, %v, want %s", d, err, disk)
	}
	mkdir(t, disk, 0o770)
	refused(t, h, disk, "others may write")
}

func TestWhatStandsInTheDirectorysPlaceIsLeft(t *testing.T) {
	h := home(t)
	path := filepath.Join(h, ".vexillum")
	write(t, path, "notes")
	refused(t, h, path, "not a directory")
	t.Setenv("VEXILLUM_HOME", filepath.Join(path, "below"))
	if _, err := Open(); err == nil || !strings.Contains(err.Error(), path+": not a directory") {
		t.Errorf("below a file: %v", err)
	}
	t.Setenv("VEXILLUM_HOME", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	link(t, "gone", path)
	if d, err := Open(); err == nil {
		t.Errorf("a link to nothing: %v", d)
	}
	if _, err := Look(); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "a link that leads nowhere") {
		t.Errorf("a link to nothing, looked at: %v", err)
	}
	if to, err := os.Readlink(path); to != "gone" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

func TestAnotherLayoutIsLeft(t *testing.T) {
	for content, why := range map[string]string{
		`{"layout": 2}`:     "layout 2",
		`{"layout": 0}`:     "layout 0",
		`{}`:                "not a state file",
		`{"layout": "one"}`: "not a state file",
		``:                  "not a state file",
		`{"layout": 1`:      "not a state file",
	} {
		h := home(t)
		path := mkdir(t, filepath.Join(h, ".vexillum"), 0o700)
		file := filepath.Join(path, "state.json")
		write(t, file, content)
		refused(t, h, file, why)
		if got, err := os.ReadFile(file); string(got) != content {
			t.Errorf("%q became %q, %v", content, got, err)
		}
	}
	h := home(t)
	path := mkdir(t, filepath.Join(h, ".vexillum"), 0o700)
	write(t, filepath.Join(path, "state.json"), `{"layout": 1, "later": true}`)
	write(t, filepath.Join(path, "later"), "a file of a later vx of the same layout")
	if _, err := Open(); err != nil {
		t.Error(err)
	}
}

func TestAnotherProgramsDirectoryIsLeft(t *testing.T) {
	h := home(t)
	path := mkdir(t, filepath.Join(h, ".vexillum"), 0o700)
	write(t, filepath.Join(path, "flags.db"), "theirs")
	refused(t, h, path, `"flags.db"`)
}

func TestADiskThatTakesNothingIsNamed(t *testing.T) {
	for _, failure := range []error{syscall.ENOSPC, syscall.EROFS} {
		h := home(t)
		atomicfile.Before = func(step, _ string) error {
			if step == "write" {
				return failure
			}
			return nil
		}
		t.Cleanup(func() { atomicfile.Before = nil })
		_, err := Open()
		if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Why, failure.Error()) {
			t.Errorf("%v, want an *Error: %v", err, failure)
		}
		atomicfile.Before = nil
		if _, err := Open(); err != nil {
			t.Errorf("once there is room: %v", err)
		}
		if _, err := os.Stat(filepath.Join(h, ".vexillum", "state.json")); err != nil {
			t.Error(err)
		}
	}
}

func TestAHintCanBePastedIntoAShell(t *testing.T) {
	for path, want := range map[string]string{
		"/home/u/.vexillum": "/home/u/.vexillum", "/home/u/my state": "'/home/u/my state'", "it's": `'it'\''s'`, "": "''", "$(rm x)": "'$(rm x)'",
	} {
		if got := Quote(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
