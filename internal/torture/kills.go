//go:build !windows

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"vx/internal/state"
	"vx/internal/wake"
)

// killTime bounds the killing; a full run takes a minute or two.
const killTime = 4 * time.Minute

type role string

const (
	consumer role = "consumers"
	producer role = "producers"
)

// steps are where each role's processes are killed.
var steps = map[role][]wake.Step{
	consumer: {wake.Making, wake.Made, wake.Claimed, wake.Noting, wake.Noted, wake.Printing, wake.Printed, wake.Emitted, wake.Releasing, wake.Settling},
	producer: {wake.Staging, wake.Staged, wake.Put, wake.Settling},
}

// counted are the consumers' steps that a run must have hit often enough to mean anything.
var counted = []wake.Step{wake.Made, wake.Claimed, wake.Noted, wake.Printing, wake.Printed, wake.Emitted, wake.Settling}

// tally counts the kills of all projects.
type tally struct {
	plan
	deadline time.Time

	mu     sync.Mutex
	at     map[role]map[wake.Step]int // killed at a step
	behind map[role]map[wake.Step]int // killed at a random moment: the last step before
	all    map[role]int
	usual  map[role]time.Duration // how long a child takes that is not killed
}

func newTally(p plan) *tally {
	t := &tally{
		plan: p, deadline: time.Now().Add(killTime), all: map[role]int{},
		at: map[role]map[wake.Step]int{}, behind: map[role]map[wake.Step]int{}, usual: map[role]time.Duration{},
	}
	for _, r := range []role{consumer, producer} {
		t.at[r], t.behind[r], t.usual[r] = map[wake.Step]int{}, map[wake.Step]int{}, 10*time.Millisecond
	}
	return t
}

// over reports whether there are kills enough, or no time is left.
func (t *tally) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().After(t.deadline) || t.all[consumer] >= t.consumers && t.all[producer] >= t.producers
}

// aim chooses how a child of a role is to die: at a step, the rarer one of two; or after a while; or not.
func (t *tally) aim(r role, rnd *rand.Rand) (at wake.Step, after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := rnd.IntN(100)
	switch {
	case r == producer && t.all[r] >= t.producers, n >= 85:
		return "", 0
	case n >= 55:
		return "", time.Duration(rnd.Int64N(int64(t.usual[r]*5/4) + 1))
	}
	all := steps[r]
	at = all[rnd.IntN(len(all))]
	if other := all[rnd.IntN(len(all))]; t.at[r][other] < t.at[r][at] {
		at = other
	}
	return at, 0
}

// note enters a child's end.
func (t *tally) note(r role, o order, e ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Killed && o.Die != "":
		t.at[r][o.Die]++
	case e.Killed && o.Reader == chokes:
		t.at[r][e.last()]++
	case e.Killed:
		t.behind[r][e.last()]++
	case e.Status == 2 || e.came(wake.Put):
		t.usual[r] = (7*t.usual[r] + e.Took) / 8
	}
	if e.Killed {
		t.all[r]++
	}
	if t.verbose {
		fmt.Printf("  %s %s die=%s reader=%d after=%v status=%d killed=%v %v %s\n", r, o.Task, o.Die, o.Reader, o.After, e.Status, e.Killed, e.Steps, e.Trouble)
	}
}

// kills is the first part of the torture: it reports whether every wake came to its end.
func kills(p plan, scratch string) bool {
	fmt.Printf("kills: %d consumers and %d producers, in %d projects\n", p.consumers, p.producers, p.projects)
	dir, err := state.Open()
	if err != nil {
		fmt.Println("  WRONG:", err)
		return false
	}
	t := newTally(p)
	start := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := map[bool]outcome{} // by whether there is a transcript
	var wrong []string
	for n := range p.projects {
		wg.Go(func() {
			p, err := newProject(t, dir, scratch, n)
			if err != nil {
				p = &project{n: n, ledger: newLedger()}
				p.ledger.complain("%v", err)
			} else {
				o := p.run(t.seed + uint64(n))
				mu.Lock()
				defer mu.Unlock()
				sum[p.dir != ""] = sum[p.dir != ""].plus(o)
			}
			for _, line := range p.ledger.wrong {
				wrong = append(wrong, fmt.Sprintf("project %d: %s", n, line))
			}
		})
	}
	wg.Wait()
	t.print()
	fmt.Printf("  with a transcript:    %s\n", sum[true])
	fmt.Printf("  without a transcript: %s, %d again after a kill between print and emission\n", sum[false], sum[false].excused)
	wrong = append(wrong, t.missed()...)
	printWrong(os.Stdout, wrong)
	fmt.Printf("  %.0f s\n", time.Since(start).Seconds())
	return len(wrong) == 0
}

// missed are the reasons why the kills were not enough.
func (t *tally) missed() (wrong []string) {
	if t.all[consumer] < t.consumers || t.all[producer] < t.producers {
		wrong = append(wrong, fmt.Sprintf("time: %v were too short", killTime))
	}
	for _, s := range counted {
		if n := t.at[consumer][s]; n < t.perStep {
			wrong = append(wrong, fmt.Sprintf("step %s: hit %d times, want %d", s, n, t.perStep))
		}
	}
	return wrong
}

func (t *tally) print() {
	fmt.Printf("  %-10s %20s %20s\n  %-10s %10s%10s %10s%10s\n", "", "consumers killed", "producers killed", "step", "at it", "behind it", "at it", "behind it")
	for _, s := range slices.Concat([]wake.Step{"started"}, steps[producer][:3], steps[consumer]) {
		fmt.Printf("  %-10s %10d%10d %10d%10d\n", s, t.at[consumer][s], t.behind[consumer][s], t.at[producer][s], t.behind[producer][s])
	}
	fmt.Printf("  %-10s %20d %20d\n", "all", t.all[consumer], t.all[producer])
}
