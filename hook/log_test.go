package hook

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheLogIsBounded(t *testing.T) {
	w := newWorld(t)
	line := []byte(strings.Repeat("x", 999) + "\n")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 800 {
				if _, err := (logFile{}).Write(line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, name := range []string{logName, logName + ".1"} {
		data, err := os.ReadFile(w.dir.Join(name))
		if err != nil || len(data) == 0 || len(data) > maxLog+10*len(line) {
			t.Errorf("%s holds %d bytes, %v", name, len(data), err)
		}
		if len(bytes.ReplaceAll(data, line, nil)) != 0 {
			t.Errorf("%s holds torn lines", name)
		}
	}
}

func TestARecordIsBounded(t *testing.T) {
	w := newWorld(t)
	if _, err := (logFile{}).Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	if n := len(w.log()); n < maxRecord || n > maxRecord+10 {
		t.Errorf("the log holds %d bytes", n)
	}
}

func TestAFIFOOrALinkInTheLogsPlaceIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	path, other := w.dir.Join(logName), w.home+"/other"
	for name, make := range map[string]func() error{
		"FIFO": func() error { return unix.Mkfifo(path, 0o600) },
		"link": func() error { return os.Symlink(other, path) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if _, err := (logFile{}).Write([]byte("a line\n")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(other); err == nil {
			t.Errorf("%s: it was followed", name)
		}
		os.Remove(path)
	}
	if data, _ := os.ReadFile(w.home + "/.cache/vx/" + logName); string(data) != "a line\na line\n" {
		t.Errorf("the cache's log says %q", data)
	}
}
