package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// odd makes what must neither hang nor lead elsewhere whoever opens it as a file.
func odd(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Mkdir(at("folder"), 0o700),
		os.WriteFile(at("victim"), []byte("mine"), 0o644), os.Symlink(at("victim"), at("link")))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"a FIFO": at("fifo"), "a folder": at("folder"), "a link": at("link")}
}

func TestOnlyARegularFileOfAFittingSizeIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, info, err := ReadPlain(path, 4); string(data) != "four" || err != nil || info.Size() != 4 {
		t.Errorf("%q, %v", data, err)
	}
	_, _, err := ReadPlain(path, 3)
	if _, ok := errors.AsType[*Unfit](err); !ok || err.Error() != "4 bytes, more than 3" {
		t.Errorf("one that is too large: %v", err)
	}
	for what, path := range odd(t) {
		if data, _, err := ReadPlain(path, 100); err == nil {
			t.Errorf("%s was read: %q", what, data)
		}
	}
}

func TestALogIsAppendedToAndItsUsersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("two\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	info, serr := os.Stat(path)
	if err != nil || serr != nil || string(data) != "one\ntwo\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q with mode %v, %v, %v", data, info.Mode(), err, serr)
	}
	for what, path := range odd(t) {
		if f, err := OpenLog(path); err == nil {
			t.Errorf("%s was opened", what)
			f.Close()
		}
	}
}

func TestADirectoryThatIsNotThereHoldsNothing(t *testing.T) {
	dir := t.TempDir()
	if names, err := Names(filepath.Join(dir, "none")); names != nil || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "b"), nil, 0o600), os.Mkdir(filepath.Join(dir, ".a"), 0o700)); err != nil {
		t.Fatal(err)
	}
	names, err := Names(dir)
	if slices.Sort(names); !slices.Equal(names, []string{".a", "b"}) || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := Names(filepath.Join(dir, "b")); err == nil {
		t.Error("a file has names in it")
	}
}
