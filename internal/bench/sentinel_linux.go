package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"vx/internal/state"
)

// sweepTime is from one sweep of a sentinel to the next.
const sweepTime = 5 * time.Second

// running is a sentinel, whose log is kept.
type running struct {
	cmd *exec.Cmd
	log *os.File
}

// runSentinel starts one in the foreground.
func (b *bench) runSentinel(env []string) (*running, error) {
	log, err := os.CreateTemp(b.scratch, "sentinel-log-")
	if err != nil {
		return nil, err
	}
	r := &running{exec.Command(b.vx, "sentinel"), log}
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = env, log, log
	return r, b.start(r.cmd)
}

func (r *running) pid() []int { return []int{r.cmd.Process.Pid} }

// end asks it to end, and to have nothing to complain of.
func (r *running) end() error {
	defer r.log.Close()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("sentinel: %w", err)
	}
	if err := r.cmd.Wait(); err != nil {
		said, _ := os.ReadFile(r.log.Name())
		return fmt.Errorf("sentinel: %w: %.500s", err, said)
	}
	return nil
}

// sweep measures a sentinel that watches a thousand soldiers at work, against one that watches ten.
func (b *bench) sweep() error {
	sizes := [2]struct{ projects, tasks int }{{1, 10}, {50, 1000}}
	var cpu [2]time.Duration
	var asked [2]int
	sweeps := b.pick(24, 6)
	var all [2]*watched
	var sentinels [2]*running
	var err error
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i, size := range sizes {
		w, werr := b.watch(size.projects, size.tasks)
		if w != nil {
			defer w.end()
		}
		if all[i] = w; werr != nil {
			return werr
		}
	}
	for i, w := range all {
		go w.spin(ctx)
		if sentinels[i], err = b.runSentinel(w.environment()); err != nil {
			return err
		}
	}
	// Both run over the same time, so that what else the machine does meets both.
	time.Sleep(2*sweepTime + sweepTime/2) // until what was just made is old enough to be trusted
	var before [2]time.Duration
	var first [2]int
	for i, w := range all {
		if err := w.lately(); err != nil {
			return err
		}
		first[i], _ = w.requests()
		if before[i], err = onCPU(sentinels[i].pid()); err != nil {
			return err
		}
	}
	time.Sleep(time.Duration(sweeps) * sweepTime)
	for i, w := range all {
		after, cerr := onCPU(sentinels[i].pid())
		if cerr != nil {
			return cerr
		}
		n, _ := w.requests()
		cpu[i], asked[i] = (after-before[i])/time.Duration(sweeps), n-first[i]
		if asked[i] < sweeps-1 {
			err = errors.Join(err, fmt.Errorf("the sentinel of %d tasks swept %d times only", sizes[i].tasks, asked[i]))
		}
		err = errors.Join(err, sentinels[i].end(), w.end())
	}
	if err != nil {
		return err
	}
	b.add(row{"sweep", fmt.Sprintf("requests to a herdr with %d tasks of %d projects, in %d sweeps: %d", sizes[1].tasks, sizes[1].projects, sweeps, asked[1]),
		"one a sweep", float64(asked[1]) / float64(sweeps), 1, "1", true})
	b.add(atMost("sweep",
		fmt.Sprintf("CPU of a sweep, %d tasks in %d projects: %s", sizes[1].tasks, sizes[1].projects, show(cpu[1])),
		fmt.Sprintf("%d tasks in 1 project: %s", sizes[0].tasks, show(cpu[0])), ratio(cpu[1], cpu[0]), 10, 10))
	return nil
}

// lately waits for the middle between two sweeps: so many times later as many sweeps were done.
func (w *watched) lately() error {
	_, last := w.requests()
	for end := time.Now().Add(4 * sweepTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, now := w.requests(); now > last {
			time.Sleep(sweepTime / 3)
			return nil
		}
	}
	return errors.New("the sentinel does not ask its herdr")
}

// sentinel measures one that has nothing to watch.
func (b *bench) sentinel() (err error) {
	window := time.Duration(b.pick(24, 6)) * sweepTime
	empty, err := b.waiting()
	if err != nil {
		return err
	}
	home := filepath.Join(b.scratch, "nothing-to-watch")
	if _, err := state.OpenAt(home); err != nil {
		return err
	}
	s, err := b.runSentinel(append(os.Environ(), "VEXILLUM_HOME="+home))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	time.Sleep(sweepTime + sweepTime/2)
	loops, err := b.startLoops(1)
	if err != nil {
		return err
	}
	before, err := onCPU(s.pid())
	if err != nil {
		return errors.Join(err, loops.stop())
	}
	began := time.Now()
	time.Sleep(window)
	after, err := onCPU(s.pid())
	took := time.Since(began)
	if err := errors.Join(err, loops.stop()); err != nil {
		return err
	}
	memory, err := pss(s.pid())
	if err != nil {
		return err
	}
	minute := func(d, over time.Duration) time.Duration { return time.Duration(float64(d) / over.Minutes()) }
	own, bash := minute(after-before, took), minute(loops.used, loops.lived)
	b.add(atMost("sentinel", fmt.Sprintf("CPU of an idle sentinel: %s a minute", show(own)),
		"bash -c 'while sleep 5; do :; done': "+show(bash), ratio(own, bash), 1, 1))
	b.add(atMost("sentinel", fmt.Sprintf("PSS of an idle sentinel: %s", mebi(memory)),
		"an empty Go program: "+mebi(empty), float64(memory)/float64(empty), 10, 10))
	return nil
}

// waiting is the memory of a Go program that does nothing until its input ends.
func (b *bench) waiting() (int64, error) {
	source, program := filepath.Join(b.scratch, "waiting.go"), filepath.Join(b.scratch, "waiting")
	text := "package main\n\nimport \"syscall\"\n\nfunc main() { syscall.Read(0, make([]byte, 1)) }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return 0, err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w: %s", err, out)
	}
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	if err := b.start(cmd); err != nil {
		return 0, err
	}
	defer cmd.Wait()
	defer in.Close()
	time.Sleep(2 * time.Second)
	return pss([]int{cmd.Process.Pid})
}
