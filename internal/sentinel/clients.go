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

// noClient is how long a pane counts as one without a client that keeps a record.
const noClient = time.Minute

// clients hears of session records that change, and calls for the next sweep when one is a watched client's.
type clients struct {
	call func()

	mu      sync.Mutex
	watched map[int]bool
	changes *claude.Changes
	tried   time.Time
	dir     watched[string] // the names of the records
}

func newClients(call func()) *clients { return &clients{call: call, watched: map[int]bool{}} }

// want has changes of a client's record told from now on. Where the system cannot, the sweeps find them.
func (c *clients) want(id proc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched[id.PID] = true
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
		known := pid == 0 || c.watched[pid]
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
	l.watch.record, l.watch.recordRead = s, l.seen.Now
	return alive(&s)
}

func alive(s *claude.Session) *soldier.Client {
	return &soldier.Client{
		State: soldier.ClientAlive, Status: s.Status, Waiting: s.Waiting, Changed: s.Changed, ID: fmt.Sprint(s.Process.PID, " ", s.Process.Start),
	}
}

// glimpse is what the record of the known client says, for a sweep: one that is as it was is not read again.
func (l *look) glimpse() *soldier.Client {
	if w := l.watch; w.still(l.seen.Now) {
		return alive(&w.record)
	}
	return l.record(l.watch.client)
}

// still reports whether the client's record need not be read again: its file is as it was, and a process is there that may
// be the client. Now and then it is read all the same.
func (w *watch) still(now time.Duration) bool {
	return w.record.Process == w.client && now-w.recordRead < lookAgain && w.record.Unchanged() && unix.Kill(w.client.PID, 0) != unix.ESRCH
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
