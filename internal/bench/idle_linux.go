package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vx/internal/awaiter"
	"vx/internal/state"
)

// idle measures a crowd of awaits that have nothing to do.
func (b *bench) idle() error {
	n := b.pick(200, 40)
	window := time.Minute
	if b.short {
		window = 15 * time.Second
	}
	node, err := b.nodes(n)
	if err != nil {
		return err
	}
	var projects []*state.Project
	for i := range n {
		p, err := b.project(fmt.Sprintf("idle-%d", i), "always")
		if err != nil {
			return err
		}
		projects = append(projects, p)
	}
	all, err := b.awaits(projects)
	if err != nil {
		return err
	}
	defer endAll(all)
	pids, err := b.pids()
	if err != nil || len(pids) != n {
		return fmt.Errorf("%d of %d awaits live: %w", len(pids), n, err)
	}
	loops, err := b.startLoops(n)
	if err != nil {
		return err
	}
	if err := resting(all); err != nil {
		return errors.Join(err, loops.stop())
	}
	before, err := onCPU(pids)
	if err != nil {
		return errors.Join(err, loops.stop())
	}
	time.Sleep(window)
	after, err := onCPU(pids)
	if err != nil {
		return errors.Join(err, loops.stop())
	}
	memory, err := pss(pids)
	if err := errors.Join(err, loops.stop()); err != nil {
		return err
	}
	minute := func(d time.Duration, over time.Duration) time.Duration {
		return time.Duration(float64(d) / float64(n) * float64(time.Minute) / float64(over))
	}
	awaits, bash := minute(after-before, window), minute(loops.used, loops.lived)
	b.add(row{"idle",
		fmt.Sprintf("%d idle awaits: %s PSS", n, mebi(memory)),
		fmt.Sprintf("%d node processes that poll: %s PSS", n, mebi(node)),
		float64(memory) / float64(node), 1. / 8, "≤ 130 MiB for 200", memory*200/int64(n) <= 130<<20})
	b.add(atMost("idle",
		fmt.Sprintf("CPU of an idle await: %s a minute", show(awaits)),
		"bash -c 'while sleep 5; do :; done': "+show(bash), ratio(awaits, bash), 1./5, 1./10))
	return nil
}

// resting waits until all awaits rest: each has then started itself anew, with one argument more.
func resting(all []*awaiting) error {
	deadline := time.Now().Add(time.Minute)
	for _, a := range all {
		for {
			args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", a.cmd.Process.Pid))
			if err != nil {
				return err
			}
			if strings.Count(string(args), "\x00") == 4 {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("await %d does not rest after a minute", a.cmd.Process.Pid)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

func mebi(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// nodes is the memory of processes that poll a directory with node.
func (b *bench) nodes(n int) (int64, error) {
	if b.node == "" {
		return 0, errors.New("node is not on PATH")
	}
	script := fmt.Sprintf(`const fs = require("fs"); setInterval(() => fs.readdirSync(%q), 5000); console.log("up")`, b.scratch)
	var all []*exec.Cmd
	defer func() {
		for _, cmd := range all {
			cmd.Process.Kill()
		}
		for _, cmd := range all {
			cmd.Wait()
		}
	}()
	var pids []int
	for range n {
		cmd := exec.Command(b.node, "-e", script)
		out, err := cmd.StdoutPipe()
		if err != nil {
			return 0, err
		}
		if err := b.start(cmd); err != nil {
			return 0, err
		}
		all, pids = append(all, cmd), append(pids, cmd.Process.Pid)
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			return 0, fmt.Errorf("node: %w", err)
		}
	}
	time.Sleep(2 * time.Second)
	return pss(pids)
}

// pss is the memory of processes, what they share counted once.
func pss(pids []int) (total int64, err error) {
	for _, pid := range pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
				kib, err := strconv.ParseInt(f[1], 10, 64)
				if err != nil {
					return 0, err
				}
				total += kib << 10
			}
		}
	}
	return total, nil
}

// onCPU is how long processes ran, all their threads together, to the nanosecond.
func onCPU(pids []int) (total time.Duration, err error) {
	for _, pid := range pids {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return 0, err
		}
		for _, task := range tasks {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
			if err != nil {
				return 0, err
			}
			first, _, _ := strings.Cut(string(data), " ")
			ns, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(ns)
		}
	}
	return total, nil
}

// loops are shells that sleep.
type loops struct {
	all   []*exec.Cmd
	began time.Time
	used  time.Duration // by all, without their starts
	lived time.Duration // on average
}

func (b *bench) startLoops(n int) (*loops, error) {
	l := &loops{began: time.Now()}
	for range n {
		cmd := exec.Command("bash", "-c", "while sleep 5; do :; done")
		// A group of its own, so that its sleep ends with it.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := b.start(cmd); err != nil {
			return nil, errors.Join(err, l.stop())
		}
		l.all = append(l.all, cmd)
	}
	return l, nil
}

// stop ends the shells and counts what they used.
func (l *loops) stop() error {
	l.lived = time.Since(l.began)
	for _, cmd := range l.all {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	for _, cmd := range l.all {
		cmd.Wait()
		l.used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	var bare []time.Duration
	for range 9 {
		cmd := exec.Command("bash", "-c", ":; :")
		if err := cmd.Run(); err != nil {
			return err
		}
		bare = append(bare, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	l.used -= median(bare) * time.Duration(len(l.all))
	return nil
}

// pids are the processes of all live awaits.
func (b *bench) pids() ([]int, error) {
	entries, err := awaiter.List(b.dir, nil)
	var pids []int
	for _, e := range entries {
		pids = append(pids, e.Process.PID)
	}
	return pids, err
}

// start starts a process that is to end with this program.
func (b *bench) start(cmd *exec.Cmd) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := cmd.Start()
	if err == nil {
		b.started = append(b.started, cmd.Process)
	}
	return err
}
