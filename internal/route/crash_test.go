package route

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/state"
	"vx/internal/wake"
)

// dieAt is a sentinel that is killed at a step of a delivery.
func dieAt(step wake.Step) {
	dir, err := state.OpenAt(os.Getenv("VXTEST_STATE"))
	if err != nil {
		panic(err)
	}
	now := time.Hour
	r := New(Config{
		Dir: dir, Log: slog.New(slog.DiscardHandler), Awake: func() time.Duration { return now },
		Before: func(s wake.Step) error {
			if s == step {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		},
	})
	for range 20 {
		r.Look(context.Background(), []*state.Project{dir.Project(os.Getenv("VXTEST_PROJECT"))})
		r.Wait()
		now += 5 * time.Second
	}
	os.Exit(3) // it lives
}

// dies has a sentinel look after the project until it is killed at the step.
func (w *world) dies(step wake.Step) {
	w.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "VXTEST_DIES_AT="+string(step), "VXTEST_STATE="+w.dir.Path(), "VXTEST_PROJECT="+w.shop.Root)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		w.Fatalf("it is not killed at %s: %v\n%s", step, err, out)
	}
}

var toTheSending = []wake.Step{wake.Making, wake.Made, wake.Claimed, wake.Noting, wake.Noted, wake.Sending, wake.Sent}

func TestASentinelThatIsKilledLosesNothingAndTellsNothingTwice(t *testing.T) {
	for _, version := range versions {
		for _, step := range append(toTheSending, wake.Accepting, wake.Accepted, wake.Emitted, wake.Settling) {
			t.Run(version+" "+string(step), func(t *testing.T) {
				w := newWorld(t)
				o := w.openCode(version)
				w.register(o.entry(w.client()))
				w.put("the build")
				w.dies(step)
				w.must(wake.Open(w.shop).Settle(t.Context()))
				w.looks(overlooking + lastPause)
				w.settled("gone")
				if n := o.told("the build"); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		}
	}
}

func TestASentinelThatIsKilledWhileItPutsBackLosesNothing(t *testing.T) {
	for _, version := range versions {
		w := newWorld(t)
		o := w.openCode(version)
		w.register(o.entry(w.client()))
		o.prompt = func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "{}", 400) }
		w.put("the build")
		w.dies(wake.Releasing)
		w.must(w.queue.Settle(t.Context()))
		o.set(func() { o.prompt = nil })
		w.looks(time.Minute)
		w.is("gone")
		if n := o.told("the build"); n != 1 {
			t.Errorf("%s: told %d times", version, n)
		}
	}
}

func TestASentinelThatIsKilledWhileItTypesTypesNothingTwice(t *testing.T) {
	for _, step := range append(toTheSending, wake.Printed, wake.Emitted) {
		t.Run(string(step), func(t *testing.T) {
			w := newWorld(t)
			w.nudges()
			c := w.claudeCode()
			c.pane.OnPrompt(func(_ *herdrtest.Pane, text string) []herdrtest.Step {
				c.row("user", text)
				return []herdrtest.Step{{State: herdrtest.Working}}
			})
			w.put("the build")
			w.dies(step)
			w.must(w.queue.Settle(t.Context()))
			w.looks(2 * time.Minute)
			want, end := 1, "gone"
			if step == wake.Sent {
				want, end = 0, "bad" // nobody can say that it was not typed
			}
			w.settled(end)
			if n := typed(c.pane, "the build"); n != want {
				t.Errorf("typed %d times", n)
			}
		})
	}
}
