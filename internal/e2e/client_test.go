//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A client is a Claude Code in a terminal of its own.
type client struct {
	w    *world
	pane string
	proc process
}

var (
	promptLine = regexp.MustCompile(`(?m)^❯`)
	footer     = regexp.MustCompile(`shortcuts|auto mode|shift\+tab|/effort`)
	refusal    = regexp.MustCompile(`Settings (Error|Warning)`)
)

// start opens a client in the project and waits for its prompt.
func (w *world) start(args ...string) *client {
	w.t.Helper()
	return w.startIn(w.project, nil, args...)
}

// startIn opens a client in a folder, with more in its environment, and waits for its prompt.
func (w *world) startIn(dir string, env []string, args ...string) *client {
	w.t.Helper()
	c, err := w.open(dir, env, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the client's prompt", func() bool {
		s := c.screen()
		if refusal.MatchString(s) {
			w.t.Fatalf("the client refuses the settings file\n%s", s)
		}
		return promptLine.MatchString(s) && footer.MatchString(s)
	})
	return c
}

// open opens a client. It may be called beside the test.
func (w *world) open(dir string, env []string, args ...string) (*client, error) {
	words := append(append([]string{"env", "-i"}, w.env...), env...)
	words = append(append(words, w.binary), args...)
	for i, word := range words {
		words[i] = quote(word)
	}
	pane, err := w.tmux("new-session", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-x", "160", "-y", "50", "-c", dir,
		"exec "+strings.Join(words, " "))
	if err != nil {
		return nil, fmt.Errorf("tmux: %w", err)
	}
	id, pid, _ := strings.Cut(pane, " ")
	n, err := strconv.Atoi(pid)
	if err != nil {
		return nil, fmt.Errorf("tmux printed %q: %w", pane, err)
	}
	return &client{w: w, pane: id, proc: processOf(n)}, nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (c *client) screen() string {
	text, err := c.w.tmux("capture-pane", "-p", "-t", c.pane)
	if err != nil {
		return "(no screen)"
	}
	return text
}

func (c *client) keys(keys ...string) {
	c.w.t.Helper()
	if _, err := c.w.tmux(append([]string{"send-keys", "-t", c.pane}, keys...)...); err != nil {
		c.w.t.Fatalf("send-keys %q: %v", keys, err)
	}
}

// enter types a line and submits it until done: a client that is still drawing may take the first Enter for a part of a paste.
func (c *client) enter(line string, done func() bool) {
	c.w.t.Helper()
	c.keys("C-u")
	c.keys("-l", "--", line)
	c.w.eventually("the line on the screen: "+line, func() bool { return strings.Contains(c.screen(), line[:min(len(line), 40)]) })
	last := time.Time{}
	c.w.eventually("the client takes "+line, func() bool {
		if done() {
			return true
		}
		if time.Since(last) > time.Second {
			last = time.Now()
			c.keys("Enter")
		}
		return false
	})
}

// prompt gives the model a turn.
func (c *client) prompt(line string) {
	c.w.t.Helper()
	before := c.w.api.turns(line)
	c.enter(line, func() bool { return c.w.api.turns(line) > before })
}

// end ends the client in one of the ways in which clients end, and waits until it is gone.
func (c *client) end(how string) {
	c.w.t.Helper()
	switch how {
	case "exit":
		c.enter("/exit", func() bool { return !c.proc.alive() })
	case "hang-up":
		if _, err := c.w.tmux("kill-pane", "-t", c.pane); err != nil {
			c.w.t.Fatal(err)
		}
	case "SIGTERM":
		c.proc.signal(c.w.t, syscall.SIGTERM)
	case "SIGKILL":
		c.proc.signal(c.w.t, syscall.SIGKILL)
	default:
		c.w.t.Fatalf("no such end: %s", how)
	}
	c.w.eventually("the client's end by "+how, func() bool { return !c.proc.alive() })
}

// session is the client's session, by its own record; /clear begins a new one.
func (c *client) session() string {
	data, err := os.ReadFile(filepath.Join(c.w.home, ".claude", "sessions", strconv.Itoa(c.proc.pid)+".json"))
	if err != nil {
		return ""
	}
	var s struct{ SessionID string }
	if json.Unmarshal(data, &s) != nil {
		return ""
	}
	return s.SessionID
}

// awaits lists the hooks that wait for this client.
func (c *client) awaits() []process {
	return slices.DeleteFunc(c.w.awaits(), func(p process) bool { return !p.descends(c.proc) })
}
