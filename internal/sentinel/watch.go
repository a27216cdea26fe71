package sentinel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"vx/internal/claude"
	"vx/internal/herdr"
	"vx/internal/proc"
	"vx/internal/soldier"
	"vx/internal/state"
	"vx/internal/task"
)

// project is a project whose tasks are watched.
type project struct {
	*state.Project
	tasks   *task.Store
	listed  []task.Task // as the watches are of
	watches map[string]*watch
	round   int
	said    string       // the last complaint about its tasks
	stuck   atomic.Int64 // somebody holds on to the lock of its tasks: until then, by the awake time, nothing is saved
}

// watch is what the sentinel keeps of one task from sweep to sweep. Whoever looks at the task holds the lock; another look
// does not wait for it.
type watch struct {
	project *project
	socket  string // "" for a session that no herdr shows

	late atomic.Pointer[task.Task] // listed while the lock was held

	mu         sync.Mutex
	task       *task.Task
	memory     soldier.Memory
	client     proc.ID         // the client's process, once it is known
	record     claude.Session  // as it was read last
	recordRead time.Duration   // when
	says       *soldier.Client // what it says
	told       hearsay         // of it, until its file was looked at last
	looked     time.Duration   // when
	met        time.Duration   // when the process was last known to be the client, and not another with its pid
	asked      asked
	read       time.Duration // when the pane of a finished one was read last
	proof      proofs
	vain       int // looks in a row that ended for want of an answer to one question
	moved      moved

	agent *herdr.Agent // as herdr's list has it
	of    *herdr.Agent // the first of that list
	place int          // in it
	quiet *herdr.Agent // as long as the agent is as this one, a look finds nothing new; nil when it may
}

// asked is when herdr was asked for the client of an agent, and knew none.
type asked struct {
	terminal string
	at       time.Duration
}

// moved is what herdr calls a pane now that it once called from.
type moved struct{ from, to string }

// gather brings the watches up to the tasks as they are, and groups them by their herdr's socket; "" for those without.
// Where no project's tasks have changed the groups are what they were.
func (s *sentinel) gather(ctx context.Context, all []*state.Project) map[string][]*watch {
	again := time.Since(s.recovered) >= lookAgain
	changed := false
	for _, p := range all {
		known := s.stores[p.Dir]
		if known == nil {
			known = &project{Project: p, tasks: task.Open(p)}
			s.stores[p.Dir] = known
		}
		known.round = s.round
		if again {
			s.projects.complain("transitions of "+p.Dir, task.Recover(ctx, s.queue(p), s.Dir))
		}
		tasks, bad := known.tasks.List()
		s.complain(known, bad)
		if len(tasks) == len(known.listed) && (len(tasks) == 0 || &tasks[0] == &known.listed[0]) {
			continue
		}
		known.listed, changed = tasks, true
		known.follow(tasks)
	}
	if again {
		s.recovered = time.Now()
	}
	for dir, p := range s.stores {
		if p.round != s.round {
			delete(s.stores, dir)
			changed = true
		}
	}
	if changed {
		s.groups = s.group()
	}
	return s.groups
}

func (s *sentinel) group() map[string][]*watch {
	groups := map[string][]*watch{}
	for _, p := range s.stores {
		for _, w := range p.watches {
			groups[w.socket] = append(groups[w.socket], w)
		}
	}
	return groups
}

// follow watches the tasks that anything can still come of.
func (p *project) follow(tasks []task.Task) {
	old := p.watches
	p.watches = make(map[string]*watch, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		if !live(t) {
			continue
		}
		socket := ""
		if t.Herdr != nil {
			socket = t.Herdr.Socket
		}
		w := old[t.ID]
		if w == nil || w.socket != socket {
			w = &watch{project: p, task: t, socket: socket}
			if t.Session != nil {
				w.client = proc.ID{PID: t.Session.PID, Start: t.Session.Start}
			}
		}
		p.watches[t.ID] = w
		w.update(t)
	}
}

// update gives the watch the task as it was listed. While somebody looks at it, that may be older than what they save.
func (w *watch) update(t *task.Task) {
	if !w.mu.TryLock() {
		w.late.Store(t)
		return
	}
	defer w.mu.Unlock()
	w.take(t)
}

func (w *watch) take(t *task.Task) {
	if t != nil && !t.UpdatedAt.Before(w.task.UpdatedAt) {
		if was, is := w.task.Herdr, t.Herdr; was != nil && is != nil && was.Pane != is.Pane {
			// Dispatched anew. Against what its last agent was like, this one would look like another life of the herdr.
			w.memory = soldier.Memory{}
		}
		w.task, w.quiet, w.of = t, nil, nil
	}
}

// lock is for a look at the task; false while another one goes on.
func (w *watch) lock() bool {
	if !w.mu.TryLock() {
		return false
	}
	if w.late.Load() != nil {
		w.take(w.late.Swap(nil))
	}
	return true
}

// live reports whether anything can still come of a task: it runs, or it has finished and can run again.
func live(t *task.Task) bool {
	switch {
	case t.Herdr == nil && t.Session == nil, t.Herdr != nil && t.Herdr.Socket == "":
		return false
	}
	return t.Status == task.Running || soldier.Finished(t.Status)
}

// complain logs what is wrong with a project's tasks when it is new.
func (s *sentinel) complain(p *project, bad []error) {
	said := ""
	for _, err := range bad {
		said += err.Error() + "\n"
	}
	if said == p.said {
		return
	}
	p.said = said
	for _, err := range bad {
		s.Log.Error("tasks", "project", p.Root, "err", err)
	}
}

// glance is the sweep's look at a task. What it can say without asking anybody it says; for the rest a look of its own
// begins, beside the sweep. The lock is held, and is given up here or by that look.
func (s *sentinel) glance(ctx context.Context, k *socket, w *watch, at moment, held bool) {
	if w.quiet != nil && w.agent != nil && !held && (w.quiet == w.agent || *w.quiet == *w.agent) && (w.client.IsZero() || w.still(s.clients, at.awake)) {
		w.memory.Unchanged(at.wall)
		w.mu.Unlock()
		return
	}
	l := look{sentinel: s, socket: k, watch: w}
	l.seen = soldier.Look{Now: at.awake, Wall: at.wall, Agent: w.agent, Held: held}
	if !w.client.IsZero() {
		l.seen.Client = l.glimpse() // nil for one that has ended: who came after it is asked for if it matters
	}
	v := soldier.Judge(w.task, &l.seen, &w.memory)
	w.quiet = nil
	if v.Need != 0 || l.unmet() {
		l.lookCloser(ctx, v)
		return
	}
	if !l.carryOut(ctx, &v) && !held && v.Settled(w.task) {
		w.quiet = w.agent
	}
	w.mu.Unlock()
}

// lookCloser goes on with a look beside the sweep, and gives up the watch's lock at its end.
func (l look) lookCloser(ctx context.Context, v soldier.Verdict) {
	l.work.Go(func() {
		defer l.watch.mu.Unlock()
		l.run(ctx, v)
		if l.unmet() {
			l.findClient(ctx)
		}
	})
}

// moment is when a sweep looks.
type moment struct {
	awake time.Duration
	wall  time.Time
}

func (s *sentinel) now() moment { return moment{s.time.awake(), time.Now()} }

// sessions looks at the tasks whose clients no herdr shows.
func (s *sentinel) sessions(ctx context.Context, group []*watch) {
	at := s.now()
	for _, w := range group {
		if w.lock() {
			s.glance(ctx, nil, w, at, false)
		}
	}
}
