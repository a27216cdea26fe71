package route

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"vx/internal/commander"
	"vx/internal/pace"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

var versions = []string{"1.18.33", "2.0.17"}

func TestAnOpenCodeThatListensIsTold(t *testing.T) {
	for version, proof := range map[string]string{"1.18.33": "delivered shown in the session", "2.0.17": "delivered accepted by the server"} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			o, c := w.openCode(version), w.client()
			w.register(o.entry(c))
			w.put("the build is done")
			w.look()
			if n := o.told("the build is done"); n != 1 {
				t.Errorf("told %d times", n)
			}
			w.is("gone")
			if got := w.proof(); got != proof {
				t.Errorf("the proof is %q", got)
			}
			if p, err := pace.Read(w.shop, c.id); err != nil || len(p.Delivered) != 1 {
				t.Errorf("the brake has %+v, %v", p, err)
			}
			asked := o.asked
			w.looks(time.Minute)
			if o.asked != asked {
				t.Errorf("with nothing to tell it was asked %d times", o.asked-asked)
			}
			w.put("the tests are done")
			w.look()
			if n := o.told("the tests are done"); n != 1 {
				t.Errorf("the next was told %d times", n)
			}
		})
	}
}

func TestA2IsFoundByItsOwnRecordWithoutAnAddress(t *testing.T) {
	w := newWorld(t)
	o := w.openCode("2.0.17")
	e := o.entry(w.client())
	e.Server.URL = ""
	w.register(e)
	w.put("the build")
	w.look()
	if o.told("the build") != 1 {
		t.Error("it was not told")
	}
}

func TestTheLatestOfTwoIsTold(t *testing.T) {
	w := newWorld(t)
	first, second := w.openCode("1.18.33"), w.openCode("1.18.33")
	e := first.entry(w.client())
	e.Since = time.Now().Add(-time.Hour)
	w.register(e)
	w.register(second.entry(w.client()))
	w.put("the build")
	w.look()
	if first.told("the build") != 0 || second.told("the build") != 1 {
		t.Errorf("told %d and %d times", first.told("the build"), second.told("the build"))
	}
}

func TestALiveAwaitServes(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	o, c := w.openCode("1.18.33"), w.client()
	e, p := w.pane(o.entry(c))
	w.register(e)
	a := w.await("claude", w.client().id)
	w.put("the build")
	w.looks(5 * time.Minute)
	if o.told("the build") != 0 || typed(p, "the build") != 0 {
		t.Error("it was told on another way")
	}
	w.is("waiting")
	a.Close()
	w.look()
	if o.told("the build") != 1 {
		t.Error("once the await is gone it is not told")
	}
}

func TestAnOpenCodeThatHoldsAWakeForLongIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		harness string
		held    time.Duration
		told    int
	}{
		"opencode, long":  {"opencode", 31 * time.Second, 1},
		"opencode, short": {"opencode", 10 * time.Second, 0},
		"pi, long":        {"pi", time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o, client := w.openCode("1.18.33"), w.client()
			w.register(o.entry(client))
			a := w.await(c.harness, client.id)
			w.must(a.Hold(true))
			w.age(".hold", c.held)
			w.put("the build")
			w.look()
			if n := o.told("the build"); n != c.told {
				t.Errorf("told %d times, want %d", n, c.told)
			}
		})
	}
}

// age makes the awaiter's files with this ending older.
func (w *world) age(ext string, by time.Duration) {
	w.Helper()
	entries, err := os.ReadDir(w.dir.Awaiters())
	w.must(err)
	for _, e := range entries {
		if name := e.Name(); len(name) > len(ext) && name[len(name)-len(ext):] == ext {
			at := time.Now().Add(-by)
			w.must(os.Chtimes(w.dir.Awaiters()+"/"+name, at, at))
		}
	}
}

func TestNobodyIsToldOfAMutedProject(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	o := w.openCode("1.18.33")
	e, p := w.pane(o.entry(w.client()))
	w.register(e)
	w.choose(func(c *state.Config) { c.MutedUntil = time.Now().Add(time.Hour) })
	w.put("the build")
	w.looks(5 * time.Minute)
	if o.told("the build") != 0 || typed(p, "the build") != 0 {
		t.Error("it was told")
	}
	w.choose(func(c *state.Config) { c.MutedUntil = time.Time{} })
	w.look()
	if o.told("the build") != 1 {
		t.Error("it was not told after the mute")
	}
}

func TestAClientOnTheBrakeIsNotTold(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	o, c := w.openCode("1.18.33"), w.client()
	e, p := w.pane(o.entry(c))
	w.register(e)
	brake := pace.Pace{Client: c.id, Boot: proc.BootID(), Delivered: []time.Duration{proc.SinceBoot()}, Doubled: 3}
	w.must(brake.Write(w.shop))
	w.put("the build")
	w.looks(5 * time.Minute)
	if o.told("the build") != 0 || typed(p, "the build") != 0 {
		t.Error("it was told")
	}
	w.must(pace.Forget(w.shop, c.id))
	w.look()
	if o.told("the build") != 1 {
		t.Error("it was not told when its person was back")
	}
}

func TestOldNewsIsNotTold(t *testing.T) {
	w := newWorld(t)
	w.router.News = func(*state.Dir, *state.Project) func(*wake.Wake) (string, error) {
		return func(*wake.Wake) (string, error) { return "struck", nil }
	}
	o := w.openCode("1.18.33")
	w.register(o.entry(w.client()))
	w.put("the build")
	w.look()
	if o.told("the build") != 0 {
		t.Error("it was told")
	}
	w.is("gone")
}

func TestWhatAServerDoesNotTakeGoesBackAndIsTriedAgain(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) }))
	defer elsewhere.Close()
	status := func(code int) func(*openCode, *commander.Entry) {
		return func(o *openCode, _ *commander.Entry) {
			o.prompt = func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "{}", code) }
		}
	}
	for name, spoil := range map[string]func(*openCode, *commander.Entry){
		"prompt 400": status(400), "prompt 401": status(401), "prompt 403": status(403), "prompt 404": status(404),
		"prompt redirected": func(o *openCode, _ *commander.Entry) {
			o.prompt = func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, elsewhere.URL, http.StatusTemporaryRedirect)
			}
		},
		"401 on everything": func(o *openCode, _ *commander.Entry) { o.status = 401 },
		"500 on everything": func(o *openCode, _ *commander.Entry) { o.status = 500 },
		"another directory": func(o *openCode, _ *commander.Entry) { o.directory = "/" },
	} {
		for _, version := range versions {
			t.Run(version+" "+name, func(t *testing.T) {
				w := newWorld(t)
				o := w.openCode(version)
				e := o.entry(w.client())
				spoil(o, &e)
				w.register(e)
				w.put("the build")
				w.look()
				w.is("waiting")
				asked := o.asked
				w.look()
				if o.asked != asked {
					t.Error("it is asked again at once")
				}
				w.looks(time.Minute)
				w.is("waiting")
				if n := o.told("the build"); n != 0 {
					t.Errorf("told %d times", n)
				}
				o.set(func() { o.prompt, o.status, o.directory = nil, 0, w.shop.Root })
				w.looks(lastPause)
				if n := o.told("the build"); n != 1 {
					t.Errorf("told %d times", n)
				}
				w.is("gone")
			})
		}
	}
}

func TestAServerThatIsNotThereLosesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*world, *openCode, *commander.Entry){
		"nobody listens":        func(_ *world, o *openCode, _ *commander.Entry) { o.Close() },
		"another machine":       func(_ *world, _ *openCode, e *commander.Entry) { e.Server.URL = "http://192.0.2.1:4096" },
		"a version of tomorrow": func(_ *world, _ *openCode, e *commander.Entry) { e.Server.Version = "3.0.0" },
		"another session":       func(_ *world, _ *openCode, e *commander.Entry) { e.Session = "ses_another" },
		"no session":            func(_ *world, _ *openCode, e *commander.Entry) { e.Session = "" },
		"no address":            func(_ *world, _ *openCode, e *commander.Entry) { e.Server.URL = "" },
		"another harness":       func(_ *world, _ *openCode, e *commander.Entry) { e.Harness = "pi" },
		"a client that is stopped": func(w *world, _ *openCode, e *commander.Entry) {
			w.must(stop(e.Process))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.openCode("1.18.33")
			e := o.entry(w.client())
			spoil(w, o, &e)
			w.register(e)
			w.put("the build")
			w.looks(time.Minute)
			w.is("waiting")
			if n := o.told("the build"); n != 0 {
				t.Errorf("told %d times", n)
			}
		})
	}
}
