//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
)

// A field is a command in the panes of a herdr: a fake one, but what stands in its panes are real clients.
type field struct {
	*command
	herdr *herdrtest.Server

	mu       sync.Mutex
	soldiers []*client // as they were started
}

func newField(c *command, protocol int) *field {
	f := &field{command: c}
	f.herdr = herdrtest.New(c.t, herdrtest.Options{
		Profile: protocol, Validate: schema.Validate,
		ReadGrace: 5 * time.Second, // the clients move while they are looked at, on a busy machine for as long as that
	})
	f.herdr.OnLaunch("claude", f.launch)
	return f
}

// launch is what herdr does when it is told to start an agent.
func (f *field) launch(p *herdrtest.Pane, l herdrtest.Launch) []herdrtest.Step {
	var env []string
	for k, v := range l.Env {
		env = append(env, k+"="+v)
	}
	c, err := f.open(l.CWD, env, l.Args...)
	if err != nil {
		f.t.Errorf("start a soldier: %v", err)
		return nil
	}
	f.mu.Lock()
	f.soldiers = append(f.soldiers, c)
	f.mu.Unlock()
	back(p, c)
	return nil
}

// dispatch has the commander dispatch a soldier, who takes up what it is told: the prompt, and before it more options.
func (f *field) dispatch(title string, prompt ...string) (id string, soldier *client) {
	f.t.Helper()
	id = f.hands(append([]string{"dispatch", "--title", title}, prompt...)...)
	f.mu.Lock()
	defer f.mu.Unlock()
	return id, f.soldiers[len(f.soldiers)-1]
}

// commandHere opens the commander in a pane, its first turn over.
func (f *field) commandHere() {
	f.t.Helper()
	p := f.herdr.Agent(herdrtest.Agent{Name: "commander", State: herdrtest.Unknown, CWD: f.project, Beside: f.herdr.Root()})
	f.commander = f.startIn(f.project, p.Env())
	back(p, f.commander)
	before := len(f.awaits())
	f.commander.prompt("hello there")
	f.awaiting(before + 1)
}

// turn has the commander give an order that begins a turn, which lasts until herdr has seen that it goes on.
func (f *field) turn(id string, soldier *client, ans answer, order ...string) {
	f.t.Helper()
	ans.gate = make(chan struct{})
	f.api.when(order[len(order)-1], ans)
	f.order(order...)
	soldier.becomes("busy")
	pane := f.herdr.Pane(f.tasks()[id].Herdr.Pane)
	f.eventually("herdr sees it work", func() bool { return pane.Status() == herdrtest.Working })
	close(ans.gate)
}

// back puts a client behind a pane.
func back(p *herdrtest.Pane, c *client) {
	var gone atomic.Bool
	view := c.viewer()
	p.Back(herdrtest.Backing{
		Screen: func() string { screen, _ := view(); return screen }, // with its colours: what is faint was not typed
		Title:  func() string { _, title := view(); return title },
		State: func() string {
			if !c.proc.alive() {
				if gone.CompareAndSwap(false, true) {
					p.Exit()
				}
				return ""
			}
			return herdrsWord(view())
		},
		Processes: func() []herdrtest.Process {
			if !c.proc.alive() {
				return nil
			}
			cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", c.proc.pid))
			return []herdrtest.Process{{PID: c.proc.pid, Name: "claude", CWD: cwd}}
		},
		Prompt: c.paste,
		Close:  func() { c.w.tmux("kill-pane", "-t", c.pane) },
	})
}

var colours = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// herdrsWord is about what a herdr makes of Claude Code's screen: rough, and without an idea of work in the background.
func herdrsWord(screen, title string) string {
	bottom := strings.TrimRight(colours.ReplaceAllString(screen, ""), "\n ")
	lines := strings.Split(bottom, "\n")
	bottom = strings.Join(lines[max(0, len(lines)-12):], "\n")
	switch {
	case strings.ContainsAny(title, "⠂⠐◐◑"):
		return herdrtest.Working
	case strings.Contains(bottom, "Esc to cancel"), strings.Contains(bottom, "Enter to confirm"):
		return herdrtest.Blocked
	case promptLine.MatchString(bottom) && footer.MatchString(bottom):
		return herdrtest.Idle
	}
	return "" // as before
}

// viewer shows the client's screen and its terminal's title, which before a client sets one is none. What is asked for within
// a moment is of one view: herdr's own is no fresher, and each costs a process.
func (c *client) viewer() func() (screen, title string) {
	const moment = 100 * time.Millisecond
	var mu sync.Mutex
	var at time.Time
	var screen, title string
	return func() (string, string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) < moment {
			return screen, title
		}
		text, err := c.w.tmux("display-message", "-p", "-t", c.pane, "#{?#{==:#{pane_title},#{host}},,#{pane_title}}", ";",
			"capture-pane", "-p", "-e", "-t", c.pane)
		if err != nil {
			return "(no screen)", ""
		}
		title, screen, _ = strings.Cut(text, "\n")
		at = time.Now()
		return screen, title
	}
}

// paste gives the client a text as herdr does: as one paste, and Enter. Where herdr trusts to time, this looks whether the
// paste has come, so that a busy machine fails nothing.
func (c *client) paste(text string) error {
	file := filepath.Join(c.w.path("tmp"), "paste"+strings.TrimPrefix(c.pane, "%"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	before := c.screen()
	for _, args := range [][]string{
		{"load-buffer", "-b", "paste" + c.pane, file},
		{"paste-buffer", "-p", "-d", "-b", "paste" + c.pane, "-t", c.pane},
	} {
		if _, err := c.w.tmux(args...); err != nil {
			return err
		}
	}
	for end := time.Now().Add(10 * time.Second); c.screen() == before && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	_, err := c.w.tmux("send-keys", "-t", c.pane, "Enter")
	return err
}
