//go:build e2e

package pi

import (
	"syscall"
	"testing"

	"vx/internal/e2e/tmux"
)

func TestAWakeFromBeforeTheStartIsDelivered(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.send("deploy finished")
		w.open(w.project, nil)
		w.delivered("deploy finished")
	})
}

func TestANewSessionWaitsInTheOldOnesPlace(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		first := w.awaiting(1)[0]
		p.Say("/new")
		w.eventually("another session's await", func() bool {
			live := w.awaits(w.project)
			return len(live) == 1 && live[0].Session != first.Session
		})
		w.send("deploy finished")
		w.delivered("deploy finished")
	})
}

func TestAfterAReloadTheSameSessionWaits(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		first := w.awaiting(1)[0]
		p.Say("/reload")
		w.eventually("another await", func() bool {
			live := w.awaits(w.project)
			return len(live) == 1 && live[0].Process != first.Process
		})
		if now := w.awaiting(1)[0]; now.Session != first.Session {
			t.Errorf("the session is %s, want %s", now.Session, first.Session)
		}
		w.send("deploy finished")
		w.delivered("deploy finished")
	})
}

// Each way to end Pi ends the await; a wake that Pi had in its queue goes to the next Pi.
func TestAWakeInHandOutlivesPi(t *testing.T) {
	ends := map[string]func(*tmux.Pane){
		"SIGTERM": func(p *tmux.Pane) { p.Signal(syscall.SIGTERM); p.WaitEnd() },
		"SIGKILL": func(p *tmux.Pane) { p.Kill() },
		"hang-up": func(p *tmux.Pane) { p.HangUp() },
	}
	forEachPi(t, func(t *testing.T, w *world) {
		for how, end := range ends {
			title := "deploy finished, then " + how
			p := w.start()
			w.busy(p.Say)
			w.send(title)
			w.held()
			p.WaitScreen(t, "Follow-up")
			end(p)
			w.becomes(title, "put", "claimed", "released")
			w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
			w.model.Open(1)
			next := w.open(w.project, nil)
			w.becomes(title, append([]string{"put", "claimed", "released"}, acknowledged[1:]...)...)
			w.once(title)
			w.awaiting(1)
			end(next)
			w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
		}
	})
}

func TestQuittingEndsTheAwait(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		p := w.start()
		p.Say("/quit")
		p.WaitEnd()
		if children := w.children(); len(children) > 0 {
			t.Errorf("Pi has ended and the awaits %v have not", children)
		}
	})
}
