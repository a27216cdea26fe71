//go:build !windows

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The time of the sentinels goes faster than real, and what they do on the way does not: they run git, and they sync. On a
// machine that has other things to do as well that takes longer still. How much longer is measured while it happens.

const (
	// work is how much of real time an end is given for that, on the machine at its best.
	work = 250 * time.Millisecond
	// rest is between two rounds of the probe.
	rest = 50 * time.Millisecond
)

// machine is what a probe has found of the machine: the probe does again and again what a sentinel does on the way to an end.
type machine struct {
	mu     sync.Mutex
	rounds []round // in their order
	least  time.Duration
	began  time.Time // of the round that goes on
}

type round struct {
	ended time.Time
	took  time.Duration
}

// probe measures until ctx ends, with a file in dir.
func (m *machine) probe(ctx context.Context, dir string) error {
	for ctx.Err() == nil {
		m.mu.Lock()
		m.began = time.Now()
		m.mu.Unlock()
		if err := sample(filepath.Join(dir, "probe")); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		m.note(time.Now())
		time.Sleep(rest)
	}
	return nil
}

// sample is a bit of a sentinel's work: a process of git's, and a synced file.
func sample(path string) error {
	if out, err := exec.Command("git", "--version").CombinedOutput(); err != nil {
		return fmt.Errorf("git: %w: %s", err, out)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 1024)); err != nil {
		return err
	}
	return f.Sync()
}

func (m *machine) note(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	took := now.Sub(m.began)
	m.rounds = append(m.rounds, round{now, took})
	if m.least == 0 || took < m.least {
		m.least = took
	}
	m.began = time.Time{}
}

// slack is what an end is given beyond its bound that happened then and was told now: as much more than at its best as the
// probe has taken in the meantime, on average.
func (m *machine) slack(from, now time.Time) time.Duration {
	return time.Duration(float64(work) * m.slower(from, now))
}

// slower is how much longer than at its best the probe took: 1 for a machine with nothing else to do.
func (m *machine) slower(from, now time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum time.Duration
	n := 0
	for _, r := range slices.Backward(m.rounds) {
		if r.ended.Before(from) {
			break
		}
		sum += r.took
		n++
	}
	if on := now.Sub(m.began); !m.began.IsZero() && on > m.least {
		sum += on
		n++
	}
	if n == 0 || m.least == 0 {
		return 1
	}
	return float64(sum) / float64(n) / float64(m.least)
}
