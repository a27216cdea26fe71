//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/sentinel"
)

// The fifth part: a herdr that things happen to while its soldiers work. A sentinel must take nothing that it sees then for
// an end, and when it is over it must find out, in the time that it is given, what has ended meanwhile.

// troubles are what can happen to a herdr. Each returns when it is over.
var troubles = []struct {
	name string
	do   func(*barracks)
}{
	{"restarted", func(b *barracks) { b.herdr.Stop(); b.lasts(2, 30); b.herdr.Start() }},
	{"killed", func(b *barracks) { b.herdr.Stale(); b.lasts(2, 30); b.herdr.Start() }},
	{"upgraded", func(b *barracks) { b.upgrade(22) }},
	{"downgraded", func(b *barracks) { b.upgrade(20) }},
	{"frozen for 60 s", func(b *barracks) { b.herdr.Freeze(); time.Sleep(quick(time.Minute)); b.herdr.Thaw() }},
	{"garbage", func(b *barracks) { b.answers(herdrtest.Fault{Line: []byte("\x00\xff%% not json\n")}) }},
	{"half a line", func(b *barracks) { b.answers(herdrtest.Fault{Half: true}) }},
	{"no answer", func(b *barracks) {
		b.answers(herdrtest.Fault{Hang: true})
		time.Sleep(hung)
	}},
	{"no agents", func(b *barracks) {
		b.answers(herdrtest.Fault{Method: "agent.list", Line: []byte(`{"id":"agent.list","result":{"type":"agent_list"}}`)})
	}},
	{"unknown statuses", func(b *barracks) { b.answers(herdrtest.Fault{Status: "levitating"}) }},
	{"errors", func(b *barracks) {
		b.answers(herdrtest.Fault{Error: &herdrtest.Error{Code: "server_unavailable", Message: "shutting down"}})
	}},
	{"restarted without its agents", (*barracks).reborn},
}

// lasts lets so much of the sentinel's time go by, in seconds.
func (b *barracks) lasts(least, most int) {
	time.Sleep(quick(time.Duration(least)*time.Second + rand.N(time.Duration(most-least)*time.Second)))
}

func (b *barracks) upgrade(protocol int) {
	b.herdr.SetProfile(protocol)
	b.herdr.Handoff(8 * time.Second)
	time.Sleep(quick(8 * time.Second))
}

func (b *barracks) answers(f herdrtest.Fault) {
	lift := b.herdr.Inject(f)
	defer lift()
	b.lasts(5, 60)
}

// reborn restarts the herdr with shells where its agents were: whoever worked was interrupted.
func (b *barracks) reborn() {
	b.acting.Lock()
	defer b.acting.Unlock()
	for end := time.Now().Add(overdue); b.waiting(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return // whoever waits for that complains
		}
	}
	b.mu.Lock()
	for _, s := range b.soldiers {
		if s.at == working {
			s.expect, s.since, s.cut = []string{"running -> interrupted"}, time.Now(), true
		}
		s.homeless = true
	}
	b.mu.Unlock()
	b.herdr.Restart(herdrtest.Shells)
}

// waiting reports whether anything is still to be told, or to be seen.
func (b *barracks) waiting() bool {
	return slices.ContainsFunc(b.soldiers, func(s *soldier) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(s.expect) > 0 || s.at == starting
	})
}

// bounds are when what happened is to be told at the latest, of the sentinel's time, once the herdr is in order: after
// 15 s in which nothing is decided, 10 s until one counts as gone or 30 s until one counts as unconfirmed, and some sweeps
// and readings of panes. Beyond that there is only what git and the disk take.
var bounds = map[string]time.Duration{
	"dialog": 45 * time.Second, "running -> done": 45 * time.Second, "running -> blocked": 45 * time.Second,
	"running -> interrupted": 60 * time.Second, "running -> unconfirmed": 80 * time.Second,
}

// hung is how long a sentinel waits, in real time, for the answer to a request that hangs: for that long the herdr is
// not in order for it yet.
const hung = 3 * time.Second

const (
	fullTroubles = 72
	troubled     = 12 // soldiers
)

// herdrs reports whether of everything that soldiers did the commander was told once, whatever happened to their herdr.
func herdrs(p plan, scratch string, out io.Writer) bool {
	n := fullTroubles
	if p.short {
		n = len(troubles)
	}
	fmt.Fprintf(out, "herdrs: %d troubles of a herdr with %d soldiers\n", n, troubled)
	start := time.Now()
	b, err := newBarracks(scratch, "troubled", troubled)
	defer b.end()
	happened := map[string]int{}
	b.machine = new(machine)
	ctx, cancel := context.WithCancel(context.Background())
	probed := make(chan error, 1)
	go func() { probed <- b.machine.probe(ctx, b.home) }()
	if err == nil {
		happened, err = b.inTrouble(p, n)
	}
	cancel()
	err = errors.Join(err, <-probed)
	if err != nil {
		b.complain("%v", err)
	}
	fmt.Fprintf(out, "  happened: %v\n  told: %v\n", happened, b.turns)
	latest(out, b.worst)
	fmt.Fprintf(out, "  beyond its bound an end is given %.0f s for git and the disk, and as much more as a probe of them took longer than at\n"+
		"  its best: %.1f times over the whole run; %.0f s\n", (work * haste).Seconds(), b.machine.slower(start, time.Now()), time.Since(start).Seconds())
	printWrong(out, b.wrong)
	return len(b.wrong) == 0
}

// inTrouble has soldiers serve under a sentinel, and one trouble after the other happen to their herdr.
func (b *barracks) inTrouble(p plan, n int) (happened map[string]int, err error) {
	happened = map[string]int{}
	var over atomic.Bool
	b.enough = over.Load
	ctx, cancel := context.WithCancel(context.Background())
	ended, served := make(chan error, 1), make(chan bool)
	go func() {
		ended <- sentinel.Run(ctx, sentinel.Config{
			Dir: b.queue.Project.State(), Log: slog.New(slog.DiscardHandler), Over: func() string { return "" }, Speed: haste,
		})
	}()
	go func() { b.serve(p.seed); close(served) }()
	for i := range n {
		t := troubles[i%len(troubles)]
		b.mu.Lock()
		b.lifted = time.Now().Add(overdue) // not yet
		b.mu.Unlock()
		t.do(b)
		happened[t.name]++
		b.mu.Lock()
		b.lifted, b.after = time.Now(), t.name
		wrong := len(b.wrong)
		b.mu.Unlock()
		if wrong > 0 {
			break // whoever waits for what does not come holds up the rest
		}
		if p.verbose {
			fmt.Println("  over:", t.name)
		}
		b.recovers()
	}
	over.Store(true)
	<-served
	cancel()
	return happened, <-ended
}

// recovers waits until all that has happened until now was told, and a moment longer.
func (b *barracks) recovers() {
	before := time.Now()
	old := func(s *soldier) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.expect) > 0 && s.since.Before(before)
	}
	for end := before.Add(overdue); slices.ContainsFunc(b.soldiers, old) && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
	b.lasts(0, 20)
}
