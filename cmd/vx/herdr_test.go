//go:build !windows

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vx/internal/herdr/herdrtest"
)

// fakeHerdr is the program `fakeherdr SOCKET`: a herdr at that path until it is ended, with a commander's pane, w1:p2. Its
// agents come to their prompt, and work on what they are told until their pane is sent the text `idle` or `blocked`.
func fakeHerdr() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := &program{}
	defer p.end()
	cwd, err := os.Getwd()
	if err != nil {
		p.Fatalf("%v", err)
	}
	srv := herdrtest.New(p, herdrtest.Options{Speed: 20, Socket: os.Args[1], ReadGrace: time.Minute})
	for _, kind := range []string{"claude", "codex", "pi", "opencode"} {
		srv.OnLaunch(kind, func(*herdrtest.Pane, herdrtest.Launch) []herdrtest.Step {
			return []herdrtest.Step{{State: herdrtest.Idle}}
		})
	}
	srv.Agent(herdrtest.Agent{Name: "commander", CWD: cwd})
	if err := os.WriteFile(os.Args[1]+".ready", nil, 0o600); err != nil {
		p.Fatalf("%v", err)
	}
	obeyed := map[*herdrtest.Pane]int{}
	for ctx.Err() == nil {
		for _, pane := range srv.Panes() {
			// A prompt is answered before its Enter: the end of the work is not obeyed until there is some.
			at := []string{herdrtest.Working, herdrtest.Blocked}
			if typed := pane.Typed()[obeyed[pane]:]; len(typed) > 0 && (typed[0] != herdrtest.Idle || slices.Contains(at, pane.Status())) {
				obeyed[pane]++
				pane.Set(typed[0])
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// program is what the fake needs of a test, for a program that is none.
type program struct{ last []func() }

func (p *program) Helper()          {}
func (p *program) Cleanup(f func()) { p.last = append(p.last, f) }
func (p *program) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (p *program) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	p.end()
	os.Exit(1)
}

func (p *program) end() {
	for _, f := range slices.Backward(p.last) {
		f()
	}
}

// thetask is `thetask [STATUS]`: $TASK becomes the id of the newest task of all projects, $PANE its pane and $CAMP its camp.
// With a status the task gets it, as if the sentinel had seen that.
func thetask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: thetask [STATUS]")
	}
	paths, err := filepath.Glob(filepath.Join(ts.Getenv("VEXILLUM_HOME"), "projects", "*", "tasks", "*.json"))
	ts.Check(err)
	var newest map[string]any
	at := ""
	for _, path := range paths {
		data, err := os.ReadFile(path)
		ts.Check(err)
		var t map[string]any
		ts.Check(json.Unmarshal(data, &t))
		if newest == nil || t["created_at"].(string) > newest["created_at"].(string) {
			newest, at = t, path
		}
	}
	if newest == nil {
		ts.Fatalf("there is no task")
	}
	ts.Setenv("TASK", newest["id"].(string))
	if h, ok := newest["herdr"].(map[string]any); ok {
		ts.Setenv("PANE", h["pane"].(string))
	}
	if c, ok := newest["camp"].(map[string]any); ok {
		ts.Setenv("CAMP", c["path"].(string))
	}
	if len(args) == 0 {
		return
	}
	newest["status"] = args[0]
	if args[0] == "blocked" {
		newest["decision"] = map[string]any{"question": "Keep the fields?", "options": []string{"yes", "no"}}
	}
	data, err := json.MarshalIndent(newest, "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(at, data, 0o600))
}
