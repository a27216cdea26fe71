package sentinel

import (
	"context"
	"os"
	"time"

	"vx/internal/claude"
	"vx/internal/herdr"
	"vx/internal/soldier"
)

const (
	settling   = 8 * time.Second // how long a pane is waited for to come to rest
	between    = time.Second     // between two readings of a pane, and two looks at once
	rereading  = 30 * time.Second
	inVain     = 3  // looks without an answer, though herdr answers others: what it does not answer is unreadable
	maxJudging = 24 // times that one look is judged; a handful is enough
)

// look is one look at a task. The watch's lock is held.
type look struct {
	*sentinel
	socket *socket // nil without a herdr
	watch  *watch
	seen   soldier.Look
}

// run asks for what the judgement needs until it needs nothing more, and carries it out. A look that loses sight of what
// it looks at ends without a word: the next sweep begins another.
func (l *look) run(ctx context.Context, v soldier.Verdict) {
	for range maxJudging {
		if v.Need == 0 {
			l.watch.vain = 0
			l.carryOut(ctx, &v)
			return
		}
		if !l.meet(ctx, v.Need) {
			return
		}
		v = soldier.Judge(l.watch.task, &l.seen, &l.watch.memory)
	}
	l.Log.Error("judgement without an end", "task", l.watch.task.ID, "need", v.Need)
}

// meet looks at one of the things that are needed, the cheapest first. It is false when it cannot be known now.
func (l *look) meet(ctx context.Context, need soldier.Need) bool {
	switch t := l.watch.task; {
	case need&soldier.NeedPause != 0:
		l.seen.Pause = l.pause()
		return true
	case need&soldier.NeedPane != 0:
		return l.askPane(ctx)
	case need&soldier.NeedClient != 0:
		return l.askClient(ctx)
	case need&soldier.NeedProof != 0:
		l.seen.Proof = l.watch.proof.look(ctx, t)
		return ctx.Err() == nil
	case need&soldier.NeedText != 0:
		if soldier.Finished(t.Status) && !l.due() {
			return false
		}
		return l.readText(ctx)
	case need&soldier.NeedExplain != 0:
		return l.askExplain(ctx)
	case need&soldier.NeedAnswer != 0:
		l.seen.Answer = l.answer()
		return true
	case need&soldier.NeedPending != 0:
		l.seen.Pending = l.pending()
		return true
	case need&soldier.NeedAgain != 0:
		return l.again(ctx)
	}
	return false
}

// due reports whether the pane of a finished task is to be read again: it is read as long as its agent rests.
func (l *look) due() bool {
	w := l.watch
	if w.read != 0 && l.seen.Now-w.read < rereading {
		return false
	}
	w.read = l.seen.Now
	return true
}

func (l *look) pause() *soldier.Pause {
	fi, err := os.Stat(l.watch.project.Join("pauses", l.watch.task.ID))
	if err != nil {
		return &soldier.Pause{}
	}
	return &soldier.Pause{Declared: true, Modified: fi.ModTime()}
}

// answer is what the client has said, by its own transcript.
func (l *look) answer() *string {
	said := ""
	if s, ok := claude.SessionOf(l.watch.client); ok {
		said = s.Answer()
	}
	return &said
}

// pending is what a client that waits at a dialog has been asked for, by its own transcript.
func (l *look) pending() *string {
	asked := ""
	if s, ok := claude.SessionOf(l.watch.client); ok {
		asked = s.Pending()
	}
	return &asked
}

func (l *look) askPane(ctx context.Context) bool {
	if l.socket == nil {
		return false
	}
	w, id := l.watch, l.watch.task.Herdr.Pane
	var p herdr.Pane
	ok, refused := l.socket.ask(ctx, func(ctx context.Context) (err error) {
		p, err = l.socket.client.Pane(ctx, id)
		return err
	})
	if !ok {
		return false
	}
	if refused == nil && p.PaneID != "" && p.PaneID != id {
		w.moved, w.of = moved{id, p.PaneID}, nil // the next sweep looks for it there
	}
	state := soldier.PaneUnknown
	switch {
	case herdr.Code(refused) == herdr.PaneNotFound:
		state = soldier.PaneGone
	case refused == nil && p.Kind == "":
		state = soldier.PaneEmpty
	}
	l.seen.Pane = &state
	return true
}

func (l *look) askExplain(ctx context.Context) bool {
	var e herdr.Explanation
	ok, refused := l.socket.ask(ctx, func(ctx context.Context) (err error) {
		e, err = l.socket.client.Explain(ctx, l.seen.Agent.PaneID)
		return err
	})
	if !ok && !l.givesUp(ctx) {
		return false
	}
	// What cannot be explained is not trusted more than a fallback.
	fallback := !ok || refused != nil || e.FallbackReason != ""
	l.seen.Fallback = &fallback
	return true
}

// givesUp reports whether a question is not to be waited for any longer: herdr answers others, and not this one, again and
// again.
func (l *look) givesUp(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	l.watch.vain++
	return l.watch.vain >= inVain
}

// again looks a second time, a moment later.
func (l *look) again(ctx context.Context) bool {
	if !l.time.sleep(ctx, between) {
		return false
	}
	fresh := soldier.Look{Now: l.time.awake(), Wall: time.Now(), Proof: l.seen.Proof, Pause: l.seen.Pause}
	if l.seen.Agent != nil {
		a, ok := l.agent(ctx)
		if !ok {
			return false
		}
		fresh.Agent = a
	}
	l.seen = fresh
	return true
}

// agent is the agent as it is now; false when it is not there, or nobody answers.
func (l *look) agent(ctx context.Context) (*herdr.Agent, bool) {
	var a herdr.Agent
	ok, refused := l.socket.ask(ctx, func(ctx context.Context) (err error) {
		a, err = l.socket.client.Agent(ctx, l.seen.Agent.PaneID)
		return err
	})
	return &a, ok && refused == nil
}

// same reports whether the agent is in the state in which it was seen: only then what was read of it belongs together.
func (l *look) same(ctx context.Context) bool {
	a, ok := l.agent(ctx)
	if !ok {
		return false
	}
	was := l.seen.Agent
	return a.TerminalID == was.TerminalID && a.Seq == was.Seq && a.Status != herdr.Working
}

// readText reads the pane until two readings a second apart agree. An agent that begins to work meanwhile is let alone.
func (l *look) readText(ctx context.Context) bool {
	text := soldier.Text{}
	source, last := herdr.Detection, ""
	began := l.time.awake()
	for n := 0; ; n++ {
		if !l.same(ctx) {
			return false
		}
		var r herdr.Reading
		ok, refused := l.socket.ask(ctx, func(ctx context.Context) (err error) {
			r, err = l.socket.client.Read(ctx, l.seen.Agent.PaneID, source, 0)
			return err
		})
		switch {
		case !ok && !l.givesUp(ctx), herdr.Code(refused) == herdr.AgentNotIdle:
			return false
		case !ok:
			text.Err = "no answer"
		case refused != nil && source == herdr.Detection:
			source, text.Visible, n = herdr.Visible, true, -1
			continue
		case refused != nil:
			text.Err = refused.Error()
		}
		text.Text = r.Text
		text.Stable = n > 0 && r.Text == last
		if text.Err != "" || text.Stable || l.time.awake()-began >= settling {
			break
		}
		last = r.Text
		if !l.time.sleep(ctx, between) {
			return false
		}
	}
	l.seen.Text = &text
	return l.refresh(ctx)
}

// refresh looks a last time at what may have changed while the pane was read.
func (l *look) refresh(ctx context.Context) bool {
	if !l.same(ctx) {
		return false
	}
	l.seen.Now, l.seen.Wall = l.time.awake(), time.Now()
	if l.seen.Client == nil {
		return true
	}
	l.seen.Client = nil
	return l.askClient(ctx)
}
