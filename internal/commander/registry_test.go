package commander

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vx/internal/awaiter"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
)

// process starts one that only waits, and ends with the test.
func process(t *testing.T) (proc.ID, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	id, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id, cmd
}

func (w *world) register(p *state.Project, e Entry) {
	w.Helper()
	if err := Register(p, e); err != nil {
		w.Fatal(err)
	}
}

func (w *world) live(p *state.Project) []Entry {
	w.Helper()
	live, err := Live(w.dir, p)
	if err != nil {
		w.Error(err)
	}
	return live
}

// are compares commanders with what is expected of them.
func (w *world) are(got []Entry, want ...Entry) {
	w.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(Entry{})); diff != "" {
		w.Errorf("the commanders (-want +got):\n%s", diff)
	}
}

func names(t *testing.T, p *state.Project) []string {
	t.Helper()
	entries, err := os.ReadDir(p.Join(folder))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		if e.Name() != lockName {
			all = append(all, e.Name())
		}
	}
	return all
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestWhoIsRegisteredIsKnownUntilItLeaves(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	w.are(w.live(p))
	e := Entry{
		Harness: "opencode", Session: "ses_1", Process: proc.Self(), Pane: "w1:p2", Socket: "/run/herdr.sock", Terminal: "t1", Since: noon,
		Server: &Server{URL: "http://127.0.0.1:4096", Version: "1.18.33", Directory: w.shop},
	}
	w.register(p, e)
	w.are(w.live(p), e)
	fi, err := os.Stat(p.Join(folder, fileOf(e.Process)))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if err := errors.Join(Leave(p, e.Process), Leave(p, e.Process), Leave(w.dir.Project(w.notes), e.Process)); err != nil {
		t.Error(err)
	}
	w.are(w.live(p))
	if _, err := os.Stat(w.dir.Project(w.notes).Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("who leaves a project makes it known")
	}
}

func TestWhatIsNotSaidAgainIsKept(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	server := &Server{URL: "http://127.0.0.1:4096"}
	w.register(p, Entry{Harness: "opencode", Session: "ses_1", Process: proc.Self(), Since: noon, Server: server})
	w.register(p, Entry{Harness: "opencode", Process: proc.Self(), Pane: "w1:p2", Socket: "/s", Terminal: "t1"})
	want := Entry{Harness: "opencode", Session: "ses_1", Process: proc.Self(), Pane: "w1:p2", Socket: "/s", Terminal: "t1", Since: noon, Server: server}
	w.are(w.live(p), want)
	// A herdr that does not answer says nothing of the terminal; one of another pane is not this one's.
	w.register(p, Entry{Harness: "opencode", Process: proc.Self(), Pane: "w1:p2", Socket: "/s"})
	w.are(w.live(p), want)
	w.register(p, Entry{Harness: "opencode", Session: "ses_2", Process: proc.Self(), Pane: "w1:p3", Socket: "/s", Server: &Server{Version: "2"}})
	want.Session, want.Pane, want.Terminal, want.Server = "ses_2", "w1:p3", "", &Server{Version: "2"}
	w.are(w.live(p), want)
}

func TestFieldsOfALaterVersionAreKept(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	w.register(p, Entry{Harness: "pi", Process: proc.Self(), Session: "a"})
	path := p.Join(folder, fileOf(proc.Self()))
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(data), "{", `{"later":12345678901234567890,"waits":true,`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.register(p, Entry{Harness: "pi", Process: proc.Self(), Session: "b"})
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	if string(fields["later"]) != "12345678901234567890" || string(fields["session"]) != `"b"` || fields["waits"] != nil {
		t.Errorf("%s", data)
	}
}

func TestADeadCommanderVanishesByProofAndNotByTime(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	id, cmd := process(t)
	w.register(p, Entry{Harness: "pi", Process: id, Since: noon.AddDate(-20, 0, 0)})
	path := p.Join(folder, fileOf(id))
	if err := os.Chtimes(path, noon.AddDate(-20, 0, 0), noon.AddDate(-20, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if len(w.live(p)) != 1 {
		t.Error("an old one that lives is gone")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if seen, err := Look(w.dir, p); err != nil || len(seen) != 0 {
		t.Errorf("%+v, %v", seen, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("who only looks has removed it: %v", err)
	}
	w.are(w.live(p))
	if left := names(t, p); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAProcessOfTheSamePidIsAnotherOne(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	self := proc.Self()
	earlier := proc.ID{PID: self.PID, Start: self.Start - 1}
	w.register(p, Entry{Harness: "pi", Process: earlier})
	w.register(p, Entry{Harness: "pi", Process: self, Since: noon})
	w.are(w.live(p), Entry{Harness: "pi", Process: self, Since: noon})
	if left := names(t, p); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// Start times are counted from the machine's start, so after it the same pair may be another process.
func TestACommanderDoesNotOutliveItsMachinesBoot(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	w.register(p, Entry{Harness: "pi", Process: proc.Self(), Session: "before", Since: noon})
	path := p.Join(folder, fileOf(proc.Self()))
	reboot := func() {
		t.Helper()
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.Replace(string(data), proc.BootID(), "another", 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reboot()
	w.register(p, Entry{Harness: "pi", Process: proc.Self(), Since: noon.Add(time.Hour)})
	w.are(w.live(p), Entry{Harness: "pi", Process: proc.Self(), Since: noon.Add(time.Hour)})
	reboot()
	w.are(w.live(p))
	if left := names(t, p); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWhoRegistersWhileAnotherRemovesItsPredecessorStays(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	e := Entry{Harness: "pi", Process: proc.Self(), Since: noon}
	w.register(p, e)
	if err := bury(p, []proc.ID{e.Process}); err != nil { // what was read before the last start of the machine says so
		t.Error(err)
	}
	w.are(w.live(p), e)
}

func TestAFileThatCannotBeReadHidesNobodyAndIsReplaced(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	alive, _ := process(t)
	good := Entry{Harness: "pi", Process: proc.Self(), Since: noon}
	w.register(p, good)
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := p.Join(folder, fileOf(alive))
	for what, spoil := range map[string]func() error{
		"empty":           func() error { return os.WriteFile(path, nil, 0o600) },
		"cut off":         func() error { return os.WriteFile(path, []byte(`{"harness":"p`), 0o600) },
		"a list":          func() error { return os.WriteFile(path, []byte(`[]`), 0o600) },
		"of another form": func() error { return os.WriteFile(path, []byte(`{"harness":{}}`), 0o600) },
		"of nobody":       func() error { return os.WriteFile(path, []byte(`{}`), 0o600) },
		"of somebody else": func() error {
			return os.WriteFile(path, fmt.Appendf(nil, `{"harness":"pi","process":{"pid":%d,"start":1}}`, os.Getpid()), 0o600)
		},
		"with escapes": func() error {
			return os.WriteFile(path, fmt.Appendf(nil, `{"harness":"pi","session":"\u001b[2J","process":{"pid":%d,"start":%d}}`, alive.PID, alive.Start), 0o600)
		},
		"huge":    func() error { return os.WriteFile(path, make([]byte, maxRecord+1), 0o600) },
		"a link":  func() error { return os.Symlink(precious, path) },
		"a fifo":  func() error { return exec.Command("mkfifo", path).Run() },
		"a place": func() error { return os.Mkdir(path, 0o700) },
	} {
		if err := errors.Join(os.RemoveAll(path), spoil()); err != nil {
			t.Fatal(err)
		}
		live, err := Live(w.dir, p)
		w.are(live, good)
		if err == nil || !strings.Contains(err.Error(), fileOf(alive)) {
			t.Errorf("%s: %v", what, err)
		}
		w.register(p, Entry{Harness: "claude", Process: alive, Since: noon.Add(time.Hour)})
		w.are(w.live(p), good, Entry{Harness: "claude", Process: alive, Since: noon.Add(time.Hour)})
	}
	if data, err := os.ReadFile(precious); string(data) != "mine" {
		t.Errorf("a link was written through: %q, %v", data, err)
	}
}

func TestWhatDiedInTheMiddleOfAWriteIsSweptOut(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	w.register(p, Entry{Harness: "pi", Process: proc.Self(), Since: noon})
	half := p.Join(folder, "."+fileOf(proc.Self())+"123456")
	foreign, hidden := p.Join(folder, "README"), p.Join(folder, ".bashrc")
	if err := errors.Join(os.WriteFile(half, []byte(`{"har`), 0o600), os.WriteFile(foreign, nil, 0o600), os.WriteFile(hidden, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.are(w.live(p), Entry{Harness: "pi", Process: proc.Self(), Since: noon})
	w.register(p, Entry{Harness: "pi", Process: proc.Self()})
	if left := names(t, p); !cmp.Equal(left, []string{".bashrc", fileOf(proc.Self()), "README"}) {
		t.Errorf("left: %v", left)
	}
}

func TestNoCommanderIsWrittenBehindALink(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	elsewhere := t.TempDir()
	if err := errors.Join(p.Ensure(), os.Symlink(elsewhere, p.Join(folder))); err != nil {
		t.Fatal(err)
	}
	if err := Register(p, Entry{Harness: "pi", Process: proc.Self()}); err == nil || !strings.Contains(err.Error(), "is no directory") {
		t.Error(err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestWhatIsNoCommanderIsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	self := proc.Self()
	for what, e := range map[string]Entry{
		"no harness":   {Process: self},
		"no process":   {Harness: "pi"},
		"no start":     {Harness: "pi", Process: proc.ID{PID: self.PID}},
		"an escape":    {Harness: "pi", Process: self, Session: "\x1b[2J"},
		"no text":      {Harness: "pi", Process: self, Pane: "\xff"},
		"a long story": {Harness: "pi", Process: self, Server: &Server{Directory: strings.Repeat("x", maxText+1)}},
		"no address":   {Harness: "pi", Process: self, Server: &Server{URL: "file:///etc/passwd"}},
		"a password":   {Harness: "pi", Process: self, Server: &Server{URL: "http://u:secret@127.0.0.1:1"}},
	} {
		err := Register(p, e)
		if err == nil {
			t.Errorf("%s is registered", what)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.are(w.live(p))
}

func TestOneWhoWritesKeepsReadersFromNothing(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	dead, cmd := process(t)
	w.register(p, Entry{Harness: "pi", Process: dead})
	w.register(p, Entry{Harness: "pi", Process: proc.Self(), Since: noon})
	cmd.Process.Kill()
	cmd.Wait()
	l, err := lock.Try(p.Join(folder, lockName))
	if err != nil {
		t.Fatal(err)
	}
	w.are(w.live(p), Entry{Harness: "pi", Process: proc.Self(), Since: noon})
	l.Unlock()
	w.are(w.live(p), Entry{Harness: "pi", Process: proc.Self(), Since: noon})
	if left := names(t, p); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestAnAwaitAndARegistrationOfOneProcessAreOneCommander(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	client, _ := process(t)
	await := func(client proc.ID, session string, since time.Time) {
		t.Helper()
		a, err := awaiter.Register(w.dir, p, awaiter.Record{
			Process: proc.Self(), Project: p.Root, Client: client, Harness: "claude", Session: session, Pane: "w1:p2", Socket: "/s", Since: since,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
	}
	await(client, "old", noon)
	w.are(w.live(p), Entry{Harness: "claude", Session: "old", Process: client, Pane: "w1:p2", Socket: "/s", Since: noon, Waits: true})
	// A client can begin another session: whoever spoke last knows.
	w.register(p, Entry{Harness: "claude", Session: "new", Process: client, Since: noon.Add(time.Hour)})
	both := Entry{Harness: "claude", Session: "new", Process: client, Pane: "w1:p2", Socket: "/s", Since: noon, Waits: true}
	w.are(w.live(p), both)
	await(client, "newest", time.Now().Add(time.Hour))
	both.Session = "newest"
	w.are(w.live(p), both)
	// Awaits whose client is not known are taken for somebody each.
	await(proc.ID{}, "x", noon.Add(-time.Hour))
	w.register(p, Entry{Harness: "pi", Process: proc.Self(), Since: noon.Add(time.Minute)})
	want := []Entry{
		{Harness: "claude", Session: "x", Pane: "w1:p2", Socket: "/s", Since: noon.Add(-time.Hour), Waits: true},
		both,
		{Harness: "pi", Process: proc.Self(), Since: noon.Add(time.Minute)},
	}
	w.are(w.live(p), want...)
	seen, err := Look(w.dir, p)
	if err != nil {
		t.Error(err)
	}
	w.are(seen, want...)
}

func TestCommandersOfOtherProjectsAreTheirs(t *testing.T) {
	w := newWorld(t)
	w.register(w.dir.Project(w.notes), Entry{Harness: "pi", Process: proc.Self()})
	w.awaits(w.notes, "w1:p1", "")
	w.are(w.live(w.dir.Project(w.shop)))
}

func TestManyWhoRegisterAtOnceAreAllKnown(t *testing.T) {
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	const several = 6
	var wg sync.WaitGroup
	for range several {
		id, _ := process(t)
		wg.Go(func() {
			for i := range 5 {
				if err := Register(p, Entry{Harness: "pi", Process: id, Session: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
				if _, err := Live(w.dir, p); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 5 { // what the other says of it is not lost
				if err := Register(p, Entry{Harness: "pi", Process: id, Pane: "w1:p1", Terminal: "t"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	live := w.live(p)
	for _, e := range live {
		if e.Session != "4" || e.Pane != "w1:p1" {
			t.Errorf("%+v", e)
		}
	}
	if left := names(t, p); len(live) != several || len(left) != several {
		t.Errorf("%d live, left: %v", len(live), left)
	}
}

func TestAKilledWriterLeavesTheOldEntryOrTheNew(t *testing.T) {
	if at := os.Getenv("WRITE_UNTIL_KILLED"); at != "" {
		writeUntilKilled(at)
	}
	w := newWorld(t)
	p := w.dir.Project(w.shop)
	server := &Server{URL: "http://127.0.0.1:4096"}
	w.register(p, Entry{Harness: "opencode", Process: proc.Self(), Since: noon, Server: server})
	for range 15 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAKilledWriterLeavesTheOldEntryOrTheNew$")
		cmd.Env = append(os.Environ(), "WRITE_UNTIL_KILLED="+w.dir.Path()+" "+w.shop, fmt.Sprintf("WRITE_FOR=%d %d", proc.Self().PID, proc.Self().Start))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadString('\n') // it writes
		cmd.Process.Kill()
		cmd.Wait()
		live := w.live(p)
		if len(live) != 1 || live[0].Session != "x" || !cmp.Equal(live[0].Server, server) {
			t.Fatalf("%+v", live)
		}
	}
	w.register(p, Entry{Harness: "opencode", Process: proc.Self()})
	if left := names(t, p); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func writeUntilKilled(at string) {
	root, project, _ := strings.Cut(at, " ")
	dir, err := state.OpenAt(root)
	if err != nil {
		panic(err)
	}
	var id proc.ID
	if _, err := fmt.Sscan(os.Getenv("WRITE_FOR"), &id.PID, &id.Start); err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		if err := Register(dir.Project(project), Entry{Harness: "opencode", Process: id, Session: "x"}); err != nil {
			panic(err)
		}
		if i == 0 {
			fmt.Println("written")
		}
	}
}
