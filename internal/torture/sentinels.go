//go:build !windows

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/sentinel"
	"vx/internal/state"
	"vx/internal/wake"
)

// The fourth part: the sentinel itself, as a process that watches soldiers in a herdr, is killed again and again while
// they work, half of the time at a step of a transition.

// sentinelSteps are the steps of a transition that a sentinel is killed at. Folding is left to the part before: here the
// commander is told of one thing before the next happens.
var sentinelSteps = slices.DeleteFunc(slices.Clone(turning), func(s wake.Step) bool { return s == wake.Folding })

const (
	garrisons   = 4 // sentinels at a time, each with a herdr and soldiers of its own
	garrison    = 6 // soldiers
	lifetime    = 700 * time.Millisecond
	longestLife = 3500 * time.Millisecond // also of one that is to die at a step that it does not come to
	// longLived is how many sentinels it takes until one lives that long whatever happens. What has to last for a while, as
	// that nothing is heard of a soldier, each of them measures anew.
	longLived = 8
	siege     = 2 * killTime
)

// sentinelMain is the sentinel.
func sentinelMain(o order, steps io.Writer) error {
	dir, err := state.OpenAt(o.Root)
	if err != nil {
		return err
	}
	dying := o.dying(steps)
	atomicfile.Before = func(step, path string) error {
		if filepath.Base(filepath.Dir(path)) != "tasks" {
			return nil
		}
		return dying(wake.Step(saving + step))
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return sentinel.Run(context.Background(), sentinel.Config{
		Dir: dir, Log: log, Over: func() string { return "" }, Speed: haste, Before: dying,
	})
}

// assassin counts the sentinels that were killed.
type assassin struct {
	plan
	random, each int
	deadline     time.Time

	mu        sync.Mutex
	at        map[wake.Step]int
	anyMoment int
}

// enough reports whether it has been enough, or no time is left.
func (a *assassin) enough() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().After(a.deadline) || a.at[a.rarest()] >= a.each && a.anyMoment >= a.random
}

func (a *assassin) rarest() wake.Step {
	return slices.MinFunc(sentinelSteps, func(x, y wake.Step) int { return a.at[x] - a.at[y] })
}

// aim chooses how the next one is to die.
func (a *assassin) aim(rnd *rand.Rand) order {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := order{Task: asSentinel, After: longestLife}
	if step := a.rarest(); a.at[step] < a.each && (rnd.IntN(2) == 0 || a.anyMoment >= a.random) {
		o.Die, o.Nth = step, 1+rnd.IntN(2)
		return o
	}
	o.After = min(longestLife, 1+time.Duration(rnd.ExpFloat64()*float64(lifetime)))
	return o
}

func (a *assassin) note(o order, e ending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case o.Die != "" && e.Killed && e.Took < longestLife:
		a.at[o.Die]++
	case e.Killed:
		a.anyMoment++
	}
	if a.verbose {
		fmt.Printf("  sentinel die=%s after=%v took=%v killed=%v %v\n", o.Die, o.After, e.Took, e.Killed, e.Steps)
	}
}

// sentinels reports whether of everything that soldiers did the commander was told once, whenever the sentinel was killed.
func sentinels(p plan, scratch string, out io.Writer) bool {
	a := &assassin{plan: p, random: fullRandom, each: fullTurning, deadline: time.Now().Add(siege), at: map[wake.Step]int{}}
	if p.short {
		a.random, a.each = a.random/shortness, a.each/shortness
	}
	fmt.Fprintf(out, "sentinels: %d kills at each of %d steps, and %d at random moments; %d at a time, %d soldiers each\n",
		a.each, len(sentinelSteps), a.random, garrisons, garrison)
	start := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var wrong []string
	told, worst := map[string]int{}, map[string]delay{}
	for i := range garrisons {
		wg.Go(func() {
			b, err := newBarracks(scratch, fmt.Sprintf("garrison-%d", i), garrison)
			defer b.end()
			if err == nil {
				b.enough = a.enough
				b.underFire(a, p.seed+uint64(i))
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				wrong = append(wrong, err.Error())
			}
			wrong = append(wrong, b.wrong...)
			for label, n := range b.turns {
				told[label] += n
			}
			for label, d := range b.worst {
				if d.took > worst[label].took {
					worst[label] = d
				}
			}
		})
	}
	wg.Wait()
	for _, s := range sentinelSteps {
		fmt.Fprintf(out, "  %-14s %5d\n", s, a.at[s])
		if a.at[s] < a.each {
			wrong = append(wrong, fmt.Sprintf("step %s: hit %d times, want %d", s, a.at[s], a.each))
		}
	}
	fmt.Fprintf(out, "  %-14s %5d\n  told: %v; %.0f s\n", "any moment", a.anyMoment, told, time.Since(start).Seconds())
	latest(out, worst) // without a bound: of who was killed on the way, the next begins anew
	if a.anyMoment < a.random {
		wrong = append(wrong, fmt.Sprintf("killed at %d random moments, want %d", a.anyMoment, a.random))
	}
	printWrong(out, wrong)
	return len(wrong) == 0
}

// underFire has the soldiers serve while their sentinel is killed, and its next one too.
func (b *barracks) underFire(a *assassin, seed uint64) {
	served := make(chan bool)
	go func() { b.serve(seed); close(served) }()
	rnd := rand.New(rand.NewPCG(seed, 2000))
	for n := 1; ; n++ {
		o := order{Task: asSentinel, After: longestLife}
		if n%longLived != 0 {
			o = a.aim(rnd)
		}
		o.Root = filepath.Join(b.home, "state")
		e := perform(o)
		if !e.Killed || e.Trouble != "" || e.Stderr != "" {
			b.complain("sentinel: status %d %s %.1000s", e.Status, e.Trouble, e.Stderr)
		}
		select {
		case <-served:
			return
		default:
			a.note(o, e)
		}
	}
}

// serve has all soldiers serve until it has been enough, and the commander listen.
func (b *barracks) serve(seed uint64) {
	var work, others sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	others.Go(func() {
		for ctx.Err() == nil {
			drain(b.queue, b.hear, b.complain)
			time.Sleep(10 * time.Millisecond)
		}
	})
	for i, s := range b.soldiers {
		work.Go(func() {
			if err := s.serve(rand.New(rand.NewPCG(seed, uint64(i)))); err != nil {
				b.complain("%v", err)
			}
		})
	}
	work.Wait()
	cancel()
	others.Wait()
	// What is told too much may come late.
	time.Sleep(quick(20 * time.Second))
	drain(b.queue, b.hear, b.complain)
}
