//go:build e2e

package pi

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
)

// wanted is how many kills of a release have to fall between the claim and the message.
const wanted = 20

// step is how far the wake had come when Pi was killed, by its story once the await has ended.
func step(story []string) string {
	switch last := story[len(story)-1]; {
	case last == "put":
		return "before the claim"
	case last == "released":
		return "between claim and message"
	case strings.HasPrefix(last, "delivered"):
		return "after the message"
	default:
		return "with " + last
	}
}

// Whatever moment Pi is killed in, the wake is in a session or comes to the next Pi.
func TestNoWakeIsLostWhenPiIsKilled(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.model.Open(1)
		steps, lost, twice := map[string]int{}, 0, 0
		p := w.drive(w.project)
		n := 0
		for ; steps["between claim and message"] < wanted && n < 4*wanted; n++ {
			w.awaiting(1)
			title := fmt.Sprintf("the end of work %d.", n)
			busy := n%3 != 0
			if busy {
				w.busy(p.say) // the wake is queued when Pi dies, or the turn of another wake has begun
			}
			w.killed(p, title, busy)
			steps[step(w.story(w.project, title))]++
			w.model.Open(1)
			p = w.drive(w.project)
			w.eventually("the end of the wake "+title, func() bool {
				story := w.story(w.project, title)
				return strings.HasPrefix(story[len(story)-1], "delivered")
			})
			w.awaiting(1) // no turn is on its way
			told, kept := w.model.Turns(title), w.receipts(title)
			if told == 0 && kept == 0 {
				lost++
				t.Errorf("%q is in no session, and its story is %q", title, w.story(w.project, title))
			}
			if told > 1 || kept > 1 {
				twice++
				t.Errorf("%q: %d turns, %d times in sessions, and its story is %q", title, told, kept, w.story(w.project, title))
			}
		}
		t.Logf("%d kills %v: %d lost, %d told twice", n, steps, lost, twice)
		if steps["between claim and message"] < wanted {
			t.Errorf("%d were between claim and message, want %d", steps["between claim and message"], wanted)
		}
	})
}

// killed sends a wake and kills Pi at a random moment: some time after the claim of a busy Pi; around it of an idle one. It
// returns when the await is gone too.
func (w *world) killed(p *program, title string, busy bool) {
	w.t.Helper()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w.send(title)
	}()
	if busy {
		w.held()
		if rand.IntN(3) == 0 {
			go w.model.Open(1)
		}
		time.Sleep(rand.N(60 * time.Millisecond))
	} else if rand.IntN(4) == 0 {
		time.Sleep(rand.N(60 * time.Millisecond))
	} else {
		// A claim lasts for milliseconds.
		for end := time.Now().Add(patience); !w.claimed() && w.model.Turns(title) == 0 && time.Now().Before(end); {
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(rand.N(15 * time.Millisecond))
	}
	if err := p.cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	<-sent
	p.end()
	w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
}

// claimed reports whether a delivery is on its way. It looks at the files, since no command is fast enough.
func (w *world) claimed() bool {
	w.t.Helper()
	found, err := filepath.Glob(w.path("state/projects/*/wakes/.claimed/*/to.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(found) > 0 || slices.ContainsFunc(w.awaits(w.project), func(e awaiter.Entry) bool { _, holding := e.Holding(); return holding })
}
