//go:build e2e

package opencode

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// password is every server's.
const password = "not-a-password"

// A server is an `opencode serve`.
type server struct {
	w     *world
	cmd   *exec.Cmd
	url   string
	ended chan struct{}
}

// output is what a program says, while it says it.
type output struct {
	sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.Lock()
	defer o.Unlock()
	return o.text.String()
}

// freePort is one that nobody listens on at this moment.
func (w *world) freePort() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// serve starts a server in a folder and waits until it answers. It ends with the test.
func (w *world) serve(dir string, env ...string) *server {
	w.t.Helper()
	port := w.freePort()
	s := &server{w: w, url: "http://127.0.0.1:" + port, ended: make(chan struct{})}
	s.cmd = exec.Command(w.program, "serve", "--port", port)
	s.cmd.Dir, s.cmd.Env = dir, append(append(append([]string{}, w.env...), "OPENCODE_SERVER_PASSWORD="+password), env...)
	said := &output{}
	s.cmd.Stdout = said
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		s.cmd.Wait()
	}()
	w.t.Cleanup(func() { s.signal(syscall.SIGKILL) })
	// What it is asked before it says so hangs for good.
	w.eventually("a server that listens", func() bool { return strings.Contains(said.String(), "listening on "+s.url) })
	return s
}

func (s *server) signal(sig os.Signal) {
	s.cmd.Process.Signal(sig) // it may have ended
	<-s.ended
}

// kill ends the server as nothing it does can prevent.
func (s *server) kill() { s.signal(syscall.SIGKILL) }

// ask makes one request; the status is 0 where there is no answer.
func (s *server) ask(method, path string, body any) (status int, answer []byte) {
	s.w.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.w.t.Fatal(err)
	}
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(data))
	if err != nil {
		s.w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth("opencode", password)
	client := http.Client{Timeout: 20 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, _ = io.ReadAll(res.Body)
	return res.StatusCode, answer
}

// must is ask for an answer that has to come, decoded where something is to be made of it.
func (s *server) must(want int, method, path string, body, into any) {
	s.w.t.Helper()
	status, answer := s.ask(method, path, body)
	if status != want {
		s.w.t.Fatalf("%s %s: status %d, want %d\n%s", method, path, status, want, answer)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		s.w.t.Fatalf("%s %s: %v\n%s", method, path, err, answer)
	}
}

// session makes one that works in a folder.
func (s *server) session(dir string) string {
	s.w.t.Helper()
	var made struct{ ID string }
	s.must(http.StatusOK, "POST", "/session?directory="+url.QueryEscape(dir), map[string]any{}, &made)
	return made.ID
}

// say is what a person says in a session.
func (s *server) say(session, text string) {
	s.w.t.Helper()
	s.must(http.StatusNoContent, "POST", "/session/"+session+"/prompt_async", prompt(text, false), nil)
}

// note puts a person's message into a session, which no turn follows.
func (s *server) note(session, text string) {
	s.w.t.Helper()
	s.must(http.StatusNoContent, "POST", "/session/"+session+"/prompt_async", prompt(text, true), nil)
}

func prompt(text string, alone bool) map[string]any {
	return map[string]any{"noReply": alone, "parts": []any{map[string]any{"type": "text", "text": text}}}
}

// stands counts the user's messages in a session that have the title.
func (s *server) stands(session, title string) int {
	s.w.t.Helper()
	var messages []struct {
		Info  struct{ Role string }
		Parts []struct{ Text string }
	}
	s.must(http.StatusOK, "GET", "/session/"+session+"/message", nil, &messages)
	n := 0
	for _, m := range messages {
		text := ""
		for _, p := range m.Parts {
			text += p.Text
		}
		if m.Info.Role == "user" && strings.Contains(text, title) {
			n++
		}
	}
	return n
}

// attend serves the project with a session that waits for wakes.
func (w *world) attend(env ...string) (s *server, session string) {
	w.t.Helper()
	s = w.serve(w.project, env...)
	session = s.session(w.project)
	s.note(session, "hello there")
	w.awaiting(1)
	return s, session
}
