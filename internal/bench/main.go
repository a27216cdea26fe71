//go:build !windows

// Command bench measures what vx promises of speed and memory:
//
//	go run ./internal/bench [-short] [-only NAME]
//
// A number alone says nothing about another machine, so each is a ratio to a yardstick that is measured in the same run,
// turn and turn about; medians where nothing else is said. It ends with 1 when a must is missed. The state is in a scratch
// directory in $TMPDIR, on whose disk the latencies depend: a wake is synced before it counts as sent.
//
// It starts its own processes and ends them. A crash leaves the scratch directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"vx/internal/daemon"
	"vx/internal/state"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	os.Exit(run(os.Args[1:]))
}

// bench is what every measurement works with.
type bench struct {
	short   bool
	scratch string
	vx      string // built as it is released
	empty   string // an empty Go program, built the same way
	node    string // "" where there is none
	dir     *state.Dir
	rows    []row

	mu      sync.Mutex
	started []*os.Process // that do not end by themselves when this program does
}

// stop ends what was started; what has been waited for is left alone.
func (b *bench) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.started {
		p.Kill()
	}
	b.stopSentinel()
}

// stopSentinel ends the sentinel that the awaits have started; they have ended themselves.
func (b *bench) stopSentinel() {
	if b.dir == nil {
		return
	}
	if _, err := daemon.Stop(context.Background(), b.dir); err != nil && !errors.Is(err, daemon.ErrNone) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// row is one line of the result.
type row struct {
	name      string
	measured  string
	yardstick string
	ratio     float64
	must      float64 // at most this
	should    string
	good      bool // the should is met
}

func (r row) kept() bool { return r.ratio <= r.must }

func (r row) verdict() string {
	switch {
	case !r.kept():
		return "MISSED"
	case !r.good:
		return "ok, but not what it should be"
	}
	return "ok"
}

// String is the row on four lines: a row is too long for one.
func (r row) String() string {
	return fmt.Sprintf("%-9s %s\n          against %s\n          %s of it; must be ≤ %s, should be %s\n          %s\n",
		r.name, r.measured, r.yardstick, times(r.ratio), times(r.must), r.should, r.verdict())
}

// atMost is a row whose should is a ratio as well.
func atMost(name, measured, yardstick string, ratio, must, should float64) row {
	return row{name, measured, yardstick, ratio, must, "≤ " + times(should), ratio <= should}
}

// times writes a ratio: 1.5×, 1/500.
func times(ratio float64) string {
	if ratio < 0.5 && ratio > 0 {
		return fmt.Sprintf("1/%.0f", 1/ratio)
	}
	return fmt.Sprintf("%.3g×", ratio)
}

// measurements are all there are, by their names for -only.
var measurements = []struct {
	name string
	run  func(*bench) error
}{
	{"exit", (*bench).exits},
	{"latency", (*bench).latency},
	{"burst", (*bench).burst},
	{"idle", (*bench).idle},
	{"backlog", (*bench).backlog},
	{"race", (*bench).race},
	{"settings", (*bench).settings},
	{"told", (*bench).told},
	{"sentinel", (*bench).sentinel},
	{"sweep", (*bench).sweep},
}

func run(args []string) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	short := flags.Bool("short", false, "fewer samples, smaller crowds")
	only := flags.String("only", "", "one of the measurements: exit, latency, burst, idle, backlog, race, settings, told, sentinel, sweep")
	if err := flags.Parse(args); err != nil {
		return 80
	}
	scratch, err := os.MkdirTemp("", "vx-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	defer os.RemoveAll(scratch)
	b := &bench{short: *short}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-interrupted
		b.stop()
		os.RemoveAll(scratch)
		os.Exit(1)
	}()
	defer b.stopSentinel()
	if err := b.prepare(scratch); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	status, done := 0, 0
	for _, m := range measurements {
		if *only != "" && *only != m.name {
			continue
		}
		done++
		first := len(b.rows)
		if err := m.run(b); err != nil {
			fmt.Printf("%-9s FAILED: %v\n", m.name, err)
			status = 1
		}
		for _, r := range b.rows[first:] {
			fmt.Print(r)
			if !r.kept() {
				status = 1
			}
		}
	}
	if done == 0 {
		fmt.Fprintf(os.Stderr, "bench: no measurement %q\n", *only)
		return 80
	}
	return status
}

// prepare builds the programs and makes the state directory.
func (b *bench) prepare(scratch string) (err error) {
	if b.scratch, err = filepath.EvalSymlinks(scratch); err != nil {
		return err
	}
	b.node, _ = exec.LookPath("node")
	b.vx, b.empty = filepath.Join(b.scratch, "vx"), filepath.Join(b.scratch, "empty")
	source := filepath.Join(b.scratch, "empty.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return err
	}
	for out, pkg := range map[string]string{b.vx: "vx/cmd/vx", b.empty: source} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %s: %w: %s", pkg, err, text)
		}
	}
	// Nothing of the user's is read or written, and nothing of the session that this may run in is believed.
	path := os.Getenv("PATH")
	os.Clearenv()
	for name, value := range map[string]string{
		"PATH": path, "HOME": b.scratch, "TMPDIR": b.scratch, "VEXILLUM_HOME": filepath.Join(b.scratch, "state"), "CLAUDE_CODE_SESSION_ATTENDED": "1",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	b.dir, err = state.Open()
	return err
}

// pick is n, or in a short run the other number.
func (b *bench) pick(n, short int) int {
	if b.short {
		return short
	}
	return n
}

func (b *bench) add(r row) { b.rows = append(b.rows, r) }

// project makes a project, of which await says whether the hook waits there.
func (b *bench) project(name, await string) (*state.Project, error) {
	root := filepath.Join(b.scratch, name)
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	p := b.dir.Project(root)
	return p, errors.Join(p.Ensure(), p.Update(func(c *state.Config) { c.Await = await }))
}

func median(all []time.Duration) time.Duration { return quantile(all, 0.5) }

func quantile(all []time.Duration, q float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// show writes a duration with three digits.
func show(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.3g s", d.Seconds()), ".00")
}
