package sentinel

import (
	"context"
	"sync"
	"time"

	"vx/internal/herdr"
	"vx/internal/proc"
	"vx/internal/soldier"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// project is a project whose tasks are watched.
type project struct {
	*state.Project
	tasks *task.Store
	said  string // the last complaint about its tasks
}

type key struct{ project, id string }

// watch is what the sentinel keeps of one task from sweep to sweep. Whoever looks at the task holds the lock; another look
// does not wait for it.
type watch struct {
	project *project

	mu     sync.Mutex
	task   *task.Task
	memory soldier.Memory
	client proc.ID // the client's process, once it is known
	asked  asked
	read   time.Duration // when the pane of a finished one was read last
	proof  proofs
	round  int // the sweep that it was last in
}

// asked is when herdr was asked for the client of an agent, and knew none.
type asked struct {
	terminal string
	at       time.Duration
}

// gather brings the watches up to the tasks as they are, and groups them by their herdr's socket; "" for those without.
func (s *sentinel) gather(ctx context.Context) map[string][]*watch {
	groups := make(map[string][]*watch, len(s.sockets)+1)
	again := time.Since(s.recovered) >= lookAgain
	for _, p := range s.projects.Projects() {
		known := s.stores[p.Dir]
		if known == nil {
			known = &project{Project: p, tasks: task.Open(p)}
			s.stores[p.Dir] = known
		}
		if again {
			s.projects.complain("transitions of "+p.Dir, task.Recover(ctx, wake.Open(p), s.Dir))
		}
		tasks, bad := known.tasks.List()
		s.complain(known, bad)
		for i := range tasks {
			t := &tasks[i]
			if !live(t) {
				continue
			}
			w := s.watch(known, t)
			path := ""
			if t.Herdr != nil {
				path = t.Herdr.Socket
			}
			groups[path] = append(groups[path], w)
		}
	}
	if again {
		s.recovered = time.Now()
	}
	for k, w := range s.watches {
		if w.round != s.round {
			delete(s.watches, k)
		}
	}
	return groups
}

// live reports whether anything can still come of a task: it runs, or it has finished and can run again.
func live(t *task.Task) bool {
	switch {
	case t.Herdr == nil && t.Session == nil, t.Herdr != nil && t.Herdr.Socket == "":
		return false
	}
	return t.Status == task.Running || soldier.Finished(t.Status)
}

func (s *sentinel) watch(p *project, t *task.Task) *watch {
	k := key{p.Dir, t.ID}
	w := s.watches[k]
	if w == nil {
		w = &watch{project: p, task: t}
		if t.Session != nil {
			w.client = proc.ID{PID: t.Session.PID, Start: t.Session.Start}
		}
		s.watches[k] = w
	}
	w.round = s.round
	// While somebody looks at it, what was listed may be older than what that look saved.
	if w.mu.TryLock() {
		if !t.UpdatedAt.Before(w.task.UpdatedAt) {
			w.task = t
		}
		w.mu.Unlock()
	}
	return w
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

// judge is one look at a task from the sweep. What it can say without asking anybody it says; for the rest a look of its
// own begins, beside the sweep. The lock is held, and is given up here or by that look.
func (s *sentinel) judge(ctx context.Context, k *socket, w *watch, agent *herdr.Agent, held bool) {
	l := &look{sentinel: s, socket: k, watch: w}
	l.seen = soldier.Look{Now: s.time.awake(), Wall: time.Now(), Agent: agent, Held: held}
	if !w.client.IsZero() {
		l.seen.Client = l.record(w.client) // nil for one that has ended: who came after it is asked for if it matters
	}
	v := soldier.Judge(w.task, &l.seen, &w.memory)
	if v.Need == 0 && !l.unmet() {
		l.carryOut(ctx, &v)
		w.mu.Unlock()
		return
	}
	s.work.Go(func() {
		defer w.mu.Unlock()
		l.run(ctx, v)
		if l.unmet() {
			l.findClient(ctx)
		}
	})
}

// sessions looks at the tasks whose clients no herdr shows.
func (s *sentinel) sessions(ctx context.Context, group []*watch) {
	for _, w := range group {
		if w.mu.TryLock() {
			s.judge(ctx, nil, w, nil, false)
		}
	}
}
