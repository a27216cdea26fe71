package atomicfile

import (
	"errors"
	"os"
	"testing"
)

func TestReplaceLeavesAFileThatSomebodyIsWriting(t *testing.T) {
	path := newFile(t)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Replace(path, nil, []byte("ours"), 0o600); !errors.Is(err, ErrChanged) {
		t.Errorf("Replace: %v", err)
	}
	if _, err := f.WriteString("theirs"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "theirs" {
		t.Errorf("the file holds %q", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("theirs"), []byte("ours"), 0o600); err != nil || content(t, path) != "ours" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	alone(t, path)
}

func TestOpeningAFileBreaksNothingOfAProgramThatLooksAtIt(t *testing.T) {
	path := newFile(t)
	for range 200 {
		done := make(chan error)
		go func() {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				err = f.Close()
			}
			done <- err
		}()
		if _, _, err := readQuiet(path); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProgramThatOpensOursBeforeItIsTakenBackWritesIntoTheFile(t *testing.T) {
	path := newFile(t)
	exchanges := 0
	var f *os.File
	Before = func(step, _ string) (err error) {
		if step != "exchange" {
			return nil
		}
		switch exchanges++; exchanges {
		case 1:
			err = os.WriteFile(path, []byte("first"), 0o600)
		case 2:
			f, err = os.OpenFile(path, os.O_WRONLY, 0)
		}
		return err
	}
	t.Cleanup(func() { Before = nil })
	if err := Replace(path, []byte("old"), []byte("ours"), 0o600); !errors.Is(err, ErrChanged) {
		t.Errorf("Replace: %v", err)
	}
	defer f.Close()
	if _, err := f.WriteString("theirs"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "theirs" {
		t.Errorf("the file holds %q", got)
	}
	alone(t, path)
}
