//go:build !windows

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// line is a command line before the cursor, and what is offered there.
type line struct {
	text string
	want string // some of what is offered
	not  string // what is not
}

// completions hold for every shell.
var completions = []line{
	{"vx ", "wake", "send"},
	{"vx wa", "wake", "run"},
	{"vx wake ", "send", "wake"},
	{"vx wake s", "show", "list"},
	{"vx wake send --ti", "--title", "--tail"},
	{"vx wake send --title done --ki", "--kind", "--json"},
	{"vx wake send --kind mes", "message", "mission"},
	{"vx wake send --project do", "docs/", "done.txt"},
	{"vx wake send --ref do", "done.txt", "--ref"},
	{"vx run --ta", "--tail", "--ref"},
	{"vx run -- vx-test-com", "vx-test-command", "--tail"},
	{"vx run -- vx-test-command do", "done.txt", "--tail"},
	{"vx completion ", "zsh", "wake"},
}

// completionWorld is a directory with something to complete, and the script of a shell.
func completionWorld(t *testing.T, shell string) (dir, script string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("%s is not installed: its completion is not tested", shell)
	}
	dir = t.TempDir()
	err := os.Mkdir(filepath.Join(dir, "docs"), 0o700)
	for name, mode := range map[string]os.FileMode{"done.txt": 0o600, "vx-test-command": 0o700} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := vx(t, "completion", shell).Output()
	if err != nil {
		t.Fatal(err)
	}
	script = filepath.Join(dir, "_vx")
	if err := os.WriteFile(script, out, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	return dir, script
}

func checkOffer(t *testing.T, l line, offered []string) {
	t.Helper()
	if !slices.Contains(offered, l.want) || slices.Contains(offered, l.not) {
		t.Errorf("%q offers %q; want %q and not %q", l.text, offered, l.want, l.not)
	}
}

func TestBashCompletes(t *testing.T) {
	dir, script := completionWorld(t, "bash")
	for _, l := range append(completions, line{"vx wake send --kind = mes", "message", "mission"}, line{"vx wake send --kind =", "scout", "--key"}) {
		words := strings.Split(l.text, " ")
		cmd := exec.Command("bash", "--norc", "-c", `source "$0"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _vx; printf '%s\n' "${COMPREPLY[@]}"`, script)
		cmd.Args = append(cmd.Args, words...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v: %s", l.text, err, out)
		}
		l.want = strings.TrimSuffix(l.want, "/") // added by readline, which is told that these are files
		checkOffer(t, l, strings.Fields(string(out)))
	}
}

func TestFishCompletes(t *testing.T) {
	dir, script := completionWorld(t, "fish")
	for _, l := range completions {
		cmd := exec.Command("fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", script, l.text)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v: %s", l.text, err, out)
		}
		var offered []string
		for word := range strings.Lines(string(out)) {
			word, _, _ = strings.Cut(strings.TrimRight(word, "\n"), "\t")
			offered = append(offered, word)
		}
		checkOffer(t, l, offered)
	}
}

// Zsh completes in its line editor only, so this is the real one, in a terminal; the list of matches goes to a file.
func TestZshCompletes(t *testing.T) {
	dir, script := completionWorld(t, "zsh")
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	cmd := exec.Command("zsh", "-f", "-i")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TERM=dumb", "PS1=> ")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	defer cmd.Wait()
	defer cmd.Process.Kill()
	go func() {
		block := make([]byte, 4096)
		for {
			if _, err := master.Read(block); err != nil {
				return
			}
		}
	}()
	// Every match passes through compadd; -O leaves those that fit in an array. Nothing is inserted into the line.
	setup := strings.NewReplacer("SCRIPT", script, "DIR", dir).Replace(`
autoload -Uz compinit; compinit -D -u; source SCRIPT
compadd() { [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return }; local -a found; builtin compadd -O found "$@"; print -rl -- $found >>DIR/offered; builtin compadd "$@" }
offers() { zle complete-word; zle kill-whole-line; : >DIR/finished }
zle -N offers; bindkey '^T' offers; zstyle ':completion:*' menu no; setopt no_beep no_list_ambiguous; : >DIR/finished
`)
	if err := os.WriteFile(filepath.Join(dir, "setup"), []byte(setup), 0o600); err != nil {
		t.Fatal(err)
	}
	enter := func(keys string) {
		os.Remove(filepath.Join(dir, "finished"))
		if _, err := master.WriteString(keys); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dir, "finished")); err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("zsh does not come back from %q", keys)
			}
		}
	}
	enter("source ./setup\n")
	for _, l := range completions {
		os.Remove(filepath.Join(dir, "offered"))
		enter(l.text + "\x14")
		offered, _ := os.ReadFile(filepath.Join(dir, "offered"))
		l.want = strings.TrimSuffix(l.want, "/")
		var words []string
		for _, word := range bytes.Fields(offered) {
			words = append(words, string(word))
		}
		checkOffer(t, l, words)
	}
}
