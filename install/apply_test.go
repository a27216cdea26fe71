package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/proc"
)

// A foreign program that keeps a count in the settings file, knows by itself how far it has counted, and takes over
// whatever else it finds there.
type counter struct {
	path  string
	write func(path string, data []byte) error
	n     int
}

func inPlace(path string, data []byte) error { return os.WriteFile(path, data, 0o644) }

func byRename(path string, data []byte) error {
	return errors.Join(os.WriteFile(path+".theirs", data, 0o644), os.Rename(path+".theirs", path))
}

// found reads the count in the file, -1 for one that is not there or not whole.
func (c *counter) found() (file map[string]any, n int) {
	data, err := os.ReadFile(c.path)
	if err != nil || json.Unmarshal(data, &file) != nil {
		return nil, -1
	}
	f, ok := file["n"].(float64)
	if !ok {
		return nil, -1
	}
	return file, int(f)
}

// step waits for its last count to be there, for a vx that took it out for an instant to put it back, and counts on.
func (c *counter) step() error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		file, n := c.found()
		if n == c.n {
			c.n++
			file["n"] = c.n
			data, err := json.MarshalIndent(file, "", "  ")
			if err != nil {
				return err
			}
			return c.write(c.path, data)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("count %d is lost, the file has %d", c.n, n)
		}
	}
}

func TestWritersInALoopLoseNothingOfEachOther(t *testing.T) {
	for name, write := range map[string]func(string, []byte) error{"in place": inPlace, "by rename": byRename} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(shared, `{"n": 0}`)
			stop := make(chan struct{})
			var foreign, vx sync.WaitGroup
			c := &counter{path: w.path(shared), write: write}
			foreign.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := c.step(); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
			if name == "by rename" { // nobody empties the file then
				foreign.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if data, err := os.ReadFile(c.path); err != nil || !json.Valid(data) {
							t.Errorf("a reader finds %q, %v", data, err)
							return
						}
					}
				})
			}
			for range 2 {
				vx.Go(func() {
					for range 10 {
						w.attempt(Init(w.dir, w.root, Project, Choices{}))
						w.attempt(Uninstall(w.dir, w.root, Project))
					}
				})
			}
			vx.Wait()
			close(stop)
			foreign.Wait()
			if _, n := c.found(); n != c.n {
				t.Errorf("the last count was %d, the file has %d", c.n, n)
			}
			w.init(Project)
			w.right(shared)
			w.onlyThere(shared)
		})
	}
}

// attempt applies a plan; that others do not let go of the file is no fault.
func (w world) attempt(p *Plan, err error) {
	if err == nil {
		_, err = p.Apply(context.Background(), w.dir)
	}
	if err != nil && !errors.Is(err, atomicfile.ErrChanged) && !errors.Is(err, lock.ErrHeld) {
		w.Error(err)
	}
}

// onlyThere fails the test if a file of the project's .claude is not among those named.
func (w world) onlyThere(names ...string) {
	w.Helper()
	entries, err := os.ReadDir(w.path(".claude"))
	if err != nil || len(entries) != len(names) {
		w.Errorf("in .claude: %v, %v", entries, err)
	}
}

func TestTwoInitsThatMakeTheFileAgreeOnIt(t *testing.T) {
	for range 20 {
		w := newWorld(t)
		var vx sync.WaitGroup
		for range 4 {
			vx.Go(func() { w.attempt(Init(w.dir, w.root, Project, Choices{})) })
		}
		vx.Wait()
		w.right(shared)
		w.onlyThere(shared)
		w.uninstall(Project)
		if !w.missing(".claude") {
			t.Error("what init made stayed")
		}
	}
}

// fail lets the n-th step of a kind fail, and counts the steps of that kind.
func fail(t *testing.T, kind string, n int, err error) (seen *int) {
	seen = new(int)
	atomicfile.Before = func(step, path string) error {
		if step != kind {
			return nil
		}
		*seen++
		if *seen == n {
			return &os.PathError{Op: step, Path: path, Err: err}
		}
		return nil
	}
	t.Cleanup(func() { atomicfile.Before = nil })
	return seen
}

// A trial is a plan that is applied to a file with one step failing.
type trial struct {
	verb, old string // what the file holds; "" is no file
	inited    bool   // init has been there before
}

func (tr trial) plan(w world) (*Plan, error) {
	switch tr.verb {
	case "upgrade":
		return Upgrade(w.dir, w.root, "", Choices{})
	case "uninstall":
		return Uninstall(w.dir, w.root, "")
	}
	return Init(w.dir, w.root, Project, Choices{Await: "always"})
}

// run applies the plan with the n-th step of a kind failing. It reports false if there are not so many steps.
func (tr trial) run(t *testing.T, step string, n int, fault error) bool {
	w := newWorld(t)
	if tr.old != "" {
		w.write(shared, tr.old)
	}
	if tr.inited {
		w.init(Project)
	}
	was, _ := os.ReadFile(w.path(shared))
	p, err := tr.plan(w)
	if err != nil {
		t.Fatal(err)
	}
	seen := fail(t, step, n, fault)
	_, err = p.Apply(context.Background(), w.dir)
	atomicfile.Before = nil
	if *seen < n {
		if err != nil {
			t.Error(err)
		}
		return false
	}
	if err != nil && !strings.Contains(err.Error(), fault.Error()) {
		t.Errorf("%v, want %v", err, fault)
	}
	now, err := os.ReadFile(w.path(shared))
	gone := errors.Is(err, os.ErrNotExist) && (len(was) == 0 || p.Edits[0].Removes)
	if !gone && !bytes.Equal(now, was) && (len(p.Edits) == 0 || !bytes.Equal(now, p.Edits[0].New)) {
		t.Errorf("the file holds %q, %v", now, err)
	}
	// Nothing is in the way of doing it again, nor of undoing it.
	if p, err := tr.plan(w); err != nil || !p.Empty() {
		w.apply(p, err)
	}
	if tr.verb != "uninstall" {
		w.right(shared)
		w.onlyThere(shared)
		w.uninstall(Project)
	}
	if tr.old == "" && !w.missing(".claude") {
		t.Error("something stayed that init made")
	}
	if tr.old != "" && tr.verb != "upgrade" && w.read(shared) != tr.old {
		t.Errorf("uninstall gives %q", w.read(shared))
	}
	return true
}

func TestAFaultAtAnyStepLeavesTheFileWhole(t *testing.T) {
	faults := []error{syscall.ENOSPC, syscall.EACCES, syscall.EMFILE}
	hit := map[string]int{}
	for _, tr := range []trial{
		{"init", "", false},
		{"init", "{\n  \"a\": 1\n}\n", false},
		{"init", "{\n  \"a\": 1\n}\n", true},
		{"upgrade", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"vx sentinel await"}]}]},"a":1}`, false},
		{"uninstall", "{ }\n", true},
		{"uninstall", "", true},
	} {
		for _, step := range []string{"create", "write", "sync", "rename", "exchange"} {
			for n := 1; ; n++ {
				more := false
				fault := faults[n%len(faults)]
				t.Run(fmt.Sprintf("%s %q %v/%s %d %v", tr.verb, tr.old, tr.inited, step, n, fault), func(t *testing.T) {
					more = tr.run(t, step, n, fault)
				})
				if !more {
					break
				}
				hit[tr.verb+" "+step]++
			}
		}
	}
	for _, want := range []string{
		"init create", "init write", "init sync", "init rename", "init exchange", "upgrade exchange", "uninstall rename", "uninstall exchange",
	} {
		if hit[want] == 0 {
			t.Errorf("no fault at %s: %v", want, hit)
		}
	}
}

func TestTheFolderOfAKilledInitIsRemovedInTheEnd(t *testing.T) {
	w := newWorld(t)
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { recover() }()
		defer func() { atomicfile.Before = nil }()
		atomicfile.Before = func(step, path string) error {
			if path == w.path(shared) {
				panic("killed")
			}
			return nil
		}
		p.Apply(context.Background(), w.dir)
	}()
	if w.missing(".claude") || !w.missing(shared) {
		t.Fatal("not killed between folder and file")
	}
	w.init(Project)
	w.uninstall(Project)
	if !w.missing(".claude") {
		t.Error("the folder stayed")
	}
}

func TestAFileThatAnotherProgramTakesAwayIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "{}")
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.path(shared)); err != nil {
		t.Fatal(err)
	}
	w.apply(p, nil)
	w.right(shared)
	w.uninstall(Project)
	if !w.missing(shared) || w.missing(".claude") {
		t.Error("want the file gone and the folder, which was there, kept")
	}
}

func TestAWriteInTheMiddleOfARemovalIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	w.init(Project)
	p, err := Uninstall(w.dir, w.root, Project)
	if err != nil {
		t.Fatal(err)
	}
	done := false
	atomicfile.Before = func(step, path string) error {
		if step != "rename" || done {
			return nil
		}
		done = true
		return os.WriteFile(w.path(shared), []byte(`{"mine":1}`), 0o644)
	}
	t.Cleanup(func() { atomicfile.Before = nil })
	w.apply(p, nil)
	if got := w.read(shared); got != `{"mine":1}` || !done {
		t.Errorf("left %q", got)
	}
	w.onlyThere(shared)
}

func TestAnEmptyFileThatIsBeingFilledIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "")
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		time.Sleep(fillTime / 4)
		w.write(shared, `{"a":1}`)
	}()
	p, err := Init(w.dir, w.root, Project, Choices{})
	<-filled
	if err != nil || string(p.Edits[0].Old) != `{"a":1}` {
		t.Errorf("%v, planned on %q", err, p.Edits[0].Old)
	}
}

func TestInitSaysWhichClientsTakeTheHookUp(t *testing.T) {
	w := newWorld(t)
	self := proc.Self()
	record := func(version, dir string) {
		t.Helper()
		data := fmt.Sprintf(`{"pid":%d,"procStart":%q,"sessionId":"s","cwd":%q,"version":%q,"kind":"interactive","entrypoint":"cli","status":"idle"}`,
			self.PID, strconv.FormatUint(self.Start, 10), dir, version)
		path := filepath.Join(w.home, ".claude/sessions", strconv.Itoa(self.PID)+".json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	takes := fmt.Sprintf("Claude Code runs in this project (process %d): it takes the hook up within about a second", self.PID)
	misses := fmt.Sprintf("Claude Code runs in this project (process %d) in a version that may miss a .claude folder made after its start: start it again", self.PID)
	const unseen = "A Claude Code that runs here already may miss the .claude folder, as it was made after its start (2.1.197 does): start it again"
	for _, c := range []struct {
		version, dir string
		madeDir      bool
		want         string
	}{
		{"2.1.197", w.root, false, takes},
		{"2.1.197", w.root, true, misses},
		{"2.1.332", w.root, true, takes},
		{"2.1.332", w.root + "/sub", true, takes},
		{"2.1.332", w.home, true, unseen},
		{"2.1.332", w.root + "-other", true, unseen},
		{"2.1.332", w.root + "-other", false, ""},
	} {
		record(c.version, c.dir)
		if got := strings.Join(Running(w.root, c.madeDir), "\n"); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestARepairKeepsTheUndoOfTheInsertion(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "{ }")
	w.init(Project)
	whole := w.read(shared)
	w.write(shared, strings.Replace(whole, "\"asyncRewake\": true,\n            \"timeout\": 3600", "\"asyncRewake\": false,\n            \"timeout\": 60", 1))
	if w.read(shared) == whole {
		t.Fatal("nothing was damaged")
	}
	w.init(Project)
	w.right(shared)
	w.uninstall(Project)
	if got := w.read(shared); got != "{ }" {
		t.Errorf("left %q", got)
	}
}

func TestAWriteThatTakesOursOutAgainIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.write(shared, "{}")
	p, err := Init(w.dir, w.root, Project, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	done := false
	atomicfile.Before = func(step, path string) error {
		if step != "sync" || path != w.path(".claude") || done {
			return nil
		}
		done = true // ours is in place by now
		return os.WriteFile(w.path(shared), []byte(`{"theirs":1}`), 0o644)
	}
	t.Cleanup(func() { atomicfile.Before = nil })
	w.apply(p, nil)
	w.right(shared)
	if got := w.read(shared); !done || !strings.Contains(got, `"theirs":1`) {
		t.Errorf("the file holds %q", got)
	}
}
