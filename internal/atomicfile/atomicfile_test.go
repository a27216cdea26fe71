package atomicfile

import (
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
)

// The test binary is also the writer that is killed at a step.
func TestMain(m *testing.M) {
	if step := os.Getenv("VX_TEST_DIE_AT"); step != "" {
		die(step, os.Getenv("VX_TEST_OP"), os.Getenv("VX_TEST_FILE"))
	}
	os.Exit(m.Run())
}

// operations are the three ways to write the file, whose content is "old" where it must exist.
var operations = map[string]func(path string) error{
	"Write":   func(path string) error { return Write(path, []byte("new"), 0o600) },
	"Replace": func(path string) error { return Replace(path, []byte("old"), []byte("new"), 0o600) },
	"Create":  func(path string) error { return Create(path, []byte("new"), 0o600) },
}

// fileFor is a file that the operation can write: there is none where it is to make one.
func fileFor(t *testing.T, op string) string {
	t.Helper()
	path := newFile(t)
	if op == "Create" {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// steps are those of an operation that come before its content stands.
func steps(op string) []string {
	if op == "Replace" {
		return []string{"create", "write", "sync", "exchange"}
	}
	return []string{"create", "write", "sync", "rename"}
}

func failAt(t *testing.T, wanted string, failure error) {
	t.Helper()
	Before = func(step, _ string) error {
		if step == wanted {
			return failure
		}
		return nil
	}
	t.Cleanup(func() { Before = nil })
}

func TestWritingReplacesOrMakesTheFile(t *testing.T) {
	for op, run := range operations {
		path := fileFor(t, op)
		if err := run(path); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		if got := content(t, path); got != "new" {
			t.Errorf("%s: the file holds %q", op, got)
		}
		alone(t, path)
	}
	path := filepath.Join(t.TempDir(), "none")
	if err := Write(path, []byte("new"), 0o600); err != nil || content(t, path) != "new" {
		t.Errorf("Write to no file: %v", err)
	}
}

func TestAFailingStepLeavesTheOldContentAndNothingElse(t *testing.T) {
	for op, run := range operations {
		for _, step := range steps(op) {
			for _, failure := range []error{syscall.ENOSPC, syscall.EACCES, syscall.EMFILE} {
				path := fileFor(t, op)
				failAt(t, step, failure)
				if err := run(path); !errors.Is(err, failure) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s, %s: %v, want %v of %s", op, step, err, failure, path)
				}
				entries, err := os.ReadDir(filepath.Dir(path))
				if err != nil {
					t.Fatal(err)
				}
				if op == "Create" {
					if len(entries) != 0 {
						t.Errorf("%s, %s: left behind %v", op, step, entries)
					}
					continue
				}
				if got := content(t, path); got != "old" {
					t.Errorf("%s, %s: the file holds %q", op, step, got)
				}
				alone(t, path)
			}
		}
	}
}

func TestADirectoryThatCannotBeSyncedIsAnErrorAfterTheWrite(t *testing.T) {
	for op, run := range operations {
		path := fileFor(t, op)
		Before = func(step, of string) error {
			if step == "sync" && of == filepath.Dir(path) {
				return syscall.EIO
			}
			return nil
		}
		t.Cleanup(func() { Before = nil })
		if err := run(path); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", op, err)
		}
		if got := content(t, path); got != "new" {
			t.Errorf("%s: the file holds %q", op, got)
		}
		alone(t, path)
	}
}

// die writes, and kills itself at a step.
func die(at, op, path string) {
	Before = func(step, of string) error {
		if step == at || at == "end" && step == "sync" && of == filepath.Dir(path) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	operations[op](path)
	os.Exit(0)
}

func TestAKilledWriterLeavesTheOldContentOrTheNew(t *testing.T) {
	for op := range operations {
		for _, step := range append(steps(op), "end") {
			path := fileFor(t, op)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "VX_TEST_DIE_AT="+step, "VX_TEST_OP="+op, "VX_TEST_FILE="+path)
			if err := cmd.Run(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%s, %s: the writer was not killed: %v", op, step, err)
			}
			data, err := os.ReadFile(path)
			switch got := string(data); {
			case step == "end" && got == "new":
			case step != "end" && op == "Create" && errors.Is(err, fs.ErrNotExist):
			case step != "end" && op != "Create" && got == "old":
			default:
				t.Errorf("%s, %s: the file holds %q, %v", op, step, got, err)
			}
		}
	}
}

func TestAReaderNeverSeesAMixture(t *testing.T) {
	path := newFile(t)
	long, short := strings.Repeat("a", 1<<16), "b"
	if err := Write(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, seen := make(chan struct{}), make(chan string, 1)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				data, err := os.ReadFile(path)
				if s := string(data); err != nil || s != long && s != short {
					select {
					case seen <- fmt.Sprintf("%d bytes, %v", len(s), err):
					default:
					}
				}
			}
		})
	}
	for range 100 {
		if err := Write(path, []byte(short), 0o600); err != nil {
			t.Error(err)
		}
		if err := Replace(path, []byte(short), []byte(long), 0o600); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
	select {
	case what := <-seen:
		t.Error("a reader saw", what)
	default:
	}
}

func TestLinksAreFollowedAndStay(t *testing.T) {
	for _, op := range []string{"Write", "Replace"} {
		root := t.TempDir()
		mkdirs(t, filepath.Join(root, "dotfiles", "claude"), filepath.Join(root, "home"))
		target := filepath.Join(root, "dotfiles", "claude", "settings.json")
		if err := os.WriteFile(target, []byte("old"), 0o640); err != nil {
			t.Fatal(err)
		}
		// A link to a link, relative, in a directory that is reached through a link.
		symlink(t, "claude/settings.json", filepath.Join(root, "dotfiles", "link.json"))
		symlink(t, "../dotfiles", filepath.Join(root, "home", "dir"))
		symlink(t, "dir/link.json", filepath.Join(root, "home", "settings.json"))
		path := filepath.Join(root, "home", "settings.json")
		if err := operations[op](path); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		if got := content(t, target); got != "new" {
			t.Errorf("%s: the target holds %q", op, got)
		}
		for link, to := range map[string]string{path: "dir/link.json", filepath.Join(root, "dotfiles", "link.json"): "claude/settings.json"} {
			if got, err := os.Readlink(link); got != to || err != nil {
				t.Errorf("%s: %s leads to %q, %v", op, link, got, err)
			}
		}
		if fi, err := os.Stat(target); err != nil || fi.Mode().Perm() != 0o640 {
			t.Errorf("%s: mode %v, %v, want 0640", op, fi.Mode(), err)
		}
		alone(t, target)
	}
}

func TestALinkMayLeadToAFileThatIsStillToBeMade(t *testing.T) {
	root := t.TempDir()
	mkdirs(t, filepath.Join(root, "a"), filepath.Join(root, "b", "c"))
	symlink(t, filepath.Join(root, "b", "c"), filepath.Join(root, "a", "dir"))
	symlink(t, "dir/../second", filepath.Join(root, "a", "first")) // b/second: .. is of the directory that dir leads to
	symlink(t, filepath.Join(root, "b", "made"), filepath.Join(root, "b", "second"))
	if err := Write(filepath.Join(root, "a", "first"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(root, "b", "made")); got != "new" {
		t.Errorf("made holds %q", got)
	}
	t.Chdir(root)
	if err := Write("here", []byte("new"), 0o600); err != nil || content(t, filepath.Join(root, "here")) != "new" {
		t.Errorf("a relative path: %v", err)
	}
	symlink(t, "loop", filepath.Join(root, "loop"))
	symlink(t, "none/x", filepath.Join(root, "nowhere"))
	for _, bad := range []string{"loop", "nowhere"} {
		if err := Write(filepath.Join(root, bad), []byte("new"), 0o600); err == nil {
			t.Errorf("%s was written", bad)
		}
		if fi, err := os.Lstat(filepath.Join(root, bad)); err != nil || fi.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s is no link any more: %v", bad, err)
		}
	}
}

func TestModesAreKeptOrGiven(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o666, 0o400} {
		path := newFile(t)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		fresh := filepath.Join(t.TempDir(), "fresh")
		if err := errors.Join(Write(path, []byte("old"), 0o600), Replace(path, []byte("old"), []byte("new"), 0o600), Create(fresh, nil, mode)); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, fresh} {
			if fi, err := os.Stat(p); err != nil || fi.Mode().Perm() != mode {
				t.Errorf("mode %v of %s, %v, want %v", fi.Mode(), filepath.Base(p), err, mode)
			}
		}
	}
}

func TestTheOwnerIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a file away")
	}
	for _, op := range []string{"Write", "Replace"} {
		path := newFile(t)
		if err := os.Chown(path, 12345, 54321); err != nil {
			t.Fatal(err)
		}
		if err := operations[op](path); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := fi.Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 54321 {
			t.Errorf("%s: owned by %d:%d", op, st.Uid, st.Gid)
		}
	}
}

func TestWhatIsNoFileIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "folder")
	mkdirs(t, folder)
	for _, path := range []string{fifo, folder} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(path, []byte("new"), 0o600); err == nil {
			t.Errorf("%s was written", path)
		}
		if err := Create(path, []byte("new"), 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Create %s: %v, want ErrExist", path, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s is another: %v", path, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestReplaceWithoutExchangeComparesBeforeTheRename(t *testing.T) {
	path := newFile(t)
	failAt(t, "exchange", errors.ErrUnsupported)
	if err := Replace(path, []byte("old"), []byte("new"), 0o600); err != nil || content(t, path) != "new" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	if err := Replace(path, []byte("old"), []byte("newer"), 0o600); !errors.Is(err, ErrChanged) || content(t, path) != "new" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	alone(t, path)
}

func TestReplaceMakesNothing(t *testing.T) {
	path := fileFor(t, "Create")
	if err := Replace(path, nil, []byte("new"), 0o600); !errors.Is(err, ErrChanged) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want ErrChanged, since the file is gone", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

func TestOfManyThatCreateOneSucceeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one")
	const n = 20
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() { errs <- Create(path, fmt.Appendf(nil, "writer %d", i), 0o600) })
	}
	wg.Wait()
	close(errs)
	made := 0
	for err := range errs {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if made != 1 || !strings.HasPrefix(content(t, path), "writer ") {
		t.Errorf("%d made it; it holds %q", made, content(t, path))
	}
	alone(t, path)
}

func TestANewNameMustBeFree(t *testing.T) {
	for name, rename := range map[string]func(from, to string) error{"in one step": RenameNew, "by a link": linkNew} {
		dir := t.TempDir()
		from, taken, free := filepath.Join(dir, "from"), filepath.Join(dir, "taken"), filepath.Join(dir, "free")
		for path, s := range map[string]string{from: "ours", taken: "theirs"} {
			if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := rename(from, taken); !errors.Is(err, fs.ErrExist) || content(t, taken) != "theirs" || content(t, from) != "ours" {
			t.Errorf("%s, taken: %v, %q, %q", name, err, content(t, taken), content(t, from))
		}
		if err := rename(from, free); err != nil || content(t, free) != "ours" {
			t.Errorf("%s, free: %v", name, err)
		}
		if _, err := os.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the old name is still there: %v", name, err)
		}
	}
}

func TestExchangeSwapsTwoFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, path := range []string{a, b} {
		if err := os.WriteFile(path, []byte(filepath.Base(path)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Exchange(a, b); err != nil || content(t, a) != "b" || content(t, b) != "a" {
		t.Errorf("%v: a holds %q, b holds %q", err, content(t, a), content(t, b))
	}
	if err := Exchange(a, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) || content(t, a) != "b" {
		t.Errorf("with nothing: %v", err)
	}
}

func mkdirs(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}
