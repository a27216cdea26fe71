package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// The test binary is also the program ("sentinel await", "sentinel drain", "sentinel await --hold HARNESS"), and, by VXTEST_ROLE, a client that runs
// hooks, the parent of a program, or an await that does not hear its bell.
func TestMain(m *testing.M) {
	switch role := os.Getenv("VXTEST_ROLE"); {
	case role == "client":
		playClient()
	case role == "parent":
		os.Unsetenv("VXTEST_ROLE")
		cmd := exec.Command(os.Args[1], os.Args[2:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.Run()
	case role == "deaf":
		playDeaf()
	case len(os.Args) == 5 && os.Args[1] == "sentinel" && os.Args[3] == "--hold":
		os.Exit(testProgram().Hold(Holder{Harness: os.Args[4], Session: "s1", Transcript: os.Getenv("VXTEST_TRANSCRIPT")}))
	case len(os.Args) == 3 && os.Args[1] == "sentinel":
		os.Exit(testProgram().Main(os.Args[2]))
	case len(os.Args) == 4 && os.Args[1] == "sentinel" && os.Args[2] == "await" && IsNote(os.Args[3]):
		os.Exit(testProgram().Resume(os.Args[3]))
	default:
		os.Exit(m.Run())
	}
}

// testProgram is the hook with the faults that a test asks for: VXTEST_AT is "step=fault", VXTEST_CLOCK a file that
// holds by how much the clock is off, VXTEST_STALE the title of a wake that is not news any more, VXTEST_SOLDIER the pane
// and socket of a soldier, VXTEST_OUTLIVED a file for whom an await leaves behind, VXTEST_SENTINEL the lock of a sentinel: an await that finds it free makes
// a file next to it whose name ends in ".asked".
func testProgram() Program {
	p := Program{Clock: proc.SinceBoot, Awake: proc.Awake}
	if at := os.Getenv("VXTEST_AT"); at != "" {
		step, fault, _ := strings.Cut(at, "=")
		p.Before = func(s wake.Step) error {
			if string(s) != step {
				return nil
			}
			return strike(fault)
		}
	}
	if title := os.Getenv("VXTEST_STALE"); title != "" {
		p.News = func(_ *state.Dir, at *state.Project) func(*wake.Wake) (string, error) {
			return func(w *wake.Wake) (string, error) {
				if w.Title == title {
					return "old in " + filepath.Base(at.Root), nil
				}
				return "", nil
			}
		}
	}
	if soldier := os.Getenv("VXTEST_SOLDIER"); soldier != "" {
		p.Soldier = func(_ *state.Project, pane, socket string) bool { return pane+" "+socket == soldier }
	}
	if watched := os.Getenv("VXTEST_WATCHED"); watched != "" {
		p.Watched = func(_ *state.Project, client proc.ID) bool { return fmt.Sprint(client.PID) == watched }
	}
	if path := os.Getenv("VXTEST_OUTLIVED"); path != "" {
		p.Outlived = func(_ *state.Dir, at *state.Project, r awaiter.Record) error {
			return os.WriteFile(path, fmt.Appendf(nil, "%s %s %s %s", r.Harness, r.Session, r.Pane, r.Socket), 0o600)
		}
	}
	if path := os.Getenv("VXTEST_SENTINEL"); path != "" {
		p.SentinelLock = func(*state.Dir) string { return path }
		p.Sentinel = func(*state.Dir) error { return askFor(path) }
	}
	if file := os.Getenv("VXTEST_CLOCK"); file != "" {
		off := func() time.Duration {
			text, _ := os.ReadFile(file)
			d, _ := time.ParseDuration(string(text))
			return d
		}
		p.Clock = func() time.Duration { return proc.SinceBoot() + off() }
		p.Awake = func() time.Duration { return proc.Awake() + off() }
	}
	return p
}

// askFor makes a file next to the sentinel's lock if nobody holds that.
func askFor(lockFile string) error {
	l, err := lock.Try(lockFile)
	if errors.Is(err, lock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(l.Unlock(), os.WriteFile(lockFile+".asked", nil, 0o600))
}

func strike(fault string) error {
	name, arg, _ := strings.Cut(fault, ":")
	switch name {
	case "panic":
		panic("a panic that the test wants")
	case "fatal": // not a panic: nothing recovers from it
		var mu sync.Mutex
		mu.Unlock()
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	case "signals":
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
			syscall.Kill(os.Getpid(), sig)
		}
		time.Sleep(100 * time.Millisecond) // what does not end it now does not end it later
	case "enospc":
		return unix.ENOSPC
	case "wait": // says so by making a file, and goes on when the file is gone
		os.WriteFile(arg, nil, 0o600)
		for {
			if _, err := os.Lstat(arg); err != nil {
				return nil
			}
			time.Sleep(5 * time.Millisecond)
		}
	default:
		panic("no such fault: " + fault)
	}
	return nil
}

// A spec is what a client of its own process is to run.
type spec struct {
	Command []string
	Input   string // what the hook gets on stdin
	Count   int
}

// playClient runs hooks as the client does, prints their pids, then how each ended, and lives until its stdin ends.
func playClient() {
	var s spec
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	signal.Ignore(unix.SIGPIPE)
	os.Unsetenv("VXTEST_ROLE")
	ends := make(chan result)
	for range s.Count {
		h, err := startHook(hookCommand(s.Command...), s.Input)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(h.cmd.Process.Pid)
		go func() { ends <- h.wait() }()
	}
	go func() {
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for r := range ends {
		json.NewEncoder(os.Stdout).Encode(r)
	}
}

// playDeaf registers for VXTEST_PROJECT and the client in VXTEST_CLIENT, and then hears nothing but SIGTERM.
func playDeaf() {
	dir, err := state.Open()
	if err != nil {
		panic(err)
	}
	root := os.Getenv("VXTEST_PROJECT")
	r := awaiter.Record{Process: proc.Self(), Project: root, Harness: "claude"}
	json.Unmarshal([]byte(os.Getenv("VXTEST_CLIENT")), &r.Client)
	if _, err := awaiter.Register(dir, dir.Project(root), r); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for {
		time.Sleep(time.Hour)
	}
}

func hookCommand(args ...string) *exec.Cmd { return exec.Command(args[0], args[1:]...) }
