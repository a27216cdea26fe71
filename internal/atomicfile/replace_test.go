package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// foreign lets somebody else rename these contents over the file, one before each of our exchanges.
func foreign(t *testing.T, path string, contents ...string) {
	t.Helper()
	Before = func(step, _ string) error {
		if step != "exchange" || len(contents) == 0 {
			return nil
		}
		next := contents[0]
		contents = contents[1:]
		if next == "" {
			return nil
		}
		if err := os.WriteFile(path+".theirs", []byte(next), 0o600); err != nil {
			return err
		}
		return os.Rename(path+".theirs", path)
	}
	t.Cleanup(func() { Before = nil })
}

func newFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// alone fails the test if anything but the file is left in its directory.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestReplaceKeepsTheLatestForeignWrite(t *testing.T) {
	for name, writes := range map[string][]string{
		"before the exchange":             {"theirs"},
		"and before it is put back":       {"first", "theirs"},
		"and before that is put back":     {"first", "second", "theirs"},
		"and once more":                   {"first", "second", "third", "theirs"},
		"only after ours has been put in": {"first", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			foreign(t, path, writes...)
			if err := Replace(path, []byte("old"), []byte("ours"), 0o600); !errors.Is(err, ErrChanged) {
				t.Errorf("Replace: %v", err)
			}
			want := "theirs"
			if writes[len(writes)-1] == "" {
				want = "first"
			}
			if got := content(t, path); got != want {
				t.Errorf("the file holds %q, want %q", got, want)
			}
			alone(t, path)
		})
	}
}

func TestReplaceWritesOverWhatItKnows(t *testing.T) {
	path := newFile(t)
	if err := Replace(path, []byte("old"), []byte("ours"), 0o600); err != nil || content(t, path) != "ours" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	if err := Replace(path, []byte("old"), []byte("more"), 0o600); !errors.Is(err, ErrChanged) || content(t, path) != "ours" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	alone(t, path)
}

func TestAForeignWriteThatCannotBePutBackIsKept(t *testing.T) {
	path := newFile(t)
	exchanges := 0
	Before = func(step, _ string) error {
		if step != "exchange" {
			return nil
		}
		if exchanges++; exchanges == 2 {
			return syscall.EIO
		}
		return os.WriteFile(path, []byte("theirs"), 0o600)
	}
	t.Cleanup(func() { Before = nil })
	err := Replace(path, []byte("old"), []byte("ours"), 0o600)
	k, ok := errors.AsType[*keptError](err)
	if !ok || !errors.Is(err, syscall.EIO) {
		t.Fatalf("Replace: %v", err)
	}
	if got := content(t, k.path); got != "theirs" {
		t.Errorf("kept %q", got)
	}
}
