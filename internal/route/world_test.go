package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// The test binary is also a sentinel that dies at a step, when it is called so; see crash_test.go.
func TestMain(m *testing.M) {
	if at := os.Getenv("VXTEST_DIES_AT"); at != "" {
		dieAt(wake.Step(at))
	}
	home, err := os.MkdirTemp("", "vx-route-")
	if err == nil {
		err = errors.Join(os.Setenv("HOME", home), os.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(home, ".claude")),
			os.Setenv("XDG_STATE_HOME", filepath.Join(home, "state")), os.Setenv("VEXILLUM_HOME", filepath.Join(home, "vx")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// world is a machine with a state directory, one project and a router, whose time the test moves.
type world struct {
	*testing.T
	dir    *state.Dir
	shop   *state.Project
	queue  *wake.Queue
	router *Router
	now    atomic.Int64 // the time that the machine was awake
	log    strings.Builder
	herdr  *herdrtest.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := state.OpenAt(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: dir, shop: dir.Project(root)}
	w.queue = wake.Open(w.shop)
	w.queue.Grace = 0
	w.must(w.queue.Ensure())
	w.now.Store(int64(time.Hour))
	w.router = w.newRouter()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	return w
}

// newRouter is that of another sentinel.
func (w *world) newRouter() *Router {
	return New(Config{
		Dir: w.dir, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Awake: func() time.Duration { return time.Duration(w.now.Load()) },
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// look is one look of the router, to its end.
func (w *world) look() {
	w.router.Look(context.Background(), []*state.Project{w.shop})
	w.router.Wait()
}

// looks goes on looking, every five seconds for so long.
func (w *world) looks(d time.Duration) {
	w.look()
	for ; d > 0; d -= 5 * time.Second {
		w.now.Add(int64(5 * time.Second))
		w.look()
	}
}

func (w *world) choose(change func(*state.Config)) {
	w.Helper()
	w.must(w.shop.Update(change))
}

func (w *world) nudges() { w.choose(func(c *state.Config) { c.Nudge = true }) }

func (w *world) put(title string) {
	w.Helper()
	_, err := w.queue.Put(w.Context(), wake.Wake{Title: title})
	w.must(err)
}

// where is where the one wake is.
func (w *world) where() string {
	w.Helper()
	l, err := w.queue.List(0)
	w.must(err)
	switch n := fmt.Sprint(len(l.Waiting), len(l.Claimed), len(l.Emitted), len(l.Bad)); n {
	case "1 0 0 0":
		return "waiting"
	case "0 1 0 0":
		return "in hand"
	case "0 0 1 0":
		return "emitted"
	case "0 0 0 1":
		return "bad"
	case "0 0 0 0":
		return "gone"
	default:
		return n
	}
}

func (w *world) is(want string) {
	w.Helper()
	if got := w.where(); got != want {
		w.Errorf("the wake is %s, want %s", got, want)
	}
}

// settled is where it is once its delivery was judged by the queue's own rules.
func (w *world) settled(want string) {
	w.Helper()
	w.must(w.queue.Settle(w.Context()))
	w.is(want)
}

// proof is what the last event in the history says.
func (w *world) proof() string {
	w.Helper()
	all, err := w.queue.History(0)
	w.must(err)
	last := all[len(all)-1]
	return strings.TrimSpace(last.Event + " " + last.Proof + last.Why)
}

// client is a process that a commander runs in.
type client struct {
	*exec.Cmd
	id proc.ID
}

func (w *world) client() client {
	w.Helper()
	c := client{Cmd: exec.Command("sleep", "1000")}
	w.must(c.Start())
	w.Cleanup(c.kill)
	var err error
	c.id, err = proc.Find(c.Process.Pid)
	w.must(err)
	return c
}

func (c client) kill() {
	c.Process.Kill()
	c.Wait()
}

func (w *world) register(e commander.Entry) {
	w.Helper()
	w.must(commander.Register(w.shop, e))
}

// await is a live await for a client.
func (w *world) await(harness string, id proc.ID) *awaiter.Awaiter {
	w.Helper()
	a, err := awaiter.Register(w.dir, w.shop, awaiter.Record{Process: proc.Self(), Project: w.shop.Root, Client: id, Harness: harness, Since: time.Now()})
	w.must(err)
	w.Cleanup(func() { a.Close() })
	return a
}

const ses = "ses_22ef2767600147OMIk"

// openCode is an OpenCode with one session, to the routes that are known of its version.
type openCode struct {
	*httptest.Server
	version, directory string

	mu     sync.Mutex
	prompt http.HandlerFunc // answers prompts in its place, if it is set
	said   []string         // the texts that were taken
	last   string           // that was sent
	hidden bool             // and are not shown
	busy   bool
	status int // answers everything with it, if it is set
	asked  int
}

func (w *world) openCode(version string) *openCode {
	o := &openCode{version: version, directory: w.shop.Root}
	mux := http.NewServeMux()
	at, prompt := "/session", "/prompt_async"
	if (&commander.Server{Version: version}).Second() {
		at, prompt = "/api/session", "/prompt"
	}
	mux.HandleFunc("GET /api/info", func(rw http.ResponseWriter, _ *http.Request) {
		o.send(rw, object{"pid": os.Getpid(), "version": version})
	})
	mux.HandleFunc("GET "+at+"/"+ses, func(rw http.ResponseWriter, _ *http.Request) {
		o.send(rw, object{"id": ses, "directory": o.directory}, object{"id": ses, "location": object{"directory": o.directory}})
	})
	mux.HandleFunc("GET "+at+"/"+ses+"/message", func(rw http.ResponseWriter, _ *http.Request) {
		first, later := []object{}, []object{}
		for _, text := range o.said {
			if !o.hidden {
				first = append(first, object{"info": object{"role": "user"}, "parts": []object{{"type": "text", "text": text}}})
				later = append(later, object{"type": "user", "text": text})
			}
		}
		o.send(rw, first, later)
	})
	for _, route := range []string{"/session/status", "/api/session/active"} {
		mux.HandleFunc("GET "+route, func(rw http.ResponseWriter, _ *http.Request) {
			active := object{}
			if o.busy {
				active[ses] = object{"type": "busy"}
			}
			o.send(rw, active, active)
		})
	}
	mux.HandleFunc("POST "+at+"/"+ses+prompt, func(rw http.ResponseWriter, r *http.Request) {
		o.last = read(r)
		if o.prompt != nil {
			o.prompt(rw, r)
			return
		}
		o.said = append(o.said, o.last)
		if (&commander.Server{Version: version}).Second() {
			o.send(rw, nil, object{"id": "msg_1"})
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
	o.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.asked++; o.status != 0 {
			http.Error(rw, "{}", o.status)
			return
		}
		mux.ServeHTTP(rw, r)
	}))
	w.Cleanup(o.Close)
	if (&commander.Server{Version: version}).Second() {
		path := filepath.Join(os.Getenv("XDG_STATE_HOME"), "opencode", "service.json")
		w.must(os.MkdirAll(filepath.Dir(path), 0o700))
		w.Cleanup(func() { os.Remove(path) })
		data, err := json.Marshal(object{"url": o.URL, "version": version, "pid": os.Getpid()})
		w.must(err)
		w.must(os.WriteFile(path, data, 0o600))
	}
	return o
}

type object map[string]any

// send answers with the first for 1.x, and with the last as 2.x wraps it.
func (o *openCode) send(rw http.ResponseWriter, answers ...any) {
	answer := answers[0]
	if (&commander.Server{Version: o.version}).Second() && len(answers) > 1 {
		answer = object{"data": answers[1]}
	}
	json.NewEncoder(rw).Encode(answer)
}

// read is the text of a prompt of either version.
func read(r *http.Request) string {
	var body struct {
		Text  string
		Parts []struct{ Text string }
	}
	json.NewDecoder(r.Body).Decode(&body)
	for _, part := range body.Parts {
		body.Text += part.Text
	}
	return body.Text
}

// set changes how it answers.
func (o *openCode) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// told is how often it was told of something.
func (o *openCode) told(title string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, text := range o.said {
		n += strings.Count(text, title)
	}
	return n
}

// cut closes the connection without an answer.
func cut(rw http.ResponseWriter, _ *http.Request) {
	conn, _, err := rw.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

// entry is a commander in the OpenCode's session.
func (o *openCode) entry(c client) commander.Entry {
	return commander.Entry{
		Harness: "opencode", Session: ses, Process: c.id,
		Server: &commander.Server{URL: o.URL, Version: o.version, Directory: o.directory},
	}
}

// pane puts a commander into a pane of a herdr, where it is idle.
func (w *world) pane(e commander.Entry) (commander.Entry, *herdrtest.Pane) {
	w.Helper()
	if w.herdr == nil {
		w.herdr = herdrtest.New(w, herdrtest.Options{Speed: 100, Validate: schema.Validate, Profile: 22})
	}
	p := w.herdr.Agent(herdrtest.Agent{Kind: e.Harness, Name: "a" + fmt.Sprint(e.Process.PID), Screen: w.screen(e.Harness)})
	p.OnPrompt(func(*herdrtest.Pane, string) []herdrtest.Step { return []herdrtest.Step{{State: herdrtest.Working}} })
	e.Pane, e.Socket = p.ID, w.herdr.Socket
	e.Terminal = commander.Terminal(w.Context(), commander.Here{Pane: e.Pane, Socket: e.Socket})
	if e.Terminal == "" {
		w.Fatal("the pane has no terminal")
	}
	return e, p
}

// screen is what an idle client shows.
func (w *world) screen(harness string) string {
	w.Helper()
	path := map[string]string{
		"claude": "claude-2.1.332/80x24/idle-after-stop-hook-1.txt", "opencode": "opencode-1.18.33/80x24/idle-after-tool-1.txt",
		"pi": "pi-1.6.0/80x24/idle-after-queued-1.txt",
	}[harness]
	data, err := os.ReadFile("../../testdata/screens/" + path)
	w.must(err)
	return string(data)
}

// typed is how often something was typed into a pane.
func typed(p *herdrtest.Pane, title string) (n int) {
	for _, prompt := range p.Prompts() {
		n += strings.Count(prompt.Text, title)
	}
	return n
}
