package route

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"vx/internal/pace"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// stop stops a process as Ctrl-Z does, until the test ends it.
func stop(id proc.ID) error { return syscall.Kill(id.PID, syscall.SIGSTOP) }

func TestWhatMayHaveArrivedIsToldByTheSession(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(code)
			rw.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		taken  bool
		busy   bool
		at10   string // where the wake is after ten seconds, and a little
		at60   string // after a minute
		end    string // after all
	}{
		"cut, and taken":      {answer: cut, taken: true, at10: "gone", at60: "gone", end: "gone"},
		"cut, and not taken":  {answer: cut, at10: "in hand", at60: "told again", end: "gone"},
		"cut, and busy":       {answer: cut, busy: true, at10: "in hand", at60: "in hand", end: "bad"},
		"500, and taken":      {answer: status(500, "{}"), taken: true, at10: "gone", at60: "gone", end: "gone"},
		"500, and not taken":  {answer: status(500, "{}"), at10: "waiting", at60: "told again", end: "gone"},
		"503, and busy":       {answer: status(503, "{}"), busy: true, at10: "in hand", at60: "in hand", end: "bad"},
		"garbage, not taken":  {answer: status(200, "<html></html>"), at10: "waiting", at60: "told again", end: "gone"},
		"garbage, and taken":  {answer: status(200, "<html></html>"), taken: true, at10: "gone", at60: "gone", end: "gone"},
		"a wrong 2xx, absent": {answer: status(202, ""), at10: "waiting", at60: "told again", end: "gone"},
	} {
		for _, version := range versions {
			t.Run(version+" "+name, func(t *testing.T) {
				w := newWorld(t)
				o := w.openCode(version)
				w.register(o.entry(w.client()))
				sent := 0
				o.prompt = func(rw http.ResponseWriter, r *http.Request) {
					sent++
					if c.taken {
						o.said = append(o.said, o.last)
					}
					c.answer(rw, r)
				}
				o.busy = c.busy
				w.put("the build")
				w.looks(5 * time.Second)
				if c.taken {
					w.is("gone")
				} else {
					w.is("in hand")
				}
				w.looks(5 * time.Second)
				w.is(c.at10)
				if sent != 1 {
					t.Fatalf("sent %d times", sent)
				}
				o.set(func() { o.prompt = nil })
				w.looks(overlooking + lastPause)
				if c.at60 == "told again" {
					if n := o.told("the build"); n != 1 {
						t.Errorf("told %d times", n)
					}
					w.is("gone")
				} else {
					w.is(c.at60)
				}
				w.looks(hoping)
				w.settled(c.end)
				if n := o.told("the build"); n > 1 {
					t.Errorf("told %d times", n)
				}
			})
		}
	}
}

func TestAServerThatHangsHoldsUpNobodyElse(t *testing.T) {
	if testing.Short() {
		t.Skip("a request is given ten seconds")
	}
	w := newWorld(t)
	o := w.openCode("1.18.33")
	w.register(o.entry(w.client()))
	hangs := make(chan bool)
	o.prompt = func(_ http.ResponseWriter, r *http.Request) {
		o.said = append(o.said, o.last)
		close(hangs)
		<-r.Context().Done() // given up
	}
	w.put("the build")
	there := newWorld(t)
	there.dir, there.shop = w.dir, w.dir.Project(there.shop.Root)
	there.queue = wake.Open(there.shop)
	there.must(there.queue.Ensure())
	other := there.openCode("1.18.33")
	there.register(other.entry(w.client()))
	there.put("the tests")
	all := []*state.Project{w.shop, there.shop}
	w.router.Look(t.Context(), all)
	<-hangs
	for end := time.Now().Add(time.Minute); other.told("the tests") == 0 && time.Now().Before(end); {
		w.router.Look(t.Context(), all)
		time.Sleep(10 * time.Millisecond)
	}
	if n := other.told("the tests"); n != 1 {
		t.Errorf("the other was told %d times", n)
	}
	w.router.Wait()
	w.looks(5 * time.Second)
	w.is("gone")
	if n := o.told("the build"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestWhileOneIsInDoubtNoOtherIsSent(t *testing.T) {
	w := newWorld(t)
	o := w.openCode("1.18.33")
	w.register(o.entry(w.client()))
	sent := 0
	o.prompt = func(rw http.ResponseWriter, r *http.Request) { sent++; cut(rw, r) }
	w.put("first")
	w.look()
	w.put("second")
	w.looks(25 * time.Second)
	if sent != 1 {
		t.Errorf("sent %d", sent)
	}
	o.set(func() { o.prompt = nil })
	w.looks(overlooking + lastPause)
	if o.told("first") != 1 || o.told("second") != 1 {
		t.Errorf("told %d and %d times", o.told("first"), o.told("second"))
	}
}

func TestWhatTheServerAcceptedAndDoesNotShowIsItsOwn(t *testing.T) {
	w := newWorld(t)
	o := w.openCode("1.18.33")
	o.hidden = true
	w.register(o.entry(w.client()))
	w.put("the build")
	w.looks(10 * time.Second)
	w.is("in hand")
	w.put("more")
	w.looks(5 * time.Second)
	if o.told("more") != 1 {
		t.Error("the next has to wait")
	}
	w.looks(2 * time.Minute)
	w.is("gone")
	if got := w.proof(); got != "delivered accepted by the server" {
		t.Errorf("the proof is %q", got)
	}
}

func TestASessionThatIsOpenedAgainTellsWhatBecameOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		version       string
		taken, answer bool
		again         bool
		end           string
		told          int
	}{
		"1.x, not taken":            {version: "1.18.33", again: true, end: "gone", told: 1},
		"1.x, taken":                {version: "1.18.33", taken: true, again: true, end: "gone", told: 1},
		"1.x, accepted and lost":    {version: "1.18.33", answer: true, again: true, end: "gone", told: 1},
		"1.x, accepted and taken":   {version: "1.18.33", taken: true, answer: true, again: true, end: "gone", told: 1},
		"1.x, and is not":           {version: "1.18.33", end: "bad"},
		"1.x, accepted, and is not": {version: "1.18.33", answer: true, end: "bad"},
		"2.x, not taken":            {version: "2.0.17", again: true, end: "gone", told: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o, client := w.openCode(c.version), w.client()
			w.register(o.entry(client))
			o.prompt = func(rw http.ResponseWriter, r *http.Request) {
				if c.taken {
					o.said = append(o.said, o.last)
				}
				client.kill()
				o.status = 503 // it answers nothing more
				if c.answer {
					rw.WriteHeader(http.StatusNoContent)
				} else {
					cut(rw, r)
				}
			}
			w.put("the build")
			w.looks(2 * time.Minute)
			w.is("in hand")
			if c.again {
				o.set(func() { o.status, o.prompt = 0, nil })
				w.register(o.entry(w.client()))
			}
			w.looks(hoping)
			w.settled(c.end)
			if n := o.told("the build"); n != c.told {
				t.Errorf("told %d times, want %d", n, c.told)
			}
		})
	}
}

func TestTheNextSentinelAsksAfterWhatTheLastHasSent(t *testing.T) {
	for _, taken := range []bool{true, false} {
		w := newWorld(t)
		o := w.openCode("1.18.33")
		w.register(o.entry(w.client()))
		o.prompt = func(rw http.ResponseWriter, r *http.Request) {
			if taken {
				o.said = append(o.said, o.last)
			}
			o.status = 503
			cut(rw, r)
		}
		w.put("the build")
		w.looks(time.Minute)
		w.is("in hand")
		for _, p := range w.router.projects {
			for _, d := range p.doubts {
				w.must(leave(d.delivery)) // as its death does
			}
		}
		o.set(func() { o.status, o.prompt = 0, nil })
		w.router = w.newRouter()
		w.looks(overlooking + lastPause)
		w.is("gone")
		if n := o.told("the build"); n != 1 {
			t.Errorf("taken %v: told %d times", taken, n)
		}
	}
}

func TestWhatTheSessionDoesNotShowGoesBackOnceAndThenIsKept(t *testing.T) {
	w := newWorld(t)
	o := w.openCode("1.18.33")
	w.register(o.entry(w.client()))
	sent := 0
	o.prompt = func(rw http.ResponseWriter, r *http.Request) { sent++; cut(rw, r) }
	w.put("the build")
	w.looks(time.Hour)
	w.settled("bad")
	if sent != 2 {
		t.Errorf("sent %d times", sent)
	}
}

func TestAServiceOf2IsGivenTimeThoughItsClientHasEnded(t *testing.T) {
	w := newWorld(t)
	o, client := w.openCode("2.0.17"), w.client()
	w.register(o.entry(client))
	o.prompt = cut
	w.put("the build")
	w.look()
	client.kill()
	w.looks(patience)
	w.is("in hand") // the service lives, and may have the request still
	w.looks(overlooking)
	w.is("waiting")
}

func TestTheSessionItselfIsAskedAndNoOther(t *testing.T) {
	w := newWorld(t)
	o, other := w.openCode("1.18.33"), w.openCode("1.18.33")
	c := w.client()
	first, last := o.entry(c), other.entry(w.client())
	first.Since, last.Since = time.Now(), time.Now().Add(-time.Hour)
	last.Session = "ses_another"
	w.register(first)
	o.prompt = func(rw http.ResponseWriter, r *http.Request) {
		o.said, o.status = append(o.said, o.last), 503
		cut(rw, r)
	}
	w.put("the build")
	w.look()
	last.Since = time.Now().Add(time.Hour)
	w.register(last)
	o.set(func() { o.status = 0 })
	w.looks(5 * time.Second)
	w.is("gone")
	if n := other.told("the build"); n != 0 {
		t.Errorf("the other was told %d times", n)
	}
	if p, err := pace.Read(w.shop, c.id); err != nil || len(p.Delivered) != 1 {
		t.Errorf("the brake has %+v, %v", p, err)
	}
}

func TestAProjectThatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.look()
	w.router.Look(t.Context(), nil)
	if n := len(w.router.projects); n != 0 {
		t.Errorf("%d are known still", n)
	}
}
