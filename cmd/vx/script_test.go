//go:build !windows

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vx/internal/herdr/herdrtest"
)

var update = flag.Bool("update", false, "rewrite the golden output in the scripts")

// TestMain lets the test binary be vx.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"vx": main, "herdr": herdrtest.Main, "fakeherdr": fakeHerdr, "pi": fakePi, "fakeloop": fakeLoop})
}

// fakePi is the program `pi PROGRAM ARGUMENT...`: a harness by its name, which runs one program.
func fakePi() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestScripts runs the command line as its users do; the scripts tell the stories.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               homeOfItsOwn,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"comes":   comes,
			"exits":   exits,
			"tidy":    tidy,
			"thetask": thetask,
			"until":   until,
		},
	})
}

// homeOfItsOwn gives a script a HOME, a state directory that does not exist yet, and a project to stand in.
func homeOfItsOwn(env *testscript.Env) error {
	env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("VEXILLUM_HOME", filepath.Join(env.WorkDir, "state"))
	env.Setenv("TZ", "UTC")
	for name, char := range map[string]string{"ESC": "\x1b", "BEL": "\a", "CR": "\r", "NL": "\n"} {
		env.Setenv(name, char)
	}
	for _, dir := range []string{"home", "shop/.git"} {
		if err := os.MkdirAll(filepath.Join(env.WorkDir, filepath.FromSlash(dir)), 0o700); err != nil {
			return err
		}
	}
	env.Cd = filepath.Join(env.WorkDir, "shop")
	return nil
}

// comes is `comes FILE`: it waits for the file.
func comes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: comes FILE")
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not come", args[0])
		}
	}
}

// exits is `exits STATUS PROGRAM ARGUMENT...`: the program is to end with exactly this status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGUMENT...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	status := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		status = ended.ExitCode()
	}
	if status != want {
		ts.Fatalf("exit status %d, want %d; stderr:\n%s", status, want, ts.ReadFile("stderr"))
	}
}

// changing is what is another text in every run, and what stands for it.
var changing = []struct {
	text *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`\b0[0-9a-hjkmnp-tv-z]{17}\b`), "ID"},
	{regexp.MustCompile(`\brun-[0-9a-hjkmnp-tv-z]{8}\b`), "run-RUN"},
	{regexp.MustCompile(`"task_id":"[^"]*"`), `"task_id":"RUN"`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b\d+ m?s\b`), "0 s"},
	{regexp.MustCompile(`\bshop-[0-9a-f]{8}\b`), "SHOP"},
	{regexp.MustCompile(`\b\d{8}-\d{6}-[0-9a-f]{4}\b`), "RUNID"},
	{regexp.MustCompile(`\b\d+[smh] ago\b`), "0s ago"},
	{regexp.MustCompile(`((?:process|worker) +|pid":)\d+`), "${1}PID"},
	{regexp.MustCompile(`\bgo1\.[0-9a-z.]+`), "GO"},
}

// tidy is `tidy stdout FILE`: it writes the text with a fixed word for all that changes from run to run.
func tidy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tidy FROM TO")
	}
	text := ts.ReadFile(args[0])
	text = regexp.MustCompile(regexp.QuoteMeta(ts.Getenv("WORK"))).ReplaceAllString(text, "WORK")
	for _, c := range changing {
		text = c.text.ReplaceAllString(text, c.is)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
