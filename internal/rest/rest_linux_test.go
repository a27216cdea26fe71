//go:build amd64 || arm64

package rest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bed is a rest that nothing ends, in a directory of its own, and the pipes that it waits for.
type bed struct {
	Wait
	dir          string
	bell, reader [2]int
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{dir: t.TempDir()}
	for _, p := range []*[2]int{&b.bell, &b.reader} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(p[0]); unix.Close(p[1]) })
	}
	file, box := filepath.Join(b.dir, "file"), filepath.Join(b.dir, "box")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(box, 0o700); err != nil {
		t.Fatal(err)
	}
	b.Wait = Wait{
		Readable: []int{b.bell[0]}, Hangup: []int{b.reader[1]},
		Parent: os.Getppid(), Most: time.Hour, Files: []string{file}, Places: []Place{{box, ".json"}, {filepath.Join(b.dir, "none"), ""}},
	}
	return b
}

// begin rests, and returns where the end is told.
func (b *bed) begin() <-chan error {
	end := make(chan error, 1)
	go func() { end <- b.Rest() }()
	return end
}

func ends(t *testing.T, end <-chan error) {
	t.Helper()
	select {
	case err := <-end:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the rest does not end")
	}
}

func TestWhatEndsARest(t *testing.T) {
	for what, do := range map[string]func(b *bed) error{
		"a ring":                   func(b *bed) error { _, err := unix.Write(b.bell[1], []byte{1}); return err },
		"a reader that is gone":    func(b *bed) error { return unix.Close(b.reader[0]) },
		"a file that is gone":      func(b *bed) error { return os.Remove(b.Files[0]) },
		"something in a place":     func(b *bed) error { return os.WriteFile(filepath.Join(b.dir, "box", "a.json"), nil, 0o600) },
		"something in a new place": func(b *bed) error { return os.MkdirAll(filepath.Join(b.dir, "none", "a"), 0o700) },
	} {
		b := newBed(t)
		end := b.begin()
		time.Sleep(20 * time.Millisecond) // or it would not begin
		select {
		case err := <-end:
			t.Fatalf("%s: it ended before: %v", what, err)
		default:
		}
		if err := do(b); err != nil {
			t.Fatal(err)
		}
		ends(t, end)
	}
}

func TestSignalsAreWrittenToAPipe(t *testing.T) {
	var before [len(ending)]action
	for i, sig := range ending {
		if err := sigaction(sig, nil, &before[i]); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := sigaction(sig, &before[i], nil); err != nil {
				t.Error(err)
			}
		}()
	}
	b := newBed(t)
	if err := Catch(b.bell[1]); err != nil {
		t.Fatal(err)
	}
	for i, sig := range ending {
		end := b.begin()
		if err := unix.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		ends(t, end)
		if n, err := unix.Read(b.bell[0], make([]byte, 2)); n != 1 || err != nil {
			t.Errorf("%v: %d bytes, %v", ending[i], n, err)
		}
	}
}

func TestARestEndsWhenItsTimeIsUp(t *testing.T) {
	b := newBed(t)
	for _, most := range []time.Duration{-time.Second, time.Millisecond} {
		b.Most = most
		ends(t, b.begin())
	}
}

func TestWhatIsNotQuiet(t *testing.T) {
	for what, change := range map[string]func(b *bed){
		"":                          func(b *bed) {},
		"another parent":            func(b *bed) { b.Parent++ },
		"a file that is not there":  func(b *bed) { b.Files = append(b.Files, b.dir+"/nothing") },
		"a lock that nobody holds":  func(b *bed) { b.Locks = b.Files },
		"a lock that is not there":  func(b *bed) { b.Locks = []string{b.dir + "/nothing"} },
		"a place that is no place":  func(b *bed) { b.Places = []Place{{b.Files[0], ""}} },
		"a link in a place's place": func(b *bed) { os.Symlink("box", b.dir+"/none") },
	} {
		b := newBed(t)
		change(b)
		if b.Quiet() != (what == "") {
			t.Errorf("with %q quiet is %v", what, b.Quiet())
		}
	}
}

func TestOnlyNamesThatCountAreSomething(t *testing.T) {
	b := newBed(t)
	// More than one read of the directory's entries holds.
	for i := range 300 {
		for _, name := range []string{fmt.Sprintf(".%d.json", i), fmt.Sprintf("%d.jso", i), "json"} {
			if err := os.WriteFile(filepath.Join(b.Places[0].Path, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !b.Quiet() {
		t.Error("it is not quiet")
	}
	if err := os.WriteFile(filepath.Join(b.Places[0].Path, "x.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if b.Quiet() {
		t.Error("x.json does not count")
	}
}

func TestAPlaceIsReadAgainOnlyWhenItMayHaveChanged(t *testing.T) {
	dir := t.TempDir()
	p := &place{path: cString(dir)}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, long, long); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		reads bool
	}{{0, true}, {time.Second, false}, {again - time.Second, false}, {again, true}, {again + time.Second, false}} {
		p.empty(now.Add(step.after))
		if reads := p.read.Equal(now.Add(step.after)); reads != step.reads {
			t.Errorf("after %v it reads: %v", step.after, reads)
		}
	}
	// A stamp that is younger than its reading by less than the kernel's coarseness proves nothing.
	fresh := &place{path: cString(dir)}
	if err := os.Chtimes(dir, now, now); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, time.Second, coarse, coarse + time.Second} {
		fresh.empty(now.Add(after))
		if !fresh.read.Equal(now.Add(after)) {
			t.Errorf("after %v it does not read", after)
		}
	}
	if fresh.empty(now.Add(coarse + 2*time.Second)); fresh.read.Equal(now.Add(coarse + 2*time.Second)) {
		t.Error("it reads for ever")
	}
}

func TestALockIsHeldThroughARest(t *testing.T) {
	b := newBed(t)
	b.Hold = []string{b.Files[0], b.dir + "/nothing"}
	end := b.begin()
	path := cString(b.Files[0])
	for deadline := time.Now().Add(30 * time.Second); !locked(path); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not held")
		}
	}
	other := Wait{Parent: b.Parent, Locks: b.Files}
	if !other.Quiet() {
		t.Error("a lock that is held is not quiet")
	}
	unix.Write(b.bell[1], []byte{1})
	ends(t, end)
	if locked(path) {
		t.Error("it is held still")
	}
}

func TestATickAllocatesNothing(t *testing.T) {
	b := newBed(t)
	e := b.eyes()
	if n := testing.AllocsPerRun(10, func() { e.quiet() }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
