package route

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/herdr"
	"vx/internal/herdr/herdrtest"
	"vx/internal/pace"
	"vx/internal/proc"
	"vx/internal/state"
)

// claudeCode is a commander in a pane, of Claude Code, with its session's record and transcript.
type claudeCode struct {
	*world
	client
	pane  *herdrtest.Pane
	entry commander.Entry
	path  string // of the transcript
	lift  func() // what is wrong with its herdr
}

func (w *world) claudeCode() *claudeCode {
	w.Helper()
	c := &claudeCode{world: w, client: w.client()}
	c.entry, c.pane = w.pane(commander.Entry{Harness: "claude", Process: c.id})
	config := os.Getenv("CLAUDE_CONFIG_DIR")
	c.path = filepath.Join(config, "projects", "p", c.session()+".jsonl")
	w.must(os.MkdirAll(filepath.Dir(c.path), 0o700))
	w.must(os.MkdirAll(filepath.Join(config, "sessions"), 0o700))
	w.Cleanup(func() { os.Remove(c.record()); os.Remove(c.path) })
	c.status("idle")
	c.row("user", "hello")
	w.register(c.entry)
	return c
}

func (c *claudeCode) session() string { return "s" + strconv.Itoa(c.id.PID) }

func (c *claudeCode) record() string {
	return filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "sessions", strconv.Itoa(c.id.PID)+".json")
}

func (c *claudeCode) status(status string) {
	c.Helper()
	data, err := json.Marshal(object{
		"pid": c.id.PID, "procStart": strconv.FormatUint(c.id.Start, 10), "sessionId": c.session(), "cwd": "/", "version": "2.1.332",
		"kind": "interactive", "entrypoint": "cli", "status": status,
	})
	c.must(err)
	c.must(os.WriteFile(c.record(), data, 0o644))
}

// row adds to the transcript.
func (c *claudeCode) row(kind, text string) {
	c.Helper()
	row := object{"type": kind, "timestamp": time.Now().UTC().Format(time.RFC3339Nano), "message": object{"role": kind, "content": text}}
	if kind == "error" {
		row["type"], row["isApiErrorMessage"] = "assistant", true
		row["message"] = object{"role": "assistant", "content": []object{{"type": "text", "text": text}}}
	}
	data, err := json.Marshal(row)
	c.must(err)
	f, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	c.must(err)
	_, err = fmt.Fprintf(f, "%s\n", data)
	c.must(err)
	c.must(f.Close())
}

func TestAWakeIsTypedAfterHalfAMinuteOnceItsUserWantsThat(t *testing.T) {
	w := newWorld(t)
	c := w.claudeCode()
	w.put("the build")
	w.looks(5 * time.Minute)
	if n := typed(c.pane, "the build"); n != 0 {
		t.Fatalf("typed %d times, and nobody wants it", n)
	}
	w.nudges()
	w = &world{T: t, dir: w.dir, shop: w.shop, queue: w.queue, herdr: w.herdr}
	w.router = w.newRouter()
	w.now.Store(int64(time.Hour))
	w.looks(25 * time.Second)
	if n := typed(c.pane, "the build"); n != 0 {
		t.Fatalf("typed %d times after 25 seconds", n)
	}
	w.looks(5 * time.Second)
	if n := typed(c.pane, "the build"); n != 1 {
		t.Fatalf("typed %d times after 30 seconds:\n%s", n, w.log.String())
	}
	w.is("emitted")
	w.settledAs(c, "delivered turn started")
	if p, err := pace.Read(w.shop, c.id); err != nil || len(p.Delivered) != 1 {
		t.Errorf("the brake has %+v, %v", p, err)
	}
	w.looks(5 * time.Minute)
	if n := typed(c.pane, "the build"); n != 1 {
		t.Errorf("typed %d times", n)
	}
}

// settledAs has the turn started that was typed, and settles.
func (w *world) settledAs(c *claudeCode, want string) {
	w.Helper()
	prompts := c.pane.Prompts()
	c.row("user", prompts[len(prompts)-1].Text)
	w.settled("gone")
	if got := w.proof(); got != want {
		w.Errorf("the proof is %q, want %q", got, want)
	}
}

func TestEveryHarnessIsNudged(t *testing.T) {
	for _, harness := range []string{"pi", "opencode"} {
		w := newWorld(t)
		w.nudges()
		e, p := w.pane(commander.Entry{Harness: harness, Process: w.client().id})
		w.register(e)
		w.put("the build")
		w.looks(time.Minute)
		if n := typed(p, "the build"); n != 1 {
			t.Errorf("%s: typed %d times\n%s", harness, n, w.log.String())
		}
		w.settled("gone")
	}
}

func TestNothingIsTypedWhereItWouldBeInTheWay(t *testing.T) {
	cases := map[string]struct {
		spoil, mend func(w *world, c *claudeCode)
	}{
		"it works":               {func(_ *world, c *claudeCode) { c.pane.Working() }, func(_ *world, c *claudeCode) { c.pane.Idle() }},
		"it waits at a question": {func(_ *world, c *claudeCode) { c.pane.Blocked() }, func(_ *world, c *claudeCode) { c.pane.Idle() }},
		"herdr cannot tell":      {func(_ *world, c *claudeCode) { c.pane.Unknown() }, func(_ *world, c *claudeCode) { c.pane.Idle() }},
		"its own record says it works": {
			func(_ *world, c *claudeCode) { c.status("busy") }, func(_ *world, c *claudeCode) { c.status("idle") },
		},
		"something stands in its prompt": {
			func(w *world, c *claudeCode) { c.pane.Show(unsent(w.screen("claude"))) },
			func(w *world, c *claudeCode) { c.pane.Show(w.screen("claude")) },
		},
		"its screen is not understood": {
			func(_ *world, c *claudeCode) { c.pane.Show("$ ls\n") }, func(w *world, c *claudeCode) { c.pane.Show(w.screen("claude")) },
		},
		"its user has scrolled back": {
			func(_ *world, c *claudeCode) { c.pane.ScrollTo(20, "earlier\n") }, func(_ *world, c *claudeCode) { c.pane.ScrollTo(0, "") },
		},
		"herdr does not show it": {func(_ *world, c *claudeCode) { c.pane.Hide(true) }, func(_ *world, c *claudeCode) { c.pane.Hide(false) }},
		"its pane cannot be read": {
			func(_ *world, c *claudeCode) {
				c.lift = c.herdr.Inject(herdrtest.Fault{Method: "pane.read", Error: &herdrtest.Error{Code: "internal_error", Message: "no"}})
			},
			func(_ *world, c *claudeCode) { c.lift() },
		},
		"another terminal": {
			func(w *world, c *claudeCode) {
				w.register(c.with(func(e *commander.Entry) { e.Terminal = "term_00000000000099" }))
			},
			func(w *world, c *claudeCode) { w.register(c.entry) },
		},
		"another program": {
			func(w *world, c *claudeCode) { w.register(c.with(func(e *commander.Entry) { e.Harness = "pi" })) },
			func(w *world, c *claudeCode) { w.register(c.entry) },
		},
		"a turn has failed": {
			func(_ *world, c *claudeCode) { c.row("error", "API Error: 529") }, func(_ *world, c *claudeCode) { c.row("assistant", "done") },
		},
		"it is muted": {
			func(w *world, _ *claudeCode) {
				w.choose(func(c *state.Config) { c.MutedUntil = time.Now().Add(time.Hour) })
			},
			func(w *world, _ *claudeCode) { w.choose(func(c *state.Config) { c.MutedUntil = time.Time{} }) },
		},
		"herdr refuses": {
			func(_ *world, c *claudeCode) {
				c.lift = c.herdr.Inject(herdrtest.Fault{Method: "agent.prompt", Error: &herdrtest.Error{Code: "agent_blocked", Message: "no"}})
			},
			func(_ *world, c *claudeCode) { c.lift() },
		},
		"herdr is gone": {func(w *world, _ *claudeCode) { w.herdr.Stop() }, func(w *world, _ *claudeCode) { w.herdr.Start() }},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nudges()
			c := w.claudeCode()
			test.spoil(w, c)
			w.put("the build")
			w.looks(3 * time.Minute)
			if n := len(c.pane.Prompts()); n != 0 {
				t.Fatalf("typed %d times", n)
			}
			w.is("waiting")
			test.mend(w, c)
			w.looks(time.Minute)
			if n := typed(c.pane, "the build"); n != 1 {
				t.Errorf("mended, it is typed %d times", n)
			}
		})
	}
}

// unsent is a screen of Claude Code with a word in its prompt, and so without its hint.
func unsent(screen string) string {
	at := strings.LastIndex(screen, "❯") + len("❯")
	return screen[:at] + " wait" + strings.Replace(screen[at:], "· ? for shortcuts", "", 1)
}

// with is the entry with something else in it.
func (c *claudeCode) with(change func(*commander.Entry)) commander.Entry {
	e := c.entry
	change(&e)
	return e
}

func TestWhatMayHaveBeenTypedIsNotTypedAgain(t *testing.T) {
	refusal := func(code string) herdrtest.Fault {
		return herdrtest.Fault{Method: "agent.prompt", Error: &herdrtest.Error{Code: code, Message: "no"}}
	}
	for name, c := range map[string]struct {
		fault herdrtest.Fault
		typed int
		turn  bool // shown in the transcript
		end   string
	}{
		"the answer is lost":                      {herdrtest.Fault{Method: "agent.prompt", Drop: true}, 1, false, "bad"},
		"the answer is lost, and the turn starts": {herdrtest.Fault{Method: "agent.prompt", Drop: true}, 1, true, "gone"},
		"the request is lost":                     {herdrtest.Fault{Method: "agent.prompt", Drop: true, Unserved: true}, 0, false, "bad"},
		"garbage":                                 {herdrtest.Fault{Method: "agent.prompt", Line: []byte("{}\n")}, 0, false, "bad"},
		"herdr is at a loss":                      {refusal("internal_error"), 0, false, "bad"},
		"the agent ends":                          {refusal("agent_not_running"), 0, false, "bad"},
		"it stalls, and the turn starts":          {refusal("agent_prompt_stalled"), 0, true, "gone"},
		"a code of tomorrow":                      {refusal("of_tomorrow"), 0, false, "bad"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.nudges()
			who := w.claudeCode()
			lift := w.herdr.Inject(c.fault)
			w.put("the build")
			w.looks(time.Minute)
			w.is("in hand")
			lift()
			if c.turn {
				who.row("user", w.tokenText())
			}
			w.settled(c.end)
			w.looks(5 * time.Minute)
			if n := typed(who.pane, "the build"); n != c.typed {
				t.Errorf("typed %d times, want %d", n, c.typed)
			}
		})
	}
}

// tokenText is a text with the token of the delivery in hand.
func (w *world) tokenText() string {
	w.Helper()
	entries, err := os.ReadDir(filepath.Join(w.queue.Dir(), ".claimed"))
	w.must(err)
	return "vx: news (delivery " + entries[0].Name() + ")"
}

func TestAnOpenCodeThatDoesNotAnswerIsTypedToOnceItIsIdle(t *testing.T) {
	w := newWorld(t) // its user has not asked for nudges
	o := w.openCode("1.18.33")
	o.status = 500
	e, p := w.pane(o.entry(w.client()))
	w.register(e)
	p.Working()
	w.put("the build")
	w.looks(2 * time.Minute)
	if n := typed(p, "the build"); n != 0 {
		t.Fatalf("typed %d times while it works", n)
	}
	w.is("waiting")
	p.Idle()
	w.looks(lastPause)
	if typed(p, "the build") != 1 || o.told("the build") != 0 {
		t.Errorf("typed %d times, told %d times\n%s", typed(p, "the build"), o.told("the build"), w.log.String())
	}
	w.settled("gone")
}

func TestAnOpenCodeThatAnswersWronglyEachTimeIsTypedToInTheEnd(t *testing.T) {
	w := newWorld(t)
	o := w.openCode("1.18.33")
	o.prompt = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) }
	e, p := w.pane(o.entry(w.client()))
	w.register(e)
	w.put("the build")
	w.looks(2 * time.Minute)
	if n := typed(p, "the build"); n != 1 {
		t.Errorf("typed %d times\n%s", n, w.log.String())
	}
	w.settled("gone")
}

func TestAPaneWhoseTerminalIsNotKnownIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	e, _ := w.pane(commander.Entry{Harness: "pi", Process: w.client().id})
	e.Terminal = ""
	w.register(e)
	asked := len(w.herdr.Requests(""))
	w.put("the build")
	w.looks(time.Minute)
	if n := len(w.herdr.Requests("")) - asked; n != 0 {
		t.Errorf("herdr was asked %d times", n)
	}
}

func TestOneThatFailsForTheFirstTimeIsNotTypedToThoughTheWakeIsOld(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	o, c := w.openCode("1.18.33"), w.client()
	o.status = 500
	e, p := w.pane(o.entry(c))
	w.register(e)
	brake := pace.Pace{Client: c.id, Boot: proc.BootID(), Delivered: []time.Duration{proc.SinceBoot()}, Doubled: 3}
	w.must(brake.Write(w.shop))
	w.put("the build")
	w.looks(time.Minute)
	w.must(pace.Forget(w.shop, c.id))
	w.looks(25 * time.Second)
	if n := typed(p, "the build"); n != 0 {
		t.Errorf("typed %d times", n)
	}
	w.looks(lastPause)
	if n := typed(p, "the build"); n != 1 {
		t.Errorf("typed %d times", n)
	}
}

func TestOnlyARefusalSaysThatNothingWasTyped(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{herdr.ErrUnreachable, true},
		{&herdr.Error{Code: herdr.AgentBlocked}, true},
		{&herdr.Error{Code: herdr.AgentNotFound}, true},
		{herdr.ErrTimeout, false},
		{herdr.ErrCut, false},
		{herdr.ErrGarbage, false},
		{&herdr.Error{Code: herdr.PromptStalled}, false},
		{&herdr.Error{Code: herdr.AgentNotRunning}, false},
		{&herdr.Error{Code: "agent_prompt_failed"}, false},
	} {
		if got := refused(fmt.Errorf("herdr agent.prompt: %w", c.err)); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

func TestItIsTypedToOnlyAfterHalfAMinuteOfFailing(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	o := w.openCode("1.18.33")
	o.status = 500
	e, p := w.pane(o.entry(w.client()))
	w.register(e)
	w.put("the build")
	w.looks(25 * time.Second)
	if n := typed(p, "the build"); n != 0 {
		t.Errorf("typed %d times", n)
	}
	o.set(func() { o.status = 0 })
	w.looks(lastPause)
	if typed(p, "the build") != 0 || o.told("the build") != 1 {
		t.Errorf("typed %d times, told %d times", typed(p, "the build"), o.told("the build"))
	}
}

func TestWhatMayHaveArrivedOverHTTPIsNotTyped(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	o := w.openCode("1.18.33")
	e, p := w.pane(o.entry(w.client()))
	w.register(e)
	o.prompt = func(rw http.ResponseWriter, r *http.Request) {
		o.said, o.status = append(o.said, o.last), 500
		cut(rw, r)
	}
	w.put("the build")
	w.looks(2 * hoping)
	if n := typed(p, "the build"); n != 0 {
		t.Errorf("typed %d times", n)
	}
	w.settled("bad")
}

func TestAnOpenCodeThatListensIsNotTypedTo(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	o := w.openCode("1.18.33")
	e, p := w.pane(o.entry(w.client()))
	w.register(e)
	for range 3 {
		w.put("the build")
		w.looks(time.Minute)
	}
	if typed(p, "the build") != 0 || o.told("the build") != 3 {
		t.Errorf("typed %d times, told %d times", typed(p, "the build"), o.told("the build"))
	}
}

func TestWhatWasTypedToAnOpenCodeItsSessionTells(t *testing.T) {
	for _, taken := range []bool{true, false} {
		w := newWorld(t)
		o := w.openCode("1.18.33")
		o.status = 500
		e, p := w.pane(o.entry(w.client()))
		w.register(e)
		w.herdr.Inject(herdrtest.Fault{Method: "agent.prompt", Drop: true, Unserved: true})
		w.put("the build")
		w.looks(time.Minute)
		w.is("in hand")
		o.set(func() { o.status = 0 })
		want := "bad"
		if taken {
			want = "gone"
			o.set(func() { o.said = append(o.said, w.tokenText()) })
		}
		w.looks(hoping)
		w.settled(want)
		if n := o.told("the build") + typed(p, "the build"); n != 0 {
			t.Errorf("told %d times more", n)
		}
	}
}

func TestWhomAnAwaitServedIsRememberedWhereWakesMayBeTyped(t *testing.T) {
	for _, nudges := range []bool{true, false} {
		w := newWorld(t)
		if nudges {
			w.nudges()
		}
		c := w.client()
		e, p := w.pane(commander.Entry{Harness: "pi", Process: c.id})
		r := awaiter.Record{
			Process: proc.Self(), Project: w.shop.Root, Client: c.id, Harness: "pi", Session: "s1", Pane: e.Pane, Socket: e.Socket, Since: time.Now(),
		}
		a, err := awaiter.Register(w.dir, w.shop, r)
		w.must(err)
		w.meet()
		w.must(a.Close())
		w.meet()
		if live, err := commander.Live(w.dir, w.shop); err != nil || len(live) == 1 != nudges {
			t.Errorf("wanted %v: %+v are known, %v", nudges, live, err)
		}
		w.put("the build")
		w.looks(time.Minute)
		if n := typed(p, "the build"); n == 1 != nudges {
			t.Errorf("wanted %v: typed %d times\n%s", nudges, n, w.log.String())
		}
	}
}

func TestAHerdrThatDoesNotTellTheTerminalIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.nudges()
	c := w.client()
	e, _ := w.pane(commander.Entry{Harness: "pi", Process: c.id})
	later := filepath.Join(t.TempDir(), "herdr.sock")
	a, err := awaiter.Register(w.dir, w.shop, awaiter.Record{
		Process: proc.Self(), Project: w.shop.Root, Client: c.id, Harness: "pi", Session: "s1", Pane: e.Pane, Socket: later, Since: time.Now(),
	})
	w.must(err)
	defer a.Close()
	terminal := func() string {
		live, err := commander.Live(w.dir, w.shop)
		w.must(err)
		if len(live) != 1 {
			t.Fatalf("%+v", live)
		}
		return live[0].Terminal
	}
	awaits := w.meet()
	w.must(os.Symlink(w.herdr.Socket, later))
	w.router.Remember(w.Context(), awaits)
	if got := terminal(); got != "" {
		t.Errorf("asked again at once: %q", got)
	}
	w.now.Add(int64(askAgain))
	w.router.Remember(w.Context(), awaits)
	if got := terminal(); got != e.Terminal {
		t.Errorf("terminal %q, want %q", got, e.Terminal)
	}
	w.must(os.Remove(later))
	w.now.Add(int64(askAgain))
	w.router.Remember(w.Context(), awaits)
	if w.router.again != 0 {
		t.Error("it asks on, though it knows all")
	}
}

// meet has the router see who waits.
func (w *world) meet() []awaiter.Entry {
	w.Helper()
	live, err := awaiter.List(w.dir, nil)
	w.must(err)
	w.router.Remember(w.Context(), live)
	return live
}
