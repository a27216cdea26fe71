//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vx/internal/state"
	"vx/internal/wake"
)

const (
	consumers = 3  // of a project, each with a client of its own
	producers = 2  // of a project
	stock     = 10 // wakes that should wait
	missions  = 5  // tasks of a project, whose wakes are folded
	// longTurn is how long a busy client keeps a text in its own queue: longer than the queue waits for a receipt.
	longTurn = 12 * time.Second
	// emptied bounds the time until a project's queue is empty, once nothing is killed any more.
	emptied = 90 * time.Second
)

// project is one project's life: workers put and consume, and are killed; then everything is drained and counted.
type project struct {
	*tally
	n      int
	queue  *wake.Queue
	ledger *ledger
	dir    string // of the client's transcripts; "" where it writes none

	serial atomic.Int64 // of wakes and sessions

	mu   sync.Mutex
	ways [missions]int // each mission's status
}

func newProject(t *tally, dir *state.Dir, scratch string, n int) (*project, error) {
	root := filepath.Join(scratch, fmt.Sprintf("project-%d", n))
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	p := &project{tally: t, n: n, queue: wake.Open(dir.Project(root)), ledger: newLedger()}
	if n%2 == 0 {
		p.dir = filepath.Join(scratch, fmt.Sprintf("transcripts-%d", n))
		if err := os.Mkdir(p.dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := p.queue.Ensure(); err != nil {
		return nil, err
	}
	return p, p.queue.Project.Update(func(c *state.Config) { c.Await = "always" })
}

// run has the project's workers kill and be killed until t has its kills, then drains the queue.
func (p *project) run(seed uint64) outcome {
	var wg sync.WaitGroup
	var clients []*worker
	for i := range consumers + producers {
		w := &worker{project: p, rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		work := w.produce
		if i < consumers {
			work = w.consume
			clients = append(clients, w)
		}
		wg.Go(func() {
			for !p.over() {
				work()
			}
		})
	}
	wg.Go(func() {
		for !p.over() {
			time.Sleep(100 * time.Millisecond)
			p.sweep()
		}
	})
	wg.Wait()
	p.drain(clients)
	return p.ledger.close()
}

// sweep empties .bad, whose bounds are not for a life like this.
func (p *project) sweep() {
	l, err := p.queue.List(1)
	if err != nil {
		p.ledger.complain("list: %v", err)
	}
	for _, bad := range l.Bad {
		p.ledger.keep(bad)
		if err := os.Remove(bad.Path); err != nil {
			p.ledger.complain("sweep: %v", err)
		}
	}
}

// drain consumes undisturbed until the queue is empty.
func (p *project) drain(clients []*worker) {
	defer func() {
		for _, w := range clients {
			if w.client != nil {
				w.client.kill()
			}
		}
		p.sweep()
	}()
	for deadline := time.Now().Add(emptied); ; {
		busy := 0
		for _, w := range clients {
			w.calm = true
			w.turns()
			busy += len(w.later)
		}
		l, err := p.queue.List(0)
		if err != nil {
			p.ledger.complain("list: %v", err)
			return
		}
		waiting, err := p.queue.Count() // also what does not parse
		if err != nil {
			p.ledger.complain("count: %v", err)
			return
		}
		if waiting+len(l.Claimed)+len(l.Emitted)+busy == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.ledger.complain("stuck: %d waiting, %d claimed, %d emitted", waiting, len(l.Claimed), len(l.Emitted))
			return
		}
		clients[0].consume()
	}
}

// worker starts one child after the other. One that starts consumers is their client as well.
type worker struct {
	*project
	rand   *rand.Rand
	client *client
	later  []turn // enqueued by the client, to be shown to the model when their time comes
	calm   bool   // nothing is killed
}

// turn is a text that the client has in its own queue.
type turn struct {
	text string
	due  time.Time
}

// produce puts one wake, if there are not enough.
func (w *worker) produce() {
	if waiting, err := w.queue.Count(); err != nil || waiting >= stock {
		time.Sleep(5 * time.Millisecond)
		return
	}
	n := w.serial.Add(1)
	if w.rand.IntN(10) == 0 {
		w.drop(fmt.Sprintf("hand-%d", n))
		return
	}
	wk := w.news(n)
	if w.rand.IntN(4) == 0 {
		// Others overtake it: what is older is put later.
		time.Sleep(time.Duration(w.rand.IntN(100)) * time.Millisecond)
	}
	account := w.ledger.open(wk)
	o := order{Task: asPut, Root: w.queue.Project.Root, Wake: wk}
	o.Die, o.After = w.aim(producer, w.rand)
	o.Nth = 1
	e := perform(o)
	w.note(producer, o, e)
	if !e.Killed && (e.Status != 0 || e.Trouble != "") {
		w.ledger.complain("producer: status %d: %s %.300s", e.Status, e.Trouble, e.Stderr)
	}
	if e.Status == 0 || e.came(wake.Put) {
		w.ledger.place(account)
	}
}

// news is a wake of one of two sorts: a message, or a mission's next change.
func (w *worker) news(n int64) wake.Wake {
	// What is detected later goes further.
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	wk := wake.Wake{
		ID: wake.NewID(now), Detected: now, Producer: "torture",
		Title:  fmt.Sprintf("%d of project %d ended", n, w.n),
		Detail: strings.Repeat("so it went\n", w.rand.IntN(200)),
	}
	if w.rand.IntN(3) == 0 {
		task := w.rand.IntN(missions)
		wk.Kind, wk.TaskID = wake.KindMission, fmt.Sprintf("m-%d", task)
		wk.Key = wk.TaskID
		wk.OldStatus, wk.NewStatus = fmt.Sprintf("s%d", w.ways[task]), fmt.Sprintf("s%d", w.ways[task]+1)
		w.ways[task]++
	}
	return wk
}

// drop puts a wake as a shell script would.
func (w *worker) drop(name string) {
	wk := wake.Wake{ID: name, Title: "dropped by hand as " + name}
	account := w.ledger.open(wk)
	data, err := json.Marshal(map[string]string{"title": wk.Title})
	temp := filepath.Join(w.queue.Project.Root, name)
	if err == nil {
		err = os.WriteFile(temp, data, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(w.queue.Dir(), name+".json"))
	}
	if err != nil {
		w.ledger.complain("drop: %v", err)
		return
	}
	w.ledger.place(account)
}

// consume runs one consumer under the worker's client, kills it while kills are left, and reads what it printed.
func (w *worker) consume() {
	w.turns()
	if w.client == nil {
		var err error
		if w.client, err = newClient(w.dir, w.session()); err != nil {
			w.ledger.complain("%v", err)
			return
		}
	}
	o := w.order()
	e := w.client.perform(o)
	w.note(consumer, o, e)
	if !e.Killed && e.Trouble != "" {
		w.ledger.complain("consumer: %s", e.Trouble)
	}
	w.read(o, e)
}

// order is how the next consumer runs and dies.
func (w *worker) order() order {
	o := order{Task: asAwait, Root: w.queue.Project.Root, Nth: 1, PID: w.rand.IntN(2) == 0}
	if w.dir == "" && w.rand.IntN(3) == 0 {
		o.Task = asDrain
	}
	if w.calm {
		return o
	}
	o.Die, o.After = w.aim(consumer, w.rand)
	switch {
	case o.Die == wake.Printing && w.rand.IntN(2) == 0:
		o.Die, o.Reader = "", chokes
	case o.Die == wake.Releasing: // because nobody reads
		o.Reader = leaves
	case o.Die == wake.Settling: // which a drain does at once
		o.Task = asDrain
	case w.rand.IntN(30) == 0:
		o.Reader = leaves
	}
	return o
}

// read is what the client makes of a consumer's end.
func (w *worker) read(o order, e ending) {
	text := e.Stderr
	if o.Task == asDrain {
		text = reason(e.Stdout)
	}
	whole := strings.HasSuffix(text, lastLine) && reason(e.Stdout) == text
	switch {
	case !e.Killed && o.Task == asAwait && e.Status != 0 && e.Status != 2, !e.Killed && o.Task == asDrain && e.Status != 0:
		w.ledger.complain("%s: status %d", o.Task, e.Status)
	case e.Status == 2 && o.Reader == leaves:
		w.ledger.complain("emitted to a reader that was gone: %v", e.Steps)
	case e.Status == 2 && !whole:
		w.ledger.complain("torn: stdout is %.200q, stderr %.200q", e.Stdout, e.Stderr)
	case e.Status == 2 && w.dir != "":
		w.show(text)
	case whole && (w.dir == "" || o.Task == asDrain):
		// Whatever reads it has it now. That the consumer was killed before it could say so is the one excuse.
		w.ledger.tell(text, e.Killed && !e.came(wake.Emitted))
	}
}

// reason is the text in what a consumer prints to stdout.
func reason(stdout string) string {
	var block struct{ Decision, Reason string }
	if err := json.Unmarshal([]byte(stdout), &block); err != nil || block.Decision != "block" {
		return ""
	}
	return block.Reason
}

// show is what becomes of a text that a client has from an exit with 2: the turn of the model, as a rule.
func (w *worker) show(text string) {
	fate := w.rand.IntN(100)
	if w.calm {
		fate = 99
	}
	switch {
	case fate < 5: // the client is killed before it has done anything, but for showing the wakes' ids
		w.write(listingRows(strings.Split(text, "\n")[1:])...)
		w.kill()
		return
	case fate < 10: // it is killed with the text in its own queue
		w.write(enqueueRow(text))
		w.kill()
		return
	case fate < 16: // it is busy for long
		w.write(enqueueRow(text))
		w.later = append(w.later, turn{text, time.Now().Add(longTurn)})
		return
	case fate < 20: // the API is down
		w.write(enqueueRow(text), dequeueRow(), turnRow(text), assistantRow("API Error: 529", true))
	case fate < 24: // /clear came between
		w.client.clear(w.session())
		w.write(turnRow(text), assistantRow("I see", false))
	default:
		w.write(enqueueRow(text), dequeueRow(), turnRow(text), assistantRow("I see", false))
	}
	w.ledger.tell(text, false)
}

// turns shows the model what is due.
func (w *worker) turns() {
	var kept []turn
	for _, t := range w.later {
		if time.Now().Before(t.due) {
			kept = append(kept, t)
			continue
		}
		w.write(dequeueRow(), turnRow(t.text), assistantRow("I see", false))
		w.ledger.tell(t.text, false)
	}
	w.later = kept
}

func (w *worker) write(rows ...map[string]any) {
	if err := w.client.write(rows...); err != nil {
		w.ledger.complain("transcript: %v", err)
	}
}

func (w *worker) session() string { return fmt.Sprintf("session-%d", w.serial.Add(1)) }

// kill ends the client, and with it what it had in its queue.
func (w *worker) kill() {
	w.client.kill()
	w.client, w.later = nil, nil
}
