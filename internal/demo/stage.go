package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"vx/settings"
)

// stage is what the steps work with.
type stage struct {
	ctx     context.Context
	vx      string
	scratch string

	original []byte // of the settings file
	command  string // as the settings file has it
	hook     *hook
	id       string    // of the wake
	sent     time.Time // when its sender was started
}

func (s *stage) home() string       { return filepath.Join(s.scratch, "home") }
func (s *stage) project() string    { return filepath.Join(s.scratch, "shop") }
func (s *stage) settings() string   { return filepath.Join(s.project(), ".claude", "settings.json") }
func (s *stage) transcript() string { return filepath.Join(s.scratch, "transcript.jsonl") }

// env is all that a process of the demo is told of its surroundings, and so all that the hook has to find vx by.
func (s *stage) env(more ...string) []string {
	return append([]string{"HOME=" + s.home(), "PATH=/usr/bin:/bin"}, more...)
}

// title is the demo's news.
const title = "deploy finished"

// theirs is a settings file as a user might have written it, with a hook of their own.
const theirs = `{
    "permissions": { "allow": ["Bash(make test)"] },
    "hooks": {
        "Stop": [ { "hooks": [ { "type": "command", "command": "echo done && true" } ] } ]
    }
}
`

// build makes the project, and puts vx where the hook looks for it.
func (s *stage) build() (string, error) {
	bin := filepath.Join(s.home(), ".local", "bin")
	s.original = []byte(theirs)
	return fmt.Sprintf("with a .claude/settings.json of %d bytes; vx is in ~/.local/bin alone", len(theirs)), errors.Join(
		os.MkdirAll(bin, 0o700),
		os.Symlink(s.vx, filepath.Join(bin, "vx")),       // for the hook
		os.Symlink(s.vx, filepath.Join(s.scratch, "vx")), // for all else
		os.MkdirAll(filepath.Dir(s.settings()), 0o700),
		os.Mkdir(filepath.Join(s.project(), ".git"), 0o700), // what makes it a project's root
		os.WriteFile(s.settings(), s.original, 0o600),
		os.WriteFile(s.transcript(), []byte(`{"type":"user","message":{"role":"user","content":"deploy it"}}`+"\n"), 0o600),
	)
}

// run runs a vx command to its end; its exit status must be 0.
func (s *stage) run(args ...string) (stdout string, err error) {
	cmd := exec.CommandContext(s.ctx, filepath.Join(s.scratch, "vx"), args...)
	cmd.Env, cmd.Dir = s.env(), s.scratch
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState == nil {
			return "", err
		}
		return "", unkept(fmt.Sprintf("%v: %s", err, oneLine(errs.String()+out.String())), "vx %s to end with 0", strings.Join(args, " "))
	}
	return out.String(), nil
}

// stopSentinel ends what the hook has started to watch for all projects of the scratch HOME. A vx that does not do so is
// reported where it breaks a promise; the sentinel ends all the same when its HOME is gone.
func (s *stage) stopSentinel() {
	if s.hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.scratch, "vx"), "sentinel", "stop")
	cmd.Env, cmd.Dir = s.env(), s.scratch
	cmd.WaitDelay = time.Second
	_ = cmd.Run()
}

func (s *stage) install() (string, error) {
	if _, err := s.run("init", "--project", s.project(), "--await", "always", "--yes"); err != nil {
		return "", err
	}
	now, err := os.ReadFile(s.settings())
	if err != nil {
		return "", err
	}
	switch {
	case !gjson.ValidBytes(now):
		return "", unkept(oneLine(string(now)), "JSON in .claude/settings.json")
	case bytes.Equal(now, s.original):
		return "", unkept("the same bytes as before", "a hook in .claude/settings.json")
	}
	// Ours are in one piece: their bytes are what comes before and what comes behind.
	if kept := prefix(now, s.original) + suffix(now, s.original); kept < len(s.original) {
		return "", unkept(oneLine(string(now)), "the %d bytes of .claude/settings.json around the new ones", len(s.original))
	}
	return fmt.Sprintf("%d bytes more in .claude/settings.json, the %d others as they were", len(now)-len(s.original), len(s.original)), nil
}

// prefix is how many bytes two texts have in common at their beginning.
func prefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// suffix is the same at their end.
func suffix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// readBack takes the command from the file that was written.
func (s *stage) readBack() (string, error) {
	now, err := os.ReadFile(s.settings())
	if err != nil {
		return "", err
	}
	var ours []gjson.Result
	gjson.GetBytes(now, "hooks.Stop").ForEach(func(_, group gjson.Result) bool {
		for _, entry := range group.Get("hooks").Array() {
			if entry.Get("command").String() == settings.Command {
				ours = append(ours, entry)
			}
		}
		return true
	})
	if len(ours) != 1 {
		return "", unkept(fmt.Sprintf("%d such entries", len(ours)), "one entry of hooks.Stop with vx's own command")
	}
	entry := ours[0]
	if entry.Get("type").String() != "command" || entry.Get("asyncRewake").Raw != "true" || entry.Get("timeout").Int() != settings.Timeout {
		return "", unkept(entry.Raw, `"type":"command", "asyncRewake":true and "timeout":%d`, settings.Timeout)
	}
	s.command = entry.Get("command").String()
	return "asyncRewake, timeout 3600\n" + s.command, nil
}

// start runs the command as Claude Code does at the end of a turn, and waits until it waits.
func (s *stage) start() (string, error) {
	input, err := json.Marshal(map[string]any{
		"session_id": "demo", "transcript_path": s.transcript(), "cwd": "/", "hook_event_name": "Stop", "stop_hook_active": false,
	})
	if err != nil {
		return "", err
	}
	began := time.Now()
	s.hook, err = startHook(s.command, input, s.env(
		"CLAUDECODE=1", "CLAUDE_PROJECT_DIR="+s.project(), "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ATTENDED=1"))
	if err != nil {
		return "", err
	}
	for {
		out, err := s.run("status", "--project", s.project(), "--json")
		if err != nil {
			return "", err
		}
		if pid := gjson.Get(out, "awaits.0.process.pid").Int(); pid != 0 {
			return fmt.Sprintf("sh -c COMMAND, PATH=/usr/bin:/bin, JSON on stdin: process %d waits after %s", pid, millis(time.Since(began))), nil
		}
		if s.hook.ended() {
			return "", unkept(s.hook.describe(), "a hook that waits for news")
		}
		if err := s.pause(); err != nil {
			return "", unkept(oneLine(out), "a hook that waits for news in what vx status --json prints")
		}
	}
}

// pause is the time between two looks; an error when there is none left.
func (s *stage) pause() error {
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-time.After(10 * time.Millisecond):
		return nil
	}
}

func (s *stage) send() (string, error) {
	s.sent = time.Now()
	out, err := s.run("wake", "send", "--project", s.project(), "--title", title, "--detail", "version 1.2.3 is live")
	if err != nil {
		return "", err
	}
	if s.id = strings.TrimSpace(out); s.id == "" {
		return "", unkept("nothing", "the wake's id on stdout")
	}
	return fmt.Sprintf("--title %q, from another process: wake %s", title, s.id), nil
}

// receive waits for the end of the hook, and looks at all that came out of it.
func (s *stage) receive() (string, error) {
	select {
	case <-s.hook.done:
	case <-s.ctx.Done():
		return "", unkept("a hook that goes on waiting", "the end of the hook")
	}
	text := s.hook.stderr.String()
	var block struct{ Decision, Reason string }
	jerr := json.Unmarshal(s.hook.stdout.Bytes(), &block)
	switch {
	case s.hook.status() != 2:
		return "", unkept(s.hook.describe(), "exit status 2, which starts a turn of the model")
	case !strings.Contains(text, s.id) || !strings.Contains(text, title) || len(text) >= 10000:
		return "", unkept(s.hook.describe(), "a text on stderr with %s and %q in less than 10000 bytes", s.id, title)
	case jerr != nil || block.Decision != "block" || block.Reason != text:
		return "", unkept(s.hook.describe(), `one line {"decision":"block","reason":TEXT} on stdout, with the same text`)
	}
	line := s.hook.stdout.String()
	return fmt.Sprintf("exit status 2, the text on stderr %s after vx wake send was started:\n%sand on stdout: %s…",
		millis(s.hook.stderr.first.Sub(s.sent)), text, line[:min(len(line), 60)]), nil
}

// prove writes what Claude Code writes once the turn has started, and asks vx what it makes of it.
func (s *stage) prove() (string, error) {
	row, err := json.Marshal(map[string]any{
		"type": "user", "origin": map[string]any{"kind": "task-notification"}, "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"message": map[string]any{"role": "user", "content": s.hook.stderr.String()},
	})
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(s.transcript(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(row, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	for end := time.Now().Add(judging); ; {
		out, err := s.run("status", "--project", s.project(), "--json")
		if err != nil {
			return "", err
		}
		last := gjson.Get(out, `last.#(id=="`+s.id+`").receipt`).String()
		left := gjson.Get(out, "waiting").Int() + gjson.Get(out, "on_the_way").Int()
		if last == "turn started" && left == 0 {
			return "the turn is in the transcript: vx status says \"turn started\", the queue is empty", nil
		}
		if time.Now().After(end) || s.pause() != nil {
			return "", unkept(fmt.Sprintf("%q, and %d wakes left", last, left), `"turn started" in what vx status --json prints, and nothing left in the queue`)
		}
	}
}

// judging is how long the receipt may take: the sentinel may be at the delivery just now, having looked before the turn.
const judging = 3 * time.Second

func (s *stage) uninstall() (string, error) {
	if _, err := s.run("uninstall", "--project", s.project(), "--yes"); err != nil {
		return "", err
	}
	now, err := os.ReadFile(s.settings())
	if err != nil {
		return "", err
	}
	if !bytes.Equal(now, s.original) {
		return "", unkept(oneLine(string(now)), "the %d bytes from before in .claude/settings.json", len(s.original))
	}
	return fmt.Sprintf(".claude/settings.json has its %d bytes from before", len(now)), nil
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// oneLine is text that was not expected, short enough for an error.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	if s == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", s)
}
