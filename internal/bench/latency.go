//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"vx/internal/state"
	"vx/internal/wake"
)

// put puts a wake and returns when its file was renamed into the queue.
func put(p *state.Project, title string) (at time.Time, err error) {
	q := wake.Open(p)
	q.Before = func(s wake.Step) error {
		if s == wake.Staged {
			at = time.Now()
		}
		return nil
	}
	_, err = q.Put(context.Background(), wake.Wake{Title: title})
	return at, err
}

// one measures one await: from the rename of a wake to the first byte on its stderr.
func (b *bench) one(p *state.Project, title string) (time.Duration, error) {
	return b.heardOf(p, title, func() (time.Time, error) { return put(p, title) })
}

// polled measures awaits whose bell is not rung: a file is dropped, and the poll finds it.
func (b *bench) polled(n int) ([]time.Duration, error) {
	var projects []*state.Project
	for i := range n {
		p, err := b.project(fmt.Sprintf("polled-%d", i), "always")
		if err != nil {
			return nil, err
		}
		if err := wake.Open(p).Ensure(); err != nil {
			return nil, err
		}
		projects = append(projects, p)
	}
	all, err := b.awaits(projects)
	if err != nil {
		return nil, err
	}
	defer endAll(all)
	dropped := map[string]time.Time{}
	for i, p := range projects {
		// Spread over one interval of the poll, at no moment that has to do with its own.
		time.Sleep(rand.N(10 * time.Second / time.Duration(n)))
		title := fmt.Sprintf("polled %d.", i)
		temp := filepath.Join(p.Root, "wake")
		if err := os.WriteFile(temp, fmt.Appendf(nil, `{"title":%q}`, title), 0o600); err != nil {
			return nil, err
		}
		dropped[title] = time.Now()
		if err := os.Rename(temp, filepath.Join(wake.Open(p).Dir(), "polled.json")); err != nil {
			return nil, err
		}
	}
	var took []time.Duration
	for _, a := range all {
		s := <-a.text
		for title, at := range dropped {
			if strings.Contains(s.text, title) {
				took = append(took, s.at.Sub(at))
			}
		}
	}
	if len(took) != n {
		return nil, fmt.Errorf("%d of %d polls delivered", len(took), n)
	}
	return took, nil
}

// latency measures one await, with the state on the disk and, where there is one, on a file system in memory: the
// difference is the disk's, which has the note of whom a wake goes to before the first byte is printed.
func (b *bench) latency() error {
	polled, err := b.polled(b.pick(100, 20))
	if err != nil {
		return err
	}
	disk, err := b.sync()
	if err != nil {
		return err
	}
	err = b.oneAwait(fmt.Sprintf("on this disk (a sync: p99 %s, p50 %s)", show(quantile(disk, 0.99)), show(median(disk))), polled)
	if memory, merr := os.MkdirTemp("/dev/shm", "vx-bench-"); merr == nil && err == nil {
		defer os.RemoveAll(memory)
		err = b.elsewhere(memory, func() error { return b.oneAwait("in memory", polled) })
	}
	return err
}

// elsewhere does something with the state in another directory.
func (b *bench) elsewhere(path string, do func() error) (err error) {
	was, dir := os.Getenv("VEXILLUM_HOME"), b.dir
	defer func() {
		b.stopSentinel()
		b.dir = dir
		err = errors.Join(err, os.Setenv("VEXILLUM_HOME", was))
	}()
	if err := os.Setenv("VEXILLUM_HOME", filepath.Join(path, "state")); err != nil {
		return err
	}
	if b.dir, err = state.Open(); err != nil {
		return err
	}
	return do()
}

func (b *bench) oneAwait(where string, polled []time.Duration) error {
	var rung []time.Duration
	for round := range 4 {
		took, err := b.rung(fmt.Sprintf("rung-%d-%d", len(b.rows), round), b.pick(100, 15))
		if err != nil {
			return err
		}
		rung = append(rung, took...)
	}
	p99, poll := quantile(rung, 0.99), quantile(polled, 0.99)
	b.add(atMost("latency",
		fmt.Sprintf("rename of a wake to bytes on stderr, one await at rest, the state %s: p99 %s, p50 %s", where, show(p99), show(median(rung))),
		fmt.Sprintf("the poll every 5 s alone: p99 %s, p50 %s", show(poll), show(median(polled))),
		ratio(p99, poll), 1./500, 1./5000))
	return nil
}

// rung measures awaits that have waited for long enough to rest, each in a project of its own, one after the other.
func (b *bench) rung(name string, n int) ([]time.Duration, error) {
	var projects []*state.Project
	for i := range n {
		p, err := b.project(fmt.Sprintf("%s-%d", name, i), "always")
		if err != nil {
			return nil, err
		}
		projects = append(projects, p)
	}
	all, err := b.awaits(projects)
	if err != nil {
		return nil, err
	}
	defer endAll(all)
	if err := resting(all); err != nil {
		return nil, err
	}
	var took []time.Duration
	for i, a := range all {
		title := fmt.Sprintf("news %d.", i)
		at, err := put(a.project, title)
		if err != nil {
			return nil, err
		}
		s, err := a.hear(title)
		if err != nil {
			return nil, err
		}
		took = append(took, s.Sub(at))
	}
	return took, nil
}

// sync is how long this disk takes to sync a small new file.
func (b *bench) sync() ([]time.Duration, error) {
	var took []time.Duration
	for i := range 200 {
		f, err := os.Create(filepath.Join(b.scratch, fmt.Sprintf("sync-%d", i)))
		if err != nil {
			return nil, err
		}
		if _, err := f.WriteString("{}\n"); err != nil {
			return nil, err
		}
		began := time.Now()
		err = f.Sync()
		took = append(took, time.Since(began))
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}

// burst measures a crowd of awaits in one project, and as many wakes at once.
func (b *bench) burst() error {
	p, err := b.project("burst", "always")
	if err != nil {
		return err
	}
	n := b.pick(200, 50)
	var single []time.Duration
	for i := range b.pick(60, 20) {
		d, err := b.one(p, fmt.Sprintf("alone %d.", i))
		if err != nil {
			return err
		}
		single = append(single, d)
	}
	crowd := make([]*state.Project, n)
	for i := range crowd {
		crowd[i] = p
	}
	all, err := b.awaits(crowd)
	if err != nil {
		return err
	}
	defer endAll(all)
	renamed := map[string]time.Time{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for producer := range 4 {
		wg.Go(func() {
			for i := producer; i < n; i += 4 {
				title := fmt.Sprintf("burst %d.", i)
				at, perr := put(p, title)
				mu.Lock()
				if renamed[title] = at; perr != nil {
					err = perr
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err != nil {
		return err
	}
	took, awaits := b.hear(all, renamed)
	if len(took) != n {
		return fmt.Errorf("%d of %d wakes came out within half a minute", len(took), n)
	}
	alone, p50 := median(single), median(took)
	b.add(atMost("burst",
		fmt.Sprintf("the same, %d awaits in one project, %d wakes in a burst: p50 %s, p99 %s, by %d of them", n, n, show(p50), show(quantile(took, 0.99)), awaits),
		"one await, one wake: p50 "+show(alone), ratio(p50, alone), 10, 5))
	return nil
}

// hear collects how long each wake took, and how many awaits spoke.
func (b *bench) hear(all []*awaiting, renamed map[string]time.Time) (took []time.Duration, awaits int) {
	heard := make(chan said)
	stop := time.After(30 * time.Second)
	done := make(chan bool)
	defer close(done)
	for _, a := range all {
		go func() {
			select {
			case s := <-a.text:
				select {
				case heard <- s:
				case <-done:
				}
			case <-done:
			}
		}()
	}
	for len(took) < len(renamed) {
		select {
		case s := <-heard:
			awaits++
			for line := range strings.Lines(s.text) {
				_, title, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if at, ok := renamed[title]; ok {
					took = append(took, s.at.Sub(at))
				}
			}
		case <-stop:
			return took, awaits
		}
	}
	return took, awaits
}
