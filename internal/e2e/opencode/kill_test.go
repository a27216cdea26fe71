//go:build e2e

package opencode

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vx/internal/proc"
)

// A battle is a world in which the server is killed again and again.
type battle struct {
	*world
	server  *server
	session string
	sending sync.WaitGroup
	asleep  []proc.ID // awaits that were stopped
}

func (w *battle) stands(title string) int { w.t.Helper(); return w.server.stands(w.session, title) }

// signal sends a signal to processes of the world.
func (w *battle) signal(to []proc.ID, sig syscall.Signal) {
	w.t.Helper()
	for _, id := range to {
		h, err := proc.Open(id)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := h.Signal(int(sig)); err != nil {
			w.t.Error(err)
		}
		h.Close()
	}
}

// stall is a plugin whose hook holds a wake's message up while a file of its name is there, before or after the hook of vx
// has seen it.
func (w *world) stall(name string) {
	w.plugin(name, `import { existsSync, writeFileSync } from "node:fs"
export const Stall = async () => ({
	"chat.message": async (_input: unknown, { parts }: { parts: { text?: string }[] }) => {
		if (!parts.some((part) => part.text?.includes("the end of work"))) return
		if (existsSync("`+w.path(name)+`")) writeFileSync("`+w.path(name)+`.reached", "")
		while (existsSync("`+w.path(name)+`")) await new Promise((done) => setTimeout(done, 20))
	},
})
`)
}

// Whatever moment OpenCode is killed in, the wake is in the session or comes to the next OpenCode.
func TestNoWakeIsLostWhenOpenCodeIsKilled(t *testing.T) {
	ways := []struct {
		name  string
		kills int
		come  func(w *battle, title string) // returns when it is time to kill
	}{
		{"while nothing has happened yet", 2, func(w *battle, title string) {
			w.together(title, func() { time.Sleep(rand.N(30 * time.Millisecond)) })
		}},
		{"around the claim", 6, func(w *battle, title string) {
			w.together(title, func() {
				w.eventually("the claim", w.claimed)
				time.Sleep(rand.N(15 * time.Millisecond))
			})
		}},
		{"while the message is made", 4, func(w *battle, title string) {
			w.together(title, func() {
				w.eventually("the claim", w.claimed)
				time.Sleep(10*time.Millisecond + rand.N(70*time.Millisecond))
			})
		}},
		{"offered, before its own hook", 5, func(w *battle, title string) {
			w.sendInto(title, "before.ts")
			time.Sleep(rand.N(200 * time.Millisecond))
		}},
		{"offered, behind its own hook", 5, func(w *battle, title string) {
			w.sendInto(title, "xbehind.ts")
			time.Sleep(rand.N(200 * time.Millisecond))
		}},
		{"acknowledged to one that does not read", 2, func(w *battle, title string) {
			w.sendInto(title, "before.ts")
			w.asleep = w.children()
			w.signal(w.asleep, syscall.SIGSTOP)
			w.unstall()
			w.eventually("the message", func() bool { return w.stands(title) == 1 })
			time.Sleep(rand.N(20 * time.Millisecond))
		}},
		{"acknowledged", 1, func(w *battle, title string) {
			w.send(title)
			w.becomes(title, acknowledged...)
		}},
	}
	for _, half := range [][]int{{0, 1, 3}, {2, 4, 5, 6}} {
		t.Run("", func(t *testing.T) {
			w := &battle{world: newWorld(t)}
			w.stall("before.ts")
			w.stall("xbehind.ts")
			w.server = w.serve(w.project)
			w.session = w.server.session(w.project)
			kills, lost, twice := 0, 0, 0
			for _, way := range half {
				steps := map[string]int{}
				for i := range ways[way].kills {
					kills++
					w.server.note(w.session, "hello again")
					w.awaiting(1)
					title := fmt.Sprintf("the end of work %d-%d.", way, i)
					ways[way].come(w, title)
					w.server.kill()
					w.sending.Wait()
					w.signal(w.asleep, syscall.SIGCONT)
					w.asleep = nil
					w.eventually("the await's end", func() bool { return len(w.children()) == 0 })
					w.unstall()
					w.server = w.serve(w.project)
					steps[step(w.story(w.project, title), w.stands(title))]++
					w.server.note(w.session, "here I am again")
					w.eventually("the end of the wake "+title, func() bool {
						story := w.story(w.project, title)
						return strings.HasPrefix(story[len(story)-1], "delivered")
					})
					switch n := w.stands(title); {
					case n == 0:
						lost++
						t.Errorf("%q is in no session, and its story is %q", title, w.story(w.project, title))
					case n > 1:
						twice++
						t.Logf("%q stands %d times in the session, and its story is %q", title, n, w.story(w.project, title))
					}
				}
				t.Logf("%d kills %s: %v", ways[way].kills, ways[way].name, steps)
			}
			t.Logf("%d kills: %d lost, %d told twice", kills, lost, twice)
		})
	}
}

// step is how far the wake had come when OpenCode was killed, by its story and what stands in the session then.
func step(story []string, stands int) string {
	switch last := story[len(story)-1]; {
	case strings.HasPrefix(last, "delivered"):
		return "acknowledged"
	case stands > 0:
		return "between message and acknowledgement"
	case last == "put":
		return "before the claim"
	default:
		return "between claim and message"
	}
}

// sendInto sends a wake and waits until its message is held up.
func (w *world) sendInto(title, name string) {
	w.t.Helper()
	w.write(w.path(name), "")
	w.send(title)
	w.eventually("a message that is held up", func() bool { return w.exists(name + ".reached") })
}

// together sends a wake while something else is done, and returns when that is; the sending is over before the next look.
func (w *battle) together(title string, do func()) {
	w.t.Helper()
	w.sending.Go(func() { w.send(title) })
	do()
}

// unstall lets messages through again.
func (w *battle) unstall() {
	w.t.Helper()
	for _, name := range []string{"before.ts", "xbehind.ts", "before.ts.reached", "xbehind.ts.reached"} {
		w.remove(w.path(name))
	}
}

// claimed reports whether a delivery is on its way. It looks at the files, since no command is fast enough.
func (w *world) claimed() bool {
	w.t.Helper()
	found, err := filepath.Glob(w.path("state/projects/*/wakes/.claimed/*/to.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(found) > 0 || holds(w.awaits(w.project))
}
