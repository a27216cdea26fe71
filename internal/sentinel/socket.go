package sentinel

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"vx/internal/herdr"
)

const (
	epochHold = 15 * time.Second // after a new life of a socket nothing is decided
	atOnce    = 8                // requests about single panes
	patience  = 3 * time.Second
)

// socket is one herdr.
type socket struct {
	*sentinel
	path   string
	client *herdr.Client
	busy   atomic.Bool
	slots  chan struct{}

	mu      sync.Mutex
	trouble error // nobody is there: nothing is asked until a sweep has found somebody

	// Of the sweep alone.
	epoch   herdr.Epoch
	pong    herdr.Pong
	met     bool
	unsure  bool          // whether it is still the same herdr has to be asked
	held    time.Duration // until then nothing is decided
	fresh   time.Duration // and until then none of its agents is missed
	list    []herdr.Agent
	byPane  map[string]int // nil until somebody has to be looked for
	byTerm  map[string]int
	problem string
}

func newSocket(s *sentinel, path string) *socket {
	return &socket{
		sentinel: s, path: path, slots: make(chan struct{}, atOnce), unsure: true,
		client: &herdr.Client{Socket: path, Deadline: patience},
	}
}

// sweep asks the herdr for all of its agents, and judges the tasks in it.
func (k *socket) sweep(ctx context.Context, group []*watch) {
	changed, err := k.look(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		k.note(err)
		k.unsure = true
		for _, w := range group {
			if w.lock() {
				w.memory.Unknown()
				w.mu.Unlock()
			}
		}
		return
	}
	k.note(nil)
	at := k.now()
	if changed {
		k.locate(at, group)
	}
	for _, w := range group {
		if ctx.Err() != nil {
			return
		}
		// One that cannot be locked is being looked at; one that is not located was until now.
		if w.lock() {
			k.place(w)
			k.glance(ctx, k, w, at, at.awake < k.held || w.agent == nil && at.awake < k.fresh)
		}
	}
}

// locate finds the agents in the list. A sequence that ran backwards is another life of the herdr for all of them.
func (k *socket) locate(at moment, group []*watch) {
	for _, w := range group {
		if !w.lock() {
			continue
		}
		k.place(w)
		if w.agent != nil && w.memory.Backwards(w.agent) {
			k.held, k.unsure = at.awake+epochHold, true
		}
		w.mu.Unlock()
	}
}

// place notes which agent of the list is the task's.
func (k *socket) place(w *watch) {
	if len(k.list) == 0 {
		w.agent, w.of = nil, nil
		return
	}
	if w.of != &k.list[0] {
		w.agent, w.of = k.find(w), &k.list[0]
	}
}

// look asks for the list, and says whether it is another one than before. Whether it is the herdr of the last sweep is asked
// only where that is in doubt.
func (k *socket) look(ctx context.Context) (changed bool, err error) {
	epoch, err := herdr.EpochOf(k.path)
	if err != nil {
		return false, err
	}
	if k.unsure || epoch != k.epoch {
		pong, err := k.client.Ping(ctx)
		if err != nil {
			return false, err
		}
		now := k.time.awake()
		switch {
		case !k.met:
			k.fresh = now + epochHold
		case epoch != k.epoch || pong != k.pong:
			k.held = now + epochHold
		}
		k.epoch, k.pong, k.met, k.unsure = epoch, pong, true, false
	}
	list, err := k.client.Agents(ctx)
	if err != nil {
		return false, err
	}
	if after, err := herdr.EpochOf(k.path); err != nil || after != epoch {
		return false, cmp.Or(err, errReplaced) // whose list it is cannot be said
	}
	// The client gives back the same list where nothing has changed.
	if len(list) > 0 && len(list) == len(k.list) && &list[0] == &k.list[0] {
		return false, nil
	}
	k.list, k.byPane, k.byTerm = list, nil, nil
	return true, nil
}

var errReplaced = errors.New("it was replaced meanwhile")

// find is the agent of a task: as a rule where it was in the last list. A pane that was moved has another id, and its
// terminal is the same, unless herdr was restarted since: then it has to have been asked for the pane.
func (k *socket) find(w *watch) *herdr.Agent {
	h := w.task.Herdr
	if w.place < len(k.list) && k.list[w.place].PaneID == h.Pane {
		return &k.list[w.place]
	}
	if k.byPane == nil {
		k.index()
	}
	i, ok := k.byPane[h.Pane]
	if !ok && h.TerminalID != "" {
		i, ok = k.byTerm[h.TerminalID]
	}
	if !ok && w.moved.from == h.Pane {
		i, ok = k.byPane[w.moved.to]
	}
	if !ok {
		return nil
	}
	w.place = i
	return &k.list[i]
}

// index makes the agents of the list findable.
func (k *socket) index() {
	k.byPane = make(map[string]int, len(k.list))
	k.byTerm = make(map[string]int, len(k.list))
	for i := range k.list {
		a := &k.list[i]
		k.byPane[a.PaneID] = i
		if a.TerminalID != "" {
			k.byTerm[a.TerminalID] = i
		}
	}
}

// note logs trouble with the socket when it is new, and when it ends.
func (k *socket) note(err error) {
	k.mu.Lock()
	k.trouble = err
	k.mu.Unlock()
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said == k.problem {
		return
	}
	k.problem = said
	if err != nil {
		k.Log.Warn("herdr does not answer: its tasks are left as they are", "socket", k.path, "err", err)
		return
	}
	k.Log.Info("herdr answers", "socket", k.path)
}

// ask makes a request about a single pane, at most eight at once. ok is false when no answer came: nothing is known then.
func (k *socket) ask(ctx context.Context, request func(context.Context) error) (ok bool, refused error) {
	select {
	case k.slots <- struct{}{}:
	case <-ctx.Done():
		return false, nil
	}
	defer func() { <-k.slots }()
	k.mu.Lock()
	trouble := k.trouble
	k.mu.Unlock()
	if trouble != nil {
		return false, nil
	}
	err := request(ctx)
	if _, word := errors.AsType[*herdr.Error](err); err == nil || word {
		return true, err
	}
	if errors.Is(err, herdr.ErrUnreachable) {
		k.mu.Lock()
		k.trouble = err
		k.mu.Unlock()
	}
	return false, nil
}
