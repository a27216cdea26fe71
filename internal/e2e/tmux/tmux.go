// Package tmux runs one program in a terminal that a test can type into and read. It is for the tests on real clients,
// whose interface is a screen; a program that reads and writes lines needs no terminal.
//
// Every pane is the only one of a tmux server of its own, with a socket in a folder of its own, so that a test can
// end neither another test's program nor anybody's real session. A test that is killed leaves that folder (vx-tmux-*
// in the temporary directory) and the server, whose program goes on until somebody closes the terminal.
package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vx/internal/proc"
)

// patience is far beyond what any step of a client takes, so that a busy machine fails nothing.
const patience = 90 * time.Second

// A Command is the program that runs in the pane.
type Command struct {
	Dir           string
	Env           []string // all of it: nothing is inherited
	Args          []string // the program's path first
	Width, Height int      // 120 by 40 if they are 0
}

// A Pane is a terminal with one program in it. Its screen stays when the program has ended.
type Pane struct {
	t      testing.TB
	dir    string
	id     string
	server proc.ID
	prog   proc.ID
}

// Start runs the program in a new terminal. When the test is over, both are ended.
func Start(t testing.TB, c Command) *Pane {
	t.Helper()
	// Not t.TempDir: its path is too long for a socket.
	dir, err := os.MkdirTemp("", "vx-tmux-")
	if err != nil {
		t.Fatal(err)
	}
	p := &Pane{t: t, dir: dir}
	t.Cleanup(p.clean)
	conf := "set -g remain-on-exit on\nset -g escape-time 0\nset -g default-terminal tmux-256color\nset -g history-limit 5000\n"
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	words := append(append([]string{"env", "-i"}, c.Env...), c.Args...)
	for i, word := range words {
		words[i] = quote(word)
	}
	out, err := p.tmux("new-session", "-d", "-P", "-F", "#{pane_id} #{pane_pid} #{pid}",
		"-x", strconv.Itoa(orElse(c.Width, 120)), "-y", strconv.Itoa(orElse(c.Height, 40)), "-c", c.Dir, "exec "+strings.Join(words, " "))
	if err != nil {
		t.Fatalf("tmux new-session: %v", err)
	}
	fields := strings.Fields(out)
	if len(fields) != 3 {
		t.Fatalf("tmux new-session printed %q", out)
	}
	p.id, p.prog, p.server = fields[0], find(fields[1]), find(fields[2])
	return p
}

func orElse(n, other int) int {
	if n == 0 {
		return other
	}
	return n
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// find is the process with this pid; the zero ID, which no signal reaches, if it has ended already.
func find(pid string) proc.ID {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return proc.ID{}
	}
	id, err := proc.Find(n)
	if err != nil {
		return proc.ID{}
	}
	return id
}

func (p *Pane) tmux(args ...string) (string, error) {
	// A server that a test has stopped does not answer.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-S", filepath.Join(p.dir, "socket"), "-f", filepath.Join(p.dir, "conf")}, args...)...)
	cmd.Dir, cmd.WaitDelay = p.dir, time.Second
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin", "HOME=" + p.dir, "LANG=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh"}
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimRight(string(out), "\n"), err
}

// clean ends the program, then its terminal.
func (p *Pane) clean() {
	if p.t.Failed() && p.id != "" {
		p.t.Logf("the screen at the end:\n%s", p.Screen())
	}
	end(p.prog)
	p.tmux("kill-server")
	end(p.server)
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Error(err)
	}
}

// end ends a process and waits until it is gone.
func end(id proc.ID) {
	h, err := proc.Open(id)
	if err != nil {
		return
	}
	defer h.Close()
	if h.Signal(int(syscall.SIGKILL)) != nil {
		return // it has ended by itself
	}
	for deadline := time.Now().Add(patience); id.Status() != proc.Gone && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
}

// PID is the program's.
func (p *Pane) PID() int { return p.prog.PID }

// Process is the program, with its start time.
func (p *Pane) Process() proc.ID { return p.prog }

// Alive reports whether the program still runs.
func (p *Pane) Alive() bool {
	status := p.prog.Status()
	return status == proc.Running || status == proc.Stopped
}

// Signal sends a signal to the program and to no other.
func (p *Pane) Signal(sig syscall.Signal) {
	p.t.Helper()
	h, err := proc.Open(p.prog)
	if err != nil {
		p.t.Fatal(err)
	}
	defer h.Close()
	if err := h.Signal(int(sig)); err != nil {
		p.t.Fatal(err)
	}
}

// Kill ends the program as nothing it does can prevent, and waits until it is gone.
func (p *Pane) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	p.WaitEnd()
}

// HangUp closes the terminal under the program, as closing a window does, and waits until the program is gone.
func (p *Pane) HangUp() {
	p.t.Helper()
	if _, err := p.tmux("kill-pane", "-t", p.id); err != nil {
		p.t.Fatalf("tmux kill-pane: %v", err)
	}
	p.WaitEnd()
}

// WaitEnd waits until the program has ended. Its exit status is not to be had: tmux 3.3a misses one in fifty.
func (p *Pane) WaitEnd() {
	p.t.Helper()
	p.wait("the program's end", func() bool { return !p.Alive() })
}

// Screen is what the terminal shows.
func (p *Pane) Screen() string {
	text, err := p.tmux("capture-pane", "-p", "-t", p.id)
	if err != nil {
		return fmt.Sprintf("(no screen: %v)", err)
	}
	return text
}

// WaitScreen waits until the terminal shows a text on one line.
func (p *Pane) WaitScreen(t testing.TB, text string) {
	t.Helper()
	p.wait(fmt.Sprintf("%q on the screen", text), func() bool { return strings.Contains(p.Screen(), text) })
}

// Keys presses keys by tmux's names: Enter, Escape, C-c.
func (p *Pane) Keys(keys ...string) {
	p.t.Helper()
	if _, err := p.tmux(append([]string{"send-keys", "-t", p.id}, keys...)...); err != nil {
		p.t.Fatalf("send-keys %q: %v", keys, err)
	}
}

// Type types a text as it is, without Enter.
func (p *Pane) Type(text string) { p.t.Helper(); p.Keys("-l", "--", text) }

// Say types a line, waits until it stands on the screen, and presses Enter.
func (p *Pane) Say(line string) {
	p.t.Helper()
	p.Type(line)
	p.WaitScreen(p.t, line[:min(len(line), 40)])
	// Enter right behind the text is taken for a part of a paste by some clients.
	time.Sleep(300 * time.Millisecond)
	p.Keys("Enter")
}

// SayUntil is Say for a client that may still be starting: Enter is pressed again, once a second, until done.
func (p *Pane) SayUntil(line string, done func() bool) {
	p.t.Helper()
	p.Say(line)
	last := time.Now()
	p.wait("what saying "+strconv.Quote(line)+" brings", func() bool {
		if done() {
			return true
		}
		if time.Since(last) > time.Second {
			last = time.Now()
			p.Keys("Enter")
		}
		return false
	})
}

// wait waits for a condition of the pane.
func (p *Pane) wait(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if ok() {
			return
		}
	}
	p.t.Fatalf("not within %s: %s; the screen:\n%s", patience, what, p.Screen())
}
