package sentinel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/claude"
	"vx/internal/herdr"
	"vx/internal/proc"
	"vx/internal/soldier"
	"vx/internal/task"
)

const (
	// noClient is how long a pane counts as one without a client that keeps a record.
	noClient = time.Minute
	// unheard is how long a record that no change is told of is taken to be as it was before its file is looked at.
	unheard = 20 * time.Second
	// twoWitnesses is how long a record is not read again that is as it was by its file and by what is told.
	twoWitnesses = 5 * time.Minute
)

// clients hears of session records that change, and calls for the next sweep when one is a watched client's.
type clients struct {
	call func()

	mu      sync.Mutex
	watched map[int]uint64 // the last change of each that was told, by its number
	last    uint64         // number that was given
	any     uint64         // the last change that may have been of any
	changes *claude.Changes
	tried   time.Time
	dir     watched[string] // the names of the records
}

// hearsay is what was told of a record until some moment: as long as it is the same, nothing was told since. The zero one
// is of a record that nobody tells of.
type hearsay struct {
	from     *claude.Changes
	own, any uint64
}

func newClients(call func()) *clients { return &clients{call: call, watched: map[int]uint64{}} }

// number is one that nothing else has: what is forgotten and wanted again is never taken for unchanged.
func (c *clients) number() uint64 {
	c.last++
	return c.last
}

// told is what was told of a record until now.
func (c *clients) told(s *claude.Session) hearsay {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, ok := c.watched[s.Process.PID]
	if !ok || c.changes == nil || !c.changes.Of(s) {
		return hearsay{}
	}
	return hearsay{c.changes, own, c.any}
}

// want has changes of a client's record told from now on. Where the system cannot, the sweeps find them.
func (c *clients) want(id proc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.watched[id.PID]; !ok {
		c.watched[id.PID] = c.number()
	}
	if c.changes != nil || time.Since(c.tried) < lookAgain {
		return
	}
	c.tried = time.Now()
	dir, err := claude.ConfigDir()
	if err != nil {
		return
	}
	if c.changes, err = claude.Watch(dir); err != nil {
		c.changes = nil
		return
	}
	go c.listen(c.changes)
}

func (c *clients) listen(changes *claude.Changes) {
	for {
		pid, err := changes.Next()
		c.mu.Lock()
		_, known := c.watched[pid]
		switch {
		case pid == 0:
			c.any, known = c.number(), true
		case known:
			c.watched[pid] = c.number()
		}
		if err != nil && c.changes == changes {
			changes.Close()
			c.changes = nil
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
		if known {
			c.call()
		}
	}
}

// forget is for a client that is no longer anybody's.
func (c *clients) forget(id proc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watched, id.PID)
}

// some reports whether any client keeps a record.
func (c *clients) some() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir, err := claude.ConfigDir()
	if err != nil {
		return false
	}
	names, _ := c.dir.look(filepath.Join(dir, "sessions"), func() ([]string, error) {
		entries, err := os.ReadDir(filepath.Join(dir, "sessions"))
		var names []string
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".json" {
				names = append(names, e.Name())
			}
		}
		return names, err
	})
	return len(names) > 0
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != nil {
		c.changes.Close()
		c.changes = nil
	}
}

// askClient looks at the client's own record. The process that it is of is asked for once, and again when it has ended:
// another may have taken its place.
func (l *look) askClient(ctx context.Context) bool {
	w := l.watch
	if !w.client.IsZero() {
		if c := l.record(w.client); c != nil {
			l.seen.Client = c
			return true
		}
	}
	if l.socket == nil {
		l.seen.Client = &soldier.Client{State: soldier.ClientGone}
		if w.client.IsZero() {
			l.seen.Client.State = soldier.ClientNone // the task does not say whose it is
		}
		return true
	}
	return l.findClient(ctx)
}

// record is what a process's record says; nil when the process has ended.
func (l *look) record(id proc.ID) *soldier.Client {
	if id.Status() == proc.Gone {
		return nil // a client that was killed leaves its record
	}
	s, ok := claude.SessionOf(id)
	if t := l.watch.task; !ok && t.Session != nil && t.Session.Record != "" {
		s, ok = claude.SessionAt(t.Session.Record, id)
	}
	if !ok {
		if id.Status() == proc.Gone {
			return nil // it has just ended, and taken its record away
		}
		return &soldier.Client{State: soldier.ClientNone}
	}
	l.clients.want(id)
	w := l.watch
	w.record, w.says, w.told = s, alive(&s), hearsay{}
	w.recordRead, w.met = l.seen.Now, l.seen.Now
	return w.says
}

func alive(s *claude.Session) *soldier.Client {
	return &soldier.Client{
		State: soldier.ClientAlive, Status: s.Status, Waiting: s.Waiting, Changed: s.Changed, ID: fmt.Sprint(s.Process.PID, " ", s.Process.Start),
	}
}

// glimpse is what the record of the known client says, for a sweep: one that is as it was is not read again.
func (l *look) glimpse() *soldier.Client {
	if w := l.watch; w.still(l.clients, l.seen.Now) {
		return w.says
	}
	return l.record(l.watch.client)
}

// still reports whether the client's record need not be read again: its file is as it was, and so is its process. A change
// is told, as a rule, and then the file is only looked at now and then; now and then it is read all the same.
func (w *watch) still(c *clients, now time.Duration) bool {
	if w.record.Process != w.client || !w.lives(now) {
		return false
	}
	told := c.told(&w.record)
	if told == (hearsay{}) && now-w.recordRead >= lookAgain || now-w.recordRead >= twoWitnesses {
		return false
	}
	if told != (hearsay{}) && told == w.told && now-w.looked < unheard {
		return true
	}
	if !w.record.Unchanged() {
		return false
	}
	w.told, w.looked = told, now // what is told from now on is of changes since
	return true
}

// lives reports whether a process is there that may be the client; now and then, whether it is.
func (w *watch) lives(now time.Duration) bool {
	if now-w.met < lookAgain {
		return unix.Kill(w.client.PID, 0) != unix.ESRCH
	}
	w.met = now
	return w.client.Status() != proc.Gone
}

// unmet reports whether the client's process should be asked for though nothing needs it yet, so that changes of its
// record are heard. It is not where no client keeps records.
func (l *look) unmet() bool {
	w, a := l.watch, l.seen.Agent
	return a != nil && w.client.IsZero() && w.task.Status == task.Running && soldier.HasRecord(a.Kind) && !l.seen.Held &&
		w.asked.terminal != a.TerminalID && l.recorded.Load()
}

// findClient asks herdr which processes are in the foreground of the pane, and which of them keeps a record.
func (l *look) findClient(ctx context.Context) bool {
	w := l.watch
	terminal := ""
	if l.seen.Agent != nil {
		terminal = l.seen.Agent.TerminalID
	}
	if w.client.IsZero() && w.asked.at != 0 && w.asked.terminal == terminal && l.seen.Now-w.asked.at < noClient {
		l.seen.Client = &soldier.Client{State: soldier.ClientNone}
		return true
	}
	var p herdr.Processes
	ok, refused := l.socket.ask(ctx, func(ctx context.Context) (err error) {
		pane := w.task.Herdr.Pane
		if l.seen.Agent != nil {
			pane = l.seen.Agent.PaneID
		}
		p, err = l.socket.client.Processes(ctx, pane)
		return err
	})
	if !ok && !l.givesUp(ctx) {
		return false
	}
	w.asked = asked{terminal, l.seen.Now}
	l.seen.Client = &soldier.Client{State: soldier.ClientNone}
	if !ok || refused != nil {
		return true
	}
	others := false
	for _, process := range append(p.Foreground, herdr.Process{PID: p.Shell}) {
		id, err := proc.Find(process.PID)
		if err != nil {
			continue
		}
		others = others || process.PID != p.Shell
		if c := l.record(id); c != nil && c.State == soldier.ClientAlive {
			l.adopt(id)
			l.seen.Client = c
			return true
		}
	}
	if !w.client.IsZero() && !others {
		// The client that was known has ended, and only the shell is left.
		l.seen.Client.State = soldier.ClientGone
	}
	return true
}

func (l *look) adopt(id proc.ID) {
	if w := l.watch; w.client != id {
		l.clients.forget(w.client)
		w.client = id
	}
}
