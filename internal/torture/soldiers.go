//go:build !windows

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/state"
	tasks "vx/internal/task"
	"vx/internal/wake"
)

const (
	// haste is how much faster than real the time of the sentinels and their herdrs goes.
	haste = 20
	// overdue is when what was to be told and was not counts as lost, in real time.
	overdue = time.Minute
)

// quick is a duration of a sentinel's time in real time.
func quick(d time.Duration) time.Duration { return d / haste }

// barracks is a machine whose soldiers are scripts in a fake herdr. The one who plays them knows what each of their turns
// comes to, and with that what the commander is to be told: this, once, and nothing else.
type barracks struct {
	home     string
	herdr    *herdrtest.Server
	queue    *wake.Queue
	tasks    *tasks.Store
	soldiers []*soldier
	enough   func() bool // no turn is begun any more

	acting sync.RWMutex // held for writing by who changes what the soldiers are about to do

	mu       sync.Mutex
	wrong    []string
	cleanups []func()
	turns    map[string]int // by their ends
	lifted   time.Time      // when the herdr was in order again
	after    string         // what it had
	worst    map[string]delay
	machine  *machine        // nil where nothing has a bound
	seen     map[string]bool // wakes
}

// delay is how late something was told, and what it was given.
type delay struct {
	took, slack time.Duration // in real time
	after       string
}

// show writes a delay in a sentinel's time.
func (d delay) show(label string) string {
	bound, ok := bounds[label]
	if d.slack == 0 || !ok {
		return fmt.Sprintf("    %-24s %3.0f s", label, (d.took * haste).Seconds())
	}
	return fmt.Sprintf("    %-24s %3.0f s, of %.0f s and %.0f s for git and the disk as they were; after: %s",
		label, (d.took * haste).Seconds(), bound.Seconds(), (d.slack * haste).Seconds(), d.after)
}

// late is how much more it took than it was given.
func (d delay) late(label string) time.Duration { return d.took - quick(bounds[label]) - d.slack }

// soldier is one of them, and what the commander is to hear of it next.
type soldier struct {
	*barracks
	name string
	dir  string
	id   string
	pane *herdrtest.Pane
	turn int

	// Under the barracks' lock.
	expect   []string
	since    time.Time // when the first of those happened
	at       doing
	cut      bool // its agent was taken away in the middle of its work
	homeless bool // its pane has no agent any more
}

// doing is what a soldier does, as far as it is seen.
type doing int

const (
	resting doing = iota
	starting
	working
)

// The fake herdr wants a test to complain to.

func (b *barracks) Helper() {}

func (b *barracks) Errorf(format string, args ...any) { b.complain(format, args...) }

func (b *barracks) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (b *barracks) Cleanup(f func()) { b.cleanups = append(b.cleanups, f) }

func (b *barracks) complain(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

func (b *barracks) end() {
	for i := len(b.cleanups) - 1; i >= 0; i-- {
		b.cleanups[i]()
	}
}

func newBarracks(scratch, name string, soldiers int) (*barracks, error) {
	b := &barracks{
		home: filepath.Join(scratch, name), turns: map[string]int{}, worst: map[string]delay{}, seen: map[string]bool{},
	}
	dir, err := state.OpenAt(filepath.Join(b.home, "state"))
	if err != nil {
		return b, err
	}
	p := dir.Project(filepath.Join(b.home, "project"))
	b.queue, b.tasks = wake.Open(p), tasks.Open(p)
	if err := b.queue.Ensure(); err != nil {
		return b, err
	}
	// Agents move on their own, between two looks of a sentinel that is slowed down by everything else.
	b.herdr = herdrtest.New(b, herdrtest.Options{Speed: haste, ReadGrace: 5 * time.Second})
	for i := range soldiers {
		s := &soldier{barracks: b, name: fmt.Sprintf("s%d", i)}
		s.dir = filepath.Join(b.home, s.name)
		if err := s.enlist(i%2 == 0); err != nil {
			return b, err
		}
		b.soldiers = append(b.soldiers, s)
	}
	return b, nil
}

// enlist makes the soldier's repository and its task: a mission ends with a commit, a scout with a report.
func (s *soldier) enlist(mission bool) error {
	t := tasks.Task{Kind: wake.KindScout, Agent: "pi", Title: s.name, Prompt: "work", Dir: s.dir, ReportPath: filepath.Join(s.dir, "report")}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if mission {
		t.Kind, t.Dir, t.ReportPath = wake.KindMission, "", ""
		t.Camp = &tasks.Camp{Path: s.dir, Branch: "work", Base: "main"}
		for _, args := range [][]string{{"init", "-q", "-b", "main"}, commit, {"checkout", "-q", "-b", "work"}} {
			if err := s.git(args...); err != nil {
				return err
			}
		}
	}
	s.settleIn()
	added, err := s.tasks.Add(context.Background(), t)
	s.id = added.ID
	return err
}

var commit = []string{"-c", "user.name=v", "-c", "user.email=v@x", "commit", "-q", "--allow-empty", "-m", "work"}

func (s *soldier) git(args ...string) error {
	out, err := exec.Command("git", append([]string{"-C", s.dir}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %q: %w: %s", args, err, out)
	}
	return nil
}

// settleIn gives the soldier a pane with an agent.
func (s *soldier) settleIn() {
	s.turn++
	s.pane = s.herdr.Agent(herdrtest.Agent{Kind: "pi", Name: fmt.Sprintf("%s-%d", s.name, s.turn), CWD: s.dir, Screen: screen("Hello.")})
}

// screen is what the pane of a Pi at rest shows.
func screen(says string) string {
	rule := strings.Repeat("─", 80)
	return " " + says + "\n\n" + rule + "\n\n" + rule + "\n~/proj (main)\n↑1.2k ↓300 $0.01 2.1%/200k (auto)                                       mock-1\n"
}

// hear compares what the commander is told with what happened.
func (b *barracks) hear(w wake.Wake) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[w.ID] {
		return fmt.Errorf("told twice: %s of %s", w.ID, w.Title)
	}
	b.seen[w.ID] = true
	label := w.OldStatus + " -> " + w.NewStatus
	if w.Dialog != "" {
		label = "dialog"
	}
	for _, s := range b.soldiers {
		if s.id != w.TaskID {
			continue
		}
		if len(s.expect) == 0 || s.expect[0] != label {
			return fmt.Errorf("invented: %q of %s in its turn %d, of which %q was to be told: %s", label, s.name, s.turn, s.expect, w.Detail)
		}
		s.expect = s.expect[1:]
		b.turns[label]++
		return b.inTime(label, s)
	}
	return fmt.Errorf("invented: %q of a task %s that nobody has", label, w.TaskID)
}

// inTime compares when the commander is told with when it happened, or when the herdr was in order again. The lock is held.
func (b *barracks) inTime(label string, s *soldier) error {
	from, now := s.since, time.Now()
	if b.lifted.After(from) {
		from = b.lifted
	}
	d := delay{took: max(0, now.Sub(from)), after: b.after}
	if b.machine != nil {
		d.slack = b.machine.slack(from, now)
	}
	if worst, ok := b.worst[label]; !ok || d.late(label) > worst.late(label) {
		b.worst[label] = d
	}
	if b.machine != nil && d.late(label) > 0 {
		return fmt.Errorf("late: %s of %s in its turn %d", strings.Join(strings.Fields(d.show(label)), " "), s.name, s.turn)
	}
	return nil
}

// latest says what was told the latest of each kind of end.
func latest(out io.Writer, worst map[string]delay) {
	fmt.Fprintln(out, "  at the latest, in a sentinel's time:")
	for _, label := range slices.Sorted(maps.Keys(worst)) {
		fmt.Fprintln(out, worst[label].show(label))
	}
}

// pending reports whether anything is still to be told of the soldier.
func (s *soldier) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.expect) > 0
}

// happens says what is to be told from now on.
func (s *soldier) happens(label string, at doing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expect, s.since, s.at = []string{label}, time.Now(), at
}

// told waits until all was told, and then holds the record to it.
func (s *soldier) told(want tasks.Status) error {
	for end := time.Now().Add(overdue); s.pending(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) && s.calm() > overdue {
			t, err := s.tasks.Get(s.id)
			return fmt.Errorf("lost: %q of %s in its turn %d; its record says %s (%v)", s.expect, s.name, s.turn, t.Status, err)
		}
	}
	s.mu.Lock()
	if s.cut {
		want = tasks.Interrupted
	}
	s.mu.Unlock()
	t, err := s.tasks.Get(s.id)
	if err == nil && t.Status != want {
		err = fmt.Errorf("%s is %s after its turn %d, want %s", s.name, t.Status, s.turn, want)
	}
	return err
}

// calm is how long the herdr has been in order.
func (b *barracks) calm() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.lifted)
}

// serve has the soldier do turn after turn until it has been enough.
func (s *soldier) serve(rnd *rand.Rand) error {
	for !s.enough() {
		if err := s.begin(rnd); err != nil {
			return err
		}
		time.Sleep(quick(rand.N(16 * time.Second)))
		is, err := s.finish(rnd)
		if err == nil {
			err = s.told(is)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin gives the soldier work, as a prompt does, or has it begin by itself, as a person at its pane does.
func (s *soldier) begin(rnd *rand.Rand) error {
	byItself, err := s.take(rnd)
	if err != nil || !byItself {
		return err
	}
	for end := time.Now().Add(overdue); ; time.Sleep(2 * time.Millisecond) {
		t, err := s.tasks.Get(s.id)
		if err != nil {
			return err
		}
		if t.Status == tasks.Running {
			s.does(working)
			return nil
		}
		if time.Now().After(end) && s.calm() > overdue {
			return fmt.Errorf("lost: %s works again, and is %s", s.name, t.Status)
		}
	}
}

// take has the soldier begin, with an agent if it has none.
func (s *soldier) take(rnd *rand.Rand) (byItself bool, err error) {
	s.acting.RLock()
	defer s.acting.RUnlock()
	t, err := s.tasks.Get(s.id)
	if err != nil {
		return false, err
	}
	if t.Status == tasks.Interrupted || s.homeless {
		s.settleIn()
	} else {
		s.turn++
		byItself = (t.Status == tasks.Done || t.Status == tasks.Unconfirmed) && rnd.IntN(4) == 0
	}
	if s.does(starting); !byItself {
		if err := s.prompt(t); err != nil {
			return false, err
		}
		s.does(working)
	}
	s.pane.Show("") // nothing of the turn before
	s.pane.Working()
	return byItself, nil
}

func (s *soldier) does(what doing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.homeless = what, false
}

// prompt makes the task one that runs, as `vx prompt` does.
func (s *soldier) prompt(t tasks.Task) error {
	head := ""
	if t.Camp != nil {
		data, err := os.ReadFile(filepath.Join(s.dir, ".git", "refs", "heads", "work"))
		if err != nil {
			return err
		}
		head = strings.TrimSpace(string(data))
	}
	_, err := s.tasks.Update(context.Background(), s.id, t.Status, func(t *tasks.Task) error {
		t.Status, t.PromptedAt, t.Head = tasks.Running, time.Now().UTC(), head
		t.Note, t.Output, t.Evidence = "", "", nil
		t.AgentNotFoundSince, t.IdleUnconfirmedSince, t.BackgroundSince, t.DialogSince = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		t.Herdr = &tasks.Herdr{Socket: s.herdr.Socket, Pane: s.pane.ID, Agent: s.pane.Name(), StateChangeSeq: s.pane.Seq()}
		if t.Decision != nil {
			t.Decision.Answer, t.Decision.AnsweredAt = "yes", t.PromptedAt
		}
		return nil
	})
	return err
}

// finish ends the turn in one of the ways that turns end in, and returns what the task is to be.
func (s *soldier) finish(rnd *rand.Rand) (tasks.Status, error) {
	how := rnd.IntN(20)
	if how < 3 {
		if is, err := s.dialog(); is != "" || err != nil {
			return is, err
		}
	}
	s.acting.RLock()
	defer s.acting.RUnlock()
	switch {
	case s.wasCut():
		return tasks.Interrupted, nil
	case how < 12:
		if err := s.deliver(); err != nil {
			return "", err
		}
		s.happens("running -> done", resting)
		s.rest("Done.")
		return tasks.Done, nil
	case how < 15:
		s.happens("running -> blocked", resting)
		s.rest(fmt.Sprintf("needs-decision: may I do number %d of my ideas?", s.turn))
		return tasks.Blocked, nil
	case how < 18:
		s.happens("running -> interrupted", resting)
		s.pane.Gone()
		return tasks.Interrupted, nil
	}
	s.happens("running -> unconfirmed", resting)
	s.rest("That is all.")
	return tasks.Unconfirmed, nil
}

// dialog has the soldier wait for a person, and go on. A status is returned when its agent was taken away meanwhile.
func (s *soldier) dialog() (tasks.Status, error) {
	s.acting.RLock()
	if s.wasCut() {
		s.acting.RUnlock()
		return tasks.Interrupted, nil
	}
	s.happens("dialog", working)
	s.pane.Blocked()
	s.acting.RUnlock()
	if err := s.told(tasks.Running); err != nil {
		return "", err
	}
	s.acting.RLock()
	defer s.acting.RUnlock()
	if s.wasCut() {
		return tasks.Interrupted, nil
	}
	s.pane.Working()
	return "", nil
}

// wasCut reports, once, that the soldier's agent was taken away.
func (s *soldier) wasCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.cut
	if s.cut = false; was {
		s.at = resting
	}
	return was
}

// deliver is the work that a turn is to come to.
func (s *soldier) deliver() error {
	if _, err := os.Stat(filepath.Join(s.dir, ".git")); err == nil {
		return s.git(commit...)
	}
	return os.WriteFile(filepath.Join(s.dir, "report"), fmt.Appendf(nil, "report %d\n", s.turn), 0o600)
}

func (s *soldier) rest(says string) {
	s.pane.Show(screen(says))
	s.pane.Idle()
}
