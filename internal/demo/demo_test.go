package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// vx is the program under demonstration, built once.
var vx string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "vx-demo-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		vx = filepath.Join(dir, "vx")
		if out, err := exec.Command("go", "build", "-o", vx, "vx/cmd/vx").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		return m.Run()
	}())
}

// give gives the demo with its scratch directory in one of the test's, which must be empty again afterwards.
func give(t *testing.T, ctx context.Context, vx string) (out string, err error) {
	t.Helper()
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	var b bytes.Buffer
	err = Run(ctx, vx, &b)
	left, rerr := os.ReadDir(scratch)
	if rerr != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, rerr)
	}
	return b.String(), err
}

func TestTheDemoKeepsItsPromises(t *testing.T) {
	out, err := give(t, t.Context(), vx)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, step := range steps {
		if !strings.Contains(out, fmt.Sprintf("%2d. %s ", i+1, step.name)) {
			t.Errorf("step %d, %s, is not shown:\n%s", i+1, step.name, out)
		}
	}
	for _, want := range []string{"exit status 2", title, `{"decision":"block","reason":"`, "sh -c", "turn started"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not shown:\n%s", want, out)
		}
	}
}

// TestABrokenPromiseIsFoundAtItsStep gives the demo with a vx that a shell script makes break one promise.
func TestABrokenPromiseIsFoundAtItsStep(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script string // before exec vx "$@"
		step   string
		want   string // of the error
	}{
		{"init does nothing", `[ "$1" = init ] && exit 0`, "vx init", "a hook in .claude/settings.json"},
		{"init fails", `[ "$1" = init ] && { echo no >&2; exit 1; }`, "vx init", `exit status 1: "no"`},
		{
			"init loses a byte of theirs",
			`[ "$1" = init ] && { "$vx" "$@" || exit; sed -i 's/make test/make tes/' "$settings"; exit 0; }`,
			"vx init", "around the new ones",
		},
		{"init tears the file", `[ "$1" = init ] && { head -c 100 "$settings" >"$settings.new"; mv "$settings.new" "$settings"; exit 0; }`, "vx init", "JSON"},
		{
			"init registers another command",
			`[ "$1" = init ] && { "$vx" "$@" || exit; sed -i 's#/opt/homebrew#/opt/elsewhere#' "$settings"; exit 0; }`,
			"the registered command", "0 such entries",
		},
		{
			"init forgets asyncRewake",
			`[ "$1" = init ] && { "$vx" "$@" || exit; sed -i 's/"asyncRewake": *true/"asyncRewake": false/' "$settings"; exit 0; }`,
			"the registered command", "asyncRewake",
		},
		{"the wrapper does not find vx", `[ "$1" = init ] && { "$vx" "$@" || exit; rm "$HOME/.local/bin/vx"; exit 0; }`, "the Stop hook", "not found"},
		{"the hook does not wait", `[ "$1" = sentinel ] && exit 0`, "the Stop hook", "exit status 0"},
		{"the hook dies", `[ "$1" = sentinel ] && kill -9 $$`, "the Stop hook", "illed"},
		{"the wake is not put", `[ "$1" = wake ] && { echo 06h2v9kew8hk7nbzbg; exit 0; }`, "the wake", "the end of the hook"},
		{"the queue cannot be written to", `[ "$1" = wake ] && { rm -rf "$HOME"/.vexillum/projects/*/wakes; echo >"$(echo "$HOME"/.vexillum/projects/*)/wakes"; }`, "vx wake send", "want vx wake send"},
		{"the hook ends with another status", `[ "$1" = sentinel ] && { "$vx" "$@"; exit 0; }`, "the wake", "exit status 2"},
		{"the hook says nothing", `[ "$1" = sentinel ] && { "$vx" "$@" >/dev/null; exit; }`, "the wake", "decision"},
		{"the hook says something of its own", `[ "$1" = sentinel ] && { "$vx" "$@" 2>&1 >/dev/null | sed s/finished/failed/ >&2; exit 2; }`, "the wake", "deploy finished"},
		{"no receipt is looked for", `[ "$1" = status ] && { "$vx" "$@" | sed 's/turn started/outstanding/g'; exit; }`, "the receipt", `"outstanding"`},
		{"uninstall does nothing", `[ "$1" = uninstall ] && exit 0`, "vx uninstall", "bytes from before"},
		{"uninstall leaves a byte", `[ "$1" = uninstall ] && { "$vx" "$@" || exit; echo >>"$settings"; exit 0; }`, "vx uninstall", "bytes from before"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			broken := filepath.Join(t.TempDir(), "vx")
			// The registered command starts it with no more than HOME and PATH.
			script := fmt.Sprintf("#!/bin/sh\nvx='%s' settings=\"$HOME/../shop/.claude/settings.json\"\n%s\nexec \"$vx\" \"$@\"\n", vx, tt.script)
			if err := os.WriteFile(broken, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := Run(t.Context(), broken, &out)
			u, ok := errors.AsType[*Unkept](err)
			if !ok {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if u.Step != tt.step || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q at %q", err, tt.want, tt.step)
			}
			if !strings.Contains(out.String(), tt.step) || !strings.Contains(out.String(), "FAILED") {
				t.Errorf("the failed step is not shown:\n%s", out.String())
			}
		})
	}
}

func TestAnInterruptedDemoLeavesNothing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	// Its status is asked for when the hook runs already.
	waits := filepath.Join(t.TempDir(), "waits")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = sentinel ] && echo $$ >'%s'\nexec '%s' \"$@\"\n", waits, vx)
	slow := filepath.Join(t.TempDir(), "vx")
	if err := os.WriteFile(slow, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer interrupt()
		for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(waits); err == nil {
				return
			}
		}
	}()
	if out, err := give(t, ctx, slow); err == nil || err.Error() != "demo: interrupted" {
		t.Fatalf("%v\n%s", err, out)
	}
	pid, err := os.ReadFile(waits)
	if err != nil {
		t.Fatal(err)
	}
	// Run has waited for the hook's shell; the hook itself was killed with it.
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		args, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "cmdline"))
		if err != nil || !strings.Contains(string(args), "sentinel") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the hook lives: %q", args)
		}
	}
}
