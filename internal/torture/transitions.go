//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/state"
	tasks "vx/internal/task"
	"vx/internal/wake"
)

// The third part: processes that end a task's turn, which changes its record and tells its commander, are killed. A
// turn is numbered: the number is in the record, and in the wake as a field that folding keeps.

// saving names the steps of writing a task's record.
const saving = "task: "

// turning are the steps of a transition, all of which are killed at.
var turning = []wake.Step{
	wake.Asiding, wake.Staging, wake.Staged, wake.SetAside, saving + "create", saving + "write", saving + "sync", saving + "rename",
	wake.Entering, wake.Folding, wake.Put,
}

const (
	fullRandom  = 500 // kills at a random moment
	fullTurning = 25  // kills at each step
	turners     = 4   // processes at a time, each with a task of its own
	pause       = 200 * time.Millisecond
)

// turns is what is known of the turns of all tasks.
type turns struct {
	plan
	dir      *state.Dir
	queues   []*wake.Queue
	deadline time.Time
	random   int // kills that are wanted
	each     int

	serial atomic.Int64

	mu        sync.Mutex
	happened  map[int64]bool // by number: whether the record says so
	told      map[int64]int
	at        map[wake.Step]int
	anyMoment int
	folded    int // turns that were told together with a later one
	usual     time.Duration
	wrong     []string
}

func (t *turns) complain(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}

// transitions reports whether each turn that came to its end was told once, and no other.
func transitions(p plan, scratch string) bool {
	t := &turns{
		plan: p, random: fullRandom, each: fullTurning, deadline: time.Now().Add(killTime),
		happened: map[int64]bool{}, told: map[int64]int{}, at: map[wake.Step]int{}, usual: 10 * time.Millisecond,
	}
	if p.short {
		t.random, t.each = t.random/shortness, t.each/shortness
	}
	fmt.Printf("transitions: %d kills at each of %d steps, and %d at random moments\n", t.each, len(turning), t.random)
	start := time.Now()
	if err := t.run(scratch); err != nil {
		t.complain("%v", err)
	}
	t.judge()
	for _, s := range turning {
		fmt.Printf("  %-14s %5d\n", s, t.at[s])
	}
	happened := 0
	for _, yes := range t.happened {
		if yes {
			happened++
		}
	}
	fmt.Printf("  %-14s %5d\n  %d turns, of which %d happened before their process died; %d were told, %d of them folded into a later one; %.0f s\n",
		"any moment", t.anyMoment, len(t.happened), happened, len(t.told), t.folded, time.Since(start).Seconds())
	printWrong(os.Stdout, t.wrong)
	return len(t.wrong) == 0
}

// run has turns ended and killed until there are kills enough, then recovers and drains what is left. The tasks live in
// one project; the commanders of half of them wait in another.
func (t *turns) run(scratch string) (err error) {
	if t.dir, err = state.Open(); err != nil {
		return err
	}
	for _, name := range []string{"soldiers", "commanders"} {
		root := filepath.Join(scratch, name)
		if err := os.Mkdir(root, 0o700); err != nil {
			return err
		}
		if root, err = filepath.EvalSymlinks(root); err != nil {
			return err
		}
		t.queues = append(t.queues, wake.Open(t.dir.Project(root)))
	}
	var work, others sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, q := range t.queues {
		others.Go(func() {
			for ctx.Err() == nil {
				t.consume(q)
				time.Sleep(rand.N(pause)) // so that some are folded and some are not
			}
		})
		others.Go(func() { // as a sentinel does, while transitions are on their way
			for ctx.Err() == nil {
				t.recover(q)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for i := range turners {
		work.Go(func() {
			rnd := rand.New(rand.NewPCG(t.seed, uint64(1000+i)))
			if err := t.turn(t.queues[i%2], rnd); err != nil {
				t.complain("%v", err)
			}
		})
	}
	work.Wait()
	cancel()
	others.Wait()
	for _, q := range t.queues {
		t.recover(q)
		t.consume(q)
	}
	return nil
}

func (t *turns) recover(q *wake.Queue) {
	if err := tasks.Recover(context.Background(), q, t.dir); err != nil {
		t.complain("%v", err)
	}
}

// turn ends one task's turns, one after the other.
func (t *turns) turn(q *wake.Queue, rnd *rand.Rand) error {
	ctx := context.Background()
	s := tasks.Open(t.queues[0].Project)
	at, err := s.Add(ctx, tasks.Task{Kind: wake.KindMission, Status: tasks.Running})
	for ; err == nil; at, err = s.Get(at.ID) {
		if at.Status != tasks.Running {
			at, err = s.Update(ctx, at.ID, at.Status, func(t *tasks.Task) error { t.Status = tasks.Running; return nil })
			if err != nil {
				return err
			}
		}
		o, more := t.aim(rnd)
		if !more {
			return nil
		}
		n := t.serial.Add(1)
		o.Task, o.Root, o.Queue = asTurn, s.Project.Root, q.Project.Root
		ends := []tasks.Status{tasks.Done, tasks.Blocked, tasks.Unconfirmed, tasks.Interrupted}
		o.Wake = wake.Wake{TaskID: at.ID, NewStatus: string(ends[rnd.IntN(len(ends))]), Title: strconv.FormatInt(n, 10)}
		e := perform(o)
		is, err := s.Get(at.ID)
		if err != nil {
			return err
		}
		t.note(n, o, e, is.Note == o.Wake.Title)
	}
	return err
}

// aim chooses how the next process is to die: at the rarest step, at a random moment, or not; more is false when it has
// been enough.
func (t *turns) aim(rnd *rand.Rand) (o order, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rarest := slices.MinFunc(turning, func(a, b wake.Step) int { return t.at[a] - t.at[b] })
	enough := t.at[rarest] >= t.each && t.anyMoment >= t.random
	if enough || time.Now().After(t.deadline) || len(t.wrong) > 20 {
		return o, false
	}
	steps := t.at[rarest] < t.each
	switch choice := rnd.IntN(10); {
	case choice == 0:
	case steps && (choice < 4 || t.anyMoment >= t.random):
		// Folding stages a second time.
		o.Die, o.Nth = rarest, 1+rnd.IntN(2)
	default:
		o.After = time.Duration(rnd.Int64N(int64(t.usual*5/4) + 1))
	}
	return o, true
}

// note enters a process's end.
func (t *turns) note(n int64, o order, e ending, happened bool) {
	if !e.Killed && e.Status != 0 {
		t.complain("turn %d: status %d: %s", n, e.Status, e.Trouble)
	}
	if !e.Killed && !happened {
		t.complain("turn %d: its process ended well, and the record does not say so", n)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.happened[n] = happened
	switch {
	case e.Killed && o.Die != "":
		t.at[o.Die]++
	case e.Killed:
		t.anyMoment++
	case o.Die == "":
		t.usual = (7*t.usual + e.Took) / 8
	}
	if t.verbose {
		fmt.Printf("  turn %d die=%s after=%v killed=%v happened=%v %v\n", n, o.Die, o.After, e.Killed, happened, e.Steps)
	}
}

// consume tells what waits.
func (t *turns) consume(q *wake.Queue) { drain(q, t.tell, t.complain) }

// drain delivers what waits.
func drain(q *wake.Queue, tell func(wake.Wake) error, complain func(string, ...any)) {
	for {
		d, err := q.Claim(context.Background())
		if err != nil {
			complain("%v", err)
			return
		}
		if d == nil {
			return
		}
		if err := errors.Join(d.Note(wake.Recipient{}), d.Emit(), d.Close()); err != nil {
			complain("%v", err)
		}
		for _, w := range d.Wakes {
			if err := tell(w); err != nil {
				complain("%v", err)
			}
		}
		if err := q.Settle(context.Background()); err != nil {
			complain("%v", err)
		}
	}
}

// tell enters the turns that a wake tells of.
func (t *turns) tell(w wake.Wake) error {
	data, err := json.Marshal(w)
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found := 0
	for name := range fields {
		if number, ok := strings.CutPrefix(name, turnField); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return err
			}
			t.told[n]++
			found++
		}
	}
	if found == 0 {
		return fmt.Errorf("invented: %s", data)
	}
	t.folded += found - 1
	return nil
}

// judge compares what the records say with what was told.
func (t *turns) judge() {
	for n, happened := range t.happened {
		switch told := t.told[n]; {
		case happened && told == 0:
			t.complain("lost: turn %d", n)
		case !happened && told > 0:
			t.complain("invented: turn %d", n)
		case told > 1:
			t.complain("told %d times: turn %d", told, n)
		}
	}
	for n := range t.told {
		if _, ok := t.happened[n]; !ok {
			t.complain("invented: turn %d", n)
		}
	}
	for _, s := range turning {
		if t.at[s] < t.each {
			t.complain("step %s: hit %d times, want %d", s, t.at[s], t.each)
		}
	}
	if t.anyMoment < t.random {
		t.complain("killed at %d random moments, want %d", t.anyMoment, t.random)
	}
}

// turnField begins the name of the field that a turn's wake has its number in.
const turnField = "turn_"

// turnMain is a sentinel that starts anew and sees a turn end, in a process of its own.
func turnMain(dir *state.Dir, o order, steps io.Writer) error {
	dying := o.dying(steps)
	q := wake.Open(dir.Project(o.Queue))
	q.Before = dying
	atomicfile.Before = func(step, path string) error {
		if filepath.Base(filepath.Dir(path)) != "tasks" {
			return nil
		}
		return dying(wake.Step(saving + step))
	}
	ctx := context.Background()
	if err := tasks.Recover(ctx, q, dir); err != nil {
		return err
	}
	change := func(t *tasks.Task) (w wake.Wake, err error) {
		t.Status, t.Note = tasks.Status(o.Wake.NewStatus), o.Wake.Title
		err = json.Unmarshal([]byte(`{"`+turnField+o.Wake.Title+`":true}`), &w)
		return w, err
	}
	_, err := tasks.Open(dir.Project(o.Root)).Transition(ctx, o.Wake.TaskID, tasks.Running, q, change)
	return err
}
