//go:build !windows

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vx/hook"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// The part "holds": clients that hold what they are given, as extensions of Pi and OpenCode do, are killed, and so are their
// awaits (`vx sentinel await --hold`). A client writes what it shows the model into its session before it says so. vx can
// read Pi's session; OpenCode's it cannot.

// Steps of a client, in the order in which it comes to them.
const (
	woken   wake.Step = "woken"   // it has read the line
	showing wake.Step = "showing" // before the text goes into the session
	shown   wake.Step = "shown"   // it stands there; before the ack
	said    wake.Step = "said"    // the ack is in the pipe

	awaitKilled wake.Step = "await killed" // is reported of the await, by its client
	awaitEnded  wake.Step = "await ended"
)

// holding are the steps that awaits and clients are killed at: from before a claim to after its end.
var holding = []wake.Step{
	wake.Making, wake.Made, wake.Claimed, wake.Noting, wake.Noted, wake.Printing, wake.Printed,
	woken, showing, shown, said, wake.Accepting, wake.Accepted, wake.Emitted, wake.Settling, wake.Releasing,
}

var harnesses = []string{"pi", "opencode"}

const (
	eachHold    = 18 // kills at each step, for each harness
	randomHolds = 30 // kills of awaits at a random moment, for each harness; so many of clients too
	holdHomes   = 2  // projects
	holders     = 2  // clients of each harness in a project
)

// fate is what a client does with a wake.
type fate int

const (
	shows   fate = iota
	hurries      // shows it, and ends the await with SIGTERM while the ack is in the pipe
	nacks
	closes // stdin, without a word
)

// holdTally counts the kills of all projects.
type holdTally struct {
	plan
	deadline     time.Time
	each, random int

	mu              sync.Mutex
	at              map[string]map[wake.Step]int // by harness
	awaits, clients map[string]int               // killed at a random moment
	inHand          int                          // of all kills: between a claim and its end
	lives, told     map[string]int               // clients' lives; texts that were shown
	usual           time.Duration
}

func newHoldTally(p plan) *holdTally {
	h := &holdTally{
		plan: p, deadline: time.Now().Add(killTime), each: eachHold, random: randomHolds,
		at: map[string]map[wake.Step]int{}, awaits: map[string]int{}, clients: map[string]int{},
		lives: map[string]int{}, told: map[string]int{}, usual: 50 * time.Millisecond,
	}
	for _, name := range harnesses {
		h.at[name] = map[wake.Step]int{}
	}
	if p.short {
		h.each, h.random = h.each/shortness, h.random/shortness
	}
	return h
}

// holds reports whether of everything that was put the model was told, and how often.
func holds(p plan, scratch string) bool {
	h := newHoldTally(p)
	fmt.Printf("holds: for each of %v %d kills at each of %d steps, and %d of awaits and %d of clients at random moments\n",
		harnesses, h.each, len(holding), h.random, h.random)
	start := time.Now()
	o, wrong := h.run(scratch)
	h.print(o)
	printWrong(os.Stdout, wrong)
	fmt.Printf("  %.0f s\n", time.Since(start).Seconds())
	return len(wrong) == 0
}

func (h *holdTally) print(o outcome) {
	line := func(what string, count func(harness string) int) int {
		fmt.Printf("  %-22s", what)
		sum := 0
		for _, name := range harnesses {
			fmt.Printf("%10d", count(name))
			sum += count(name)
		}
		fmt.Printf("%10d\n", sum)
		return sum
	}
	fmt.Printf("  %-22s%10s%10s%10s\n", "killed at", harnesses[0], harnesses[1], "both")
	all := 0
	for _, s := range holding {
		all += line(string(s), func(harness string) int { return h.at[harness][s] })
	}
	all += line("any moment: the await", func(harness string) int { return h.awaits[harness] })
	all += line("any moment: the client", func(harness string) int { return h.clients[harness] })
	line("lives of clients", func(harness string) int { return h.lives[harness] })
	line("texts shown", func(harness string) int { return h.told[harness] })
	fmt.Printf("  %d kills, %d of them between a claim and the end of its delivery\n", all, h.inHand)
	fmt.Printf("  %s; %d again by the rule\n", o, o.excused)
	fmt.Println("  the rule: where no session can be read (OpenCode), what was shown comes again if the ack was not noted before the kill")
}

// run has wakes put, taken and shown until there are kills enough, and counts what is left.
func (h *holdTally) run(scratch string) (sum outcome, wrong []string) {
	dir, err := state.Open()
	if err != nil {
		return sum, []string{err.Error()}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for n := range holdHomes {
		wg.Go(func() {
			p, err := newProject(newTally(h.plan), dir, scratch, 100+2*n)
			if err != nil {
				p = &project{ledger: newLedger()}
				p.ledger.complain("%v", err)
			} else {
				h.inProject(p)
			}
			mu.Lock()
			defer mu.Unlock()
			sum = sum.plus(p.ledger.close())
			for _, line := range p.ledger.wrong {
				wrong = append(wrong, fmt.Sprintf("project %d: %s", n, line))
			}
		})
	}
	wg.Wait()
	return sum, append(wrong, h.missed()...)
}

// missed are the reasons why the kills were not enough.
func (h *holdTally) missed() (wrong []string) {
	for _, name := range harnesses {
		for _, s := range holding {
			if n := h.at[name][s]; n < h.each {
				wrong = append(wrong, fmt.Sprintf("%s: step %s: hit %d times, want %d", name, s, n, h.each))
			}
		}
		if a, c := h.awaits[name], h.clients[name]; a < h.random || c < h.random {
			wrong = append(wrong, fmt.Sprintf("%s: %d awaits and %d clients killed at random moments, want %d", name, a, c, h.random))
		}
	}
	return wrong
}

// inProject is the life of one project, in which clients of all harnesses are commanders.
func (h *holdTally) inProject(p *project) {
	var work, others sync.WaitGroup
	var clients []*holdClient
	for i := range holders * len(harnesses) {
		c := &holdClient{
			worker: &worker{project: p, rand: rand.New(rand.NewPCG(h.seed, uint64(3000+100*p.n+i)))},
			count:  h, harness: harnesses[i%len(harnesses)],
		}
		clients = append(clients, c)
		work.Go(func() {
			for c.life(h.aim(c.harness, c.rand)) {
			}
		})
	}
	done := make(chan bool)
	others.Go(func() {
		w := &worker{project: p, rand: rand.New(rand.NewPCG(h.seed, uint64(4000+p.n)))}
		for n := int64(1); ; n++ {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
			w.give(n)
			if n%20 == 0 {
				p.sweep()
			}
		}
	})
	work.Wait()
	close(done)
	others.Wait()
	p.rest(clients)
	p.sweep()
}

// give puts a wake, undisturbed, if there are not enough.
func (w *worker) give(n int64) {
	if waiting, err := w.queue.Count(); err != nil || waiting >= stock {
		return
	}
	wk := w.news(n)
	account := w.ledger.open(wk)
	if _, err := w.queue.Put(context.Background(), wk); err != nil {
		w.ledger.complain("put: %v", err)
		return
	}
	w.ledger.place(account)
}

// rest has what is left told by clients that nobody kills.
func (p *project) rest(clients []*holdClient) {
	for end := time.Now().Add(emptied); ; {
		l, err := p.queue.List(0)
		waiting, countErr := p.queue.Count()
		if err := errors.Join(err, countErr); err != nil {
			p.ledger.complain("list: %v", err)
			return
		}
		if waiting+len(l.Claimed)+len(l.Emitted) == 0 {
			return
		}
		if time.Now().After(end) {
			p.ledger.complain("stuck: %d waiting, %d claimed, %d emitted", waiting, len(l.Claimed), len(l.Emitted))
			return
		}
		clients[0].life(&order{})
	}
}

// aim chooses how a client's next life, or its await's, is to end; nil when it has been enough.
func (h *holdTally) aim(harness string, rnd *rand.Rand) *order {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.at[harness]
	step := slices.MinFunc(holding, func(a, b wake.Step) int { return cmp.Compare(at[a], at[b]) })
	steps, awaits, clients := at[step] < h.each, h.awaits[harness] < h.random, h.clients[harness] < h.random
	if !steps && !awaits && !clients || time.Now().After(h.deadline) {
		return nil
	}
	o := &order{}
	switch n := rnd.IntN(20); {
	case n < 10:
		o.Fate = shows
	case n < 13:
		o.Fate = hurries
	case n < 17:
		o.Fate = nacks
	default:
		o.Fate = closes
	}
	moment := func() time.Duration {
		if rnd.IntN(4) > 0 {
			o.From = wake.Made
		}
		return 1 + time.Duration(rnd.Int64N(int64(h.usual)+1))
	}
	switch n := rnd.IntN(10); {
	case n < 3: // nobody is killed
	case awaits && n < 5:
		o.AwaitAfter = moment()
	case clients && n < 7:
		o.After = moment()
	case steps:
		o.Die, o.Nth = step, 1
		switch step {
		case wake.Releasing:
			o.Fate = nacks + fate(rnd.IntN(2))
		case showing, shown, said, wake.Accepting, wake.Accepted, wake.Emitted, wake.Settling:
			o.Fate = shows + fate(rnd.IntN(2))
		}
	}
	return o
}

// holdClient is a client, life after life.
type holdClient struct {
	*worker
	count   *holdTally
	harness string
	session string // its file
	size    int64  // what of it was read
}

var holdSessions atomic.Int64

// life is one life of the client with one await; false when there is to be none.
func (c *holdClient) life(o *order) bool {
	if o == nil {
		return false
	}
	if c.session == "" || c.rand.IntN(10) == 0 {
		c.session = filepath.Join(c.dir, fmt.Sprintf("%s-%d.jsonl", c.harness, holdSessions.Add(1)))
		c.size = 0
	}
	o.Task, o.Root, o.Harness, o.Session = asHolder, c.queue.Project.Root, c.harness, c.session
	o.Pause = time.Duration(c.rand.IntN(30)) * time.Millisecond
	e := perform(*o)
	told := c.look()
	for _, text := range told {
		c.ledger.tell(text, c.harness == "opencode" && !e.came(wake.Accepted))
	}
	c.judge(*o, e, len(told))
	c.count.note(c.harness, *o, e, len(told))
	return true
}

// look reads what the session has got.
func (c *holdClient) look() (texts []string) {
	f, err := os.Open(c.session)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.NewSectionReader(f, c.size, 1<<30))
	}
	if err != nil {
		c.ledger.complain("session: %v", err)
	}
	c.size += int64(len(data))
	for line := range strings.Lines(string(data)) {
		var row struct {
			Type    string
			Message struct{ Role, Content string }
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			c.ledger.complain("torn: %v in %.200q", err, line)
		}
		if row.Message.Role == "user" {
			texts = append(texts, row.Message.Content)
		}
	}
	return texts
}

// judge checks that what a client said was heard.
func (c *holdClient) judge(o order, e ending, told int) {
	if !e.Killed && (e.Status != 0 || e.Trouble != "") {
		c.ledger.complain("%s: status %d: %s %.300s", c.harness, e.Status, e.Trouble, e.Stderr)
	}
	if told > 1 {
		c.ledger.complain("%s was given %d texts in one life", c.harness, told)
	}
	awaitDied := e.came(awaitKilled) || o.Die != "" && !ofClient(o.Die) && e.came(o.Die) || o.AwaitAfter > 0 && !e.came(awaitEnded)
	if e.came(said) && !awaitDied && !e.came(wake.Accepted) {
		c.ledger.complain("%s: an ack was not heard: %v", c.harness, e.Steps)
	}
}

func ofClient(s wake.Step) bool { return s == woken || s == showing || s == shown || s == said }

// note enters a life's end.
func (h *holdTally) note(harness string, o order, e ending, told int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives[harness]++
	h.told[harness] += told
	killed := true
	switch {
	case o.Die != "" && e.came(o.Die):
		h.at[harness][o.Die]++
	case o.AwaitAfter > 0 && e.came(awaitKilled):
		h.awaits[harness]++
	case o.After > 0 && e.Killed:
		h.clients[harness]++
	default:
		killed = false
		if e.came(wake.Accepted) {
			h.usual = (7*h.usual + e.Took) / 8
		}
	}
	if killed && e.came(wake.Claimed) && (o.Die != "" || !e.came(wake.Settling)) {
		h.inHand++
	}
	if h.verbose {
		fmt.Printf("  %s die=%s after=%v await=%v fate=%d killed=%v told=%d %v %s\n",
			harness, o.Die, o.After, o.AwaitAfter, o.Fate, e.Killed, told, e.Steps, e.Trouble)
	}
}

// awaitMain is an await that holds.
func awaitMain(o order, steps io.Writer) int {
	h := hook.Holder{Harness: o.Harness, Session: filepath.Base(o.Session)}
	if o.Harness == "pi" {
		h.Transcript = o.Session
	}
	die := func() { time.AfterFunc(o.AwaitAfter, func() { unix.Kill(os.Getpid(), unix.SIGKILL) }) }
	if o.AwaitAfter > 0 && o.From == "" {
		die()
	}
	dying := o.dying(steps)
	before := func(s wake.Step) error {
		if o.AwaitAfter > 0 && s == o.From {
			die()
		}
		return dying(s)
	}
	return hook.Program{Before: before, Clock: proc.SinceBoot, Awake: proc.Awake}.Hold(h)
}

// holderMain is a client: one await, and what becomes of the wake that it brings.
func holderMain(o order, steps *os.File) error {
	dying := o.dying(steps)
	own := o
	own.Task, own.After = asHold, 0
	cmd := reexec(own)
	cmd.ExtraFiles = []*os.File{steps}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(stdout)
	bored := time.AfterFunc(idle, func() { stdin.Close() })
	line, err := lines.ReadString('\n')
	// Who has closed stdin has given back what comes after it; what lacks its end was not printed whole.
	if bored.Stop() && err == nil {
		if err := o.take(line, stdin, cmd.Process, dying); err != nil {
			return err
		}
	}
	more, err := io.ReadAll(lines)
	if err != nil {
		return err
	}
	ended := cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		fmt.Fprintln(steps, awaitKilled)
		return nil
	case len(more) > 0:
		return fmt.Errorf("the await printed more: %.200q", more)
	case ended != nil || complaints.Len() > 0:
		return fmt.Errorf("the await ended with %v, stderr %.200q", ended, complaints.String())
	}
	fmt.Fprintln(steps, awaitEnded)
	return nil
}

// take does with a wake what is ordered. An await that is dead does not hear it.
func (o order) take(line string, stdin io.WriteCloser, await *os.Process, dying func(wake.Step) error) error {
	var given struct{ Token, Text string }
	if err := json.Unmarshal([]byte(line), &given); err != nil || !strings.Contains(given.Text, given.Token) {
		return fmt.Errorf("torn: %.200q: %w", line, err)
	}
	dying(woken)
	switch o.Fate {
	case nacks:
		fmt.Fprintf(stdin, "nack %s\n", given.Token)
		return nil
	case closes:
		return stdin.Close()
	}
	time.Sleep(o.Pause)
	dying(showing)
	if err := show(o.Session, given.Text); err != nil {
		return err
	}
	dying(shown)
	if _, err := fmt.Fprintf(stdin, "ack %s\n", given.Token); err == nil {
		dying(said)
	}
	if o.Fate == hurries {
		await.Signal(syscall.SIGTERM)
	}
	return nil
}

// show writes a message of the user into a session, whose file is made with the first.
func show(session, text string) error {
	f, err := os.OpenFile(session, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var rows strings.Builder
	enc := json.NewEncoder(&rows)
	if fi, err := f.Stat(); err == nil && fi.Size() == 0 {
		err = enc.Encode(map[string]any{"type": "session", "version": 3})
		if err != nil {
			return err
		}
	}
	row := map[string]any{"type": "message", "message": map[string]any{"role": "user", "content": text}}
	if err := enc.Encode(row); err != nil {
		return err
	}
	_, err = io.WriteString(f, rows.String())
	return err
}
