package claude

import (
	"os"
	"path/filepath"
	"testing"
)

func TestARecordThatIsWrittenInPlaceIsTold(t *testing.T) {
	dir := config(t)
	at := func(name string) string { return filepath.Join(dir, "sessions", name) }
	writeFile(t, at("17.json"), `{"status":"busy"}`)
	c, err := Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	writeFile(t, at("17.0a1b.key"), "a secret")
	writeFile(t, at("18.json.tmp"), "not yet")
	writeFile(t, at("18.json"), `{}`)
	writeFile(t, at("17.json"), `{"status":"idle"}`)
	seen := map[int]bool{}
	for !seen[17] || !seen[18] {
		pid, err := c.Next()
		if err != nil || pid != 17 && pid != 18 {
			t.Fatalf("pid %d, %v", pid, err)
		}
		seen[pid] = true
	}
	if err := os.RemoveAll(filepath.Join(dir, "sessions")); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := c.Next(); err != nil {
			break // the directory is gone
		}
	}
}

func TestAClosedWatchWakesWhoWaits(t *testing.T) {
	c, err := Watch(config(t))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := c.Next()
		ended <- err
	}()
	c.Close()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
}

func TestADirectoryThatIsNotThereCannotBeWatched(t *testing.T) {
	if c, err := Watch(t.TempDir()); err == nil {
		c.Close()
		t.Error("no error")
	}
}

func TestOnlyRecordsOfItsDirectoryAreAWatchs(t *testing.T) {
	dir := config(t)
	c, err := Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for path, want := range map[string]bool{
		filepath.Join(dir, "sessions", "17.json"): true, filepath.Join(dir, "sessions", "x", "17.json"): false,
		filepath.Join(t.TempDir(), "sessions", "17.json"): false, "": false,
	} {
		if got := c.Of(&Session{file: stamp{path: path}}); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
