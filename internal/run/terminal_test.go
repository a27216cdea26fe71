package run

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func TestTheCommandSeesATerminalOfTheSameSize(t *testing.T) {
	w := newWorld(t)
	s := w.onScreen(w.vx(sh("test -t 0 && test -t 1 && test -t 2 && stty size && stty size <&1 && stty size <&2")))
	s.expect("30 90\r\n30 90\r\n30 90\r\n")
	if got := s.status(); got != 0 {
		t.Errorf("exit status %d", got)
	}
	if got := w.only().Detail; got != "30 90\n30 90\n30 90" {
		t.Errorf("the detail is %q", got)
	}
}

func TestTheTerminalGetsExactlyWhatTheCommandPrints(t *testing.T) {
	text := "a\nb\r\nc\rd\r\r\n\te\x1b[31m\r"
	w := newWorld(t)
	script := sh("printf '" + strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`, "\x1b", `\033`).Replace(text) + "'; seq 1 20000; echo end")
	s := w.onScreen(w.vx(script))
	s.expect("\nend\r\n")
	s.status()
	bare := w.onScreen(exec.Command("sh", script.Args[1:]...))
	bare.expect("\nend\r\n")
	if got, want := s.shown(), bare.shown(); got != want {
		t.Errorf("through vx: %d bytes %.60q\nwithout:    %d bytes %.60q", len(got), got, len(want), want)
	}
}

func TestOnlyTheStreamOnATerminalSeesOne(t *testing.T) {
	w := newWorld(t)
	cmd := w.vx(sh("test -t 1; echo $? >&2; test -t 2; echo $?; exit 0"))
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	s := w.onScreen(cmd)
	s.expect("1\r\n")
	if s.status(); stdout.String() != "0\n" {
		t.Errorf("stdout %q", stdout.String())
	}
}

func TestAResizeReachesTheCommand(t *testing.T) {
	w := newWorld(t)
	s := w.onScreen(w.vx(sh(`trap 'stty size <&1' WINCH; echo ready; while :; do sleep 0.05; done`)))
	s.expect("ready")
	if err := pty.Setsize(s.master, &pty.Winsize{Rows: 11, Cols: 22}); err != nil {
		t.Fatal(err)
	}
	s.expect("11 22")
}

func TestTheTerminalIsGivenBackAsItWas(t *testing.T) {
	for _, end := range []string{"exit 5", "kill -9 $$", "kill -9 $PPID"} { // the last is the monitor's end
		t.Run(end, func(t *testing.T) {
			w := newWorld(t)
			s := w.onScreen(w.vx(sh("stty raw -echo; echo ready; read x; " + end)))
			s.expect("ready")
			w.eventually("the terminal is raw", func() bool { m := s.modes(); return m.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) == 0 })
			s.typed("x\n")
			s.status()
			if s.modes() != s.before {
				t.Errorf("the terminal is left with other modes")
			}
			w.only()
		})
	}
}

func TestKeysReachWhoeverReadsTheTerminal(t *testing.T) {
	for name, read := range map[string]string{
		"stdin":               "read x",
		"/dev/tty":            "read x </dev/tty",
		"the terminal's name": "read x <$(tty <&2)",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cmd := w.vx(sh("stty -echo <&1; echo ready; " + read + "; echo got $x"))
			s := w.onScreen(cmd)
			s.expect("ready")
			s.typed("a key\n")
			s.expect("got a key")
			if s.status(); strings.Contains(s.shown(), "a key\r\ngot") {
				t.Errorf("echoed against the command's will: %q", s.shown())
			}
		})
	}
}

func TestKeysAreReadFromTheTerminalWhereStdinIsAPipe(t *testing.T) {
	w := newWorld(t)
	s := w.shell(sh(`read x <$(tty <&2); echo "got $x and $(cat)"`))
	s.typed("echo piped | ./vx\n")
	s.typed("a key\n")
	s.expect("got a key and piped")
	s.leave()
	w.only()
}

func TestWhatTheCommandLeavesBehindIsNotHungUp(t *testing.T) {
	w := newWorld(t)
	gate := filepath.Join(w.project, "gate")
	s := w.shell(sh("(while ! test -e " + gate + "; do sleep 0.05; done; echo late && echo alive >" + gate + ") & echo early"))
	s.typed("./vx; echo status $?; touch gate\n")
	s.expect("early\r\n")
	s.expect("status 0\r\n")
	s.expect("late\r\n")
	w.eventually("it is alive", func() bool { text, err := os.ReadFile(gate); return err == nil && string(text) == "alive\n" })
}

func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	w := newWorld(t)
	s := w.onScreen(w.vx(sh(`trap 'echo caught' INT; echo ready; for i in 1 2 3 4 5 6; do sleep 0.2; done; exit 9`)))
	s.expect("ready")
	s.typed("\x03")
	s.expect("caught")
	if got := s.status(); got != 9 {
		t.Errorf("exit status %d, want the command's", got)
	}
	if n := strings.Count(s.shown(), "caught"); n != 1 {
		t.Errorf("the command got SIGINT %d times", n)
	}
	if got := w.only(); got.NewStatus != "interrupted" || !strings.HasPrefix(got.Outcome, "exit 9") {
		t.Errorf("the wake is %+v", got)
	}
}

func TestCtrlCReachesACommandThatPrintsElsewhereOnce(t *testing.T) {
	w := newWorld(t)
	cmd := w.vx(sh(`trap 'echo caught' INT; echo ready; for i in 1 2 3 4 5 6; do sleep 0.2; done; exit 9`))
	path := filepath.Join(w.project, "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	text := func() string { data, _ := os.ReadFile(path); return string(data) }
	s := w.onScreen(cmd)
	w.eventually("ready", func() bool { return text() == "ready\n" })
	s.typed("\x03")
	if got := s.status(); got != 9 || text() != "ready\ncaught\n" {
		t.Errorf("exit status %d, %q", got, text())
	}
	if got := w.only(); got.NewStatus != "interrupted" {
		t.Errorf("the wake is %+v", got)
	}
}

func TestCtrlBackslashEndsTheCommandAndVxStillTells(t *testing.T) {
	w := newWorld(t)
	s := w.onScreen(w.vx(Command{Args: []string{"sleep", "60"}}))
	w.eventually("the command runs", func() bool { return children(t, s.cmd.Process.Pid) == 1 })
	s.typed("\x1c")
	if got := s.status(); got != 128+int(syscall.SIGQUIT) {
		t.Errorf("exit status %d", got)
	}
	if got := w.only(); got.NewStatus != "interrupted" || !strings.HasPrefix(got.Outcome, "SIGQUIT") {
		t.Errorf("the wake is %+v", got)
	}
}

// shell is an interactive bash in a terminal, in which "vx" is vx run with a command.
func (w *world) shell(c Command) *screen {
	w.t.Helper()
	s := w.inShell(c, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.expect("$ ")
	return s
}

func (w *world) inShell(c Command, args ...string) *screen {
	w.t.Helper()
	script := filepath.Join(w.project, "vx")
	text := "#!/bin/sh\nRUN_TEST='" + strings.ReplaceAll(w.spec(c), "'", `'\''`) + "' exec " + os.Args[0] + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = w.project, w.env
	return w.onScreen(cmd)
}

func TestCtrlZStopsTheJobAndFgGoesOn(t *testing.T) {
	// Bash mends the terminal's modes after a job; the plain shell relies on the job.
	for _, shell := range [][]string{{"bash", "--norc", "--noprofile", "--noediting", "-i"}, {"sh", "-i"}} {
		t.Run(shell[0], func(t *testing.T) {
			w := newWorld(t)
			s := w.inShell(sh(`echo ready; read x; echo "got $x"; exit 7`), shell...)
			s.expect("$ ")
			s.typed("./vx\n")
			s.expect("ready")
			s.typed("\x1a")
			s.expect("Stopped")
			s.typed("echo the shell is $((40+2))\n")
			s.expect("the shell is 42\r\n")
			s.typed("fg\n")
			s.expect("./vx")
			s.typed("input\n")
			s.expect("got input")
			s.expect("$ ")
			s.typed("echo status $?\n")
			s.expect("status 7")
			if got := w.only(); !strings.HasPrefix(got.Outcome, "exit 7") {
				t.Errorf("the wake is %+v", got)
			}
		})
	}
}

func TestAStoppedJobGoesOnInTheBackground(t *testing.T) {
	w := newWorld(t)
	gate := filepath.Join(w.project, "gate")
	s := w.shell(sh("echo ready; while ! test -e " + gate + "; do :; done; echo went on; read x; echo got $x"))
	s.typed("./vx\n")
	s.expect("ready")
	s.typed("\x1a")
	s.expect("Stopped")
	s.typed("bg\n")
	s.typed("touch gate\n")
	s.expect("went on\r\n")
	s.typed("echo typed for the $((40+2))\n")
	s.expect("typed for the 42")
	s.typed("fg\n")
	s.typed("input\n")
	s.expect("got input")
	s.leave()
	w.only()
}

func TestACommandThatIgnoresCtrlZIsServedOn(t *testing.T) {
	w := newWorld(t)
	s := w.shell(sh(`trap '' TSTP; echo ready; read x; echo "got $x"`))
	s.typed("./vx\n")
	s.expect("ready")
	s.typed("\x1a")
	s.typed("input\n")
	s.expect("got input")
	s.expect("$ ")
	s.typed("echo status $?\n")
	s.expect("status 0")
}

func TestInTheBackgroundTheTerminalStaysTheShells(t *testing.T) {
	w := newWorld(t)
	gate := filepath.Join(w.project, "gate")
	s := w.shell(sh("stty raw -echo; echo started; while ! test -e " + gate + "; do sleep 0.05; done; echo ended"))
	before := s.modes()
	s.typed("./vx &\n")
	s.expect("started\r\n")
	s.typed("echo typed for the $((40+2))\n")
	s.expect("typed for the 42")
	if s.modes() != before {
		t.Errorf("a job in the background has changed the terminal's modes")
	}
	s.typed("touch gate\n")
	s.expect("ended")
	s.typed("wait; exit\n")
	s.status()
	w.only()
}

func TestABackgroundCommandThatReadsGetsItsKeysInTheForeground(t *testing.T) {
	w := newWorld(t)
	s := w.shell(sh(`echo started; read x; echo "got $x"`))
	s.typed("./vx &\n")
	s.expect("started")
	s.typed("echo typed for the $((40+2))\n")
	s.expect("typed for the 42")
	s.typed("fg\n")
	s.expect("./vx")
	s.typed("input\n")
	s.expect("got input")
	s.leave()
	w.only()
}

func TestWhenTheShellIsKilledABackgroundCommandReadsTheEndOfItsInput(t *testing.T) {
	w := newWorld(t)
	s := w.shell(sh("echo started; read x; exit 8"))
	s.typed("./vx &\n")
	s.expect("started")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.slave.Close()
	s.master.Close()
	w.eventually("the wake", func() bool { return len(w.waiting()) == 1 })
	if got := w.only(); !strings.HasPrefix(got.Outcome, "exit 8") {
		t.Errorf("the wake is %+v", got)
	}
}

func TestWhenVxIsKilledTheCommandIsHungUp(t *testing.T) {
	w := newWorld(t)
	told := filepath.Join(w.project, "told")
	s := w.onScreen(w.vx(sh("trap 'echo hung up >" + told + "; exit' HUP; echo ready; while :; do sleep 0.05; done")))
	s.expect("ready")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	w.eventually("the command is told", func() bool { text, err := os.ReadFile(told); return err == nil && string(text) == "hung up\n" })
}

func TestATerminalThatHangsUpIsTold(t *testing.T) {
	w := newWorld(t)
	cmd := w.vx(sh(`trap 'echo late; exit 3' HUP; echo ready; while :; do sleep 0.05; done`))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	s := w.onScreen(cmd)
	s.expect("ready")
	s.slave.Close()
	s.master.Close()
	if got := s.status(); got != 3 || strings.Contains(stderr.String(), "vx:") {
		t.Errorf("exit status %d, %q: nobody is left to complain to", got, stderr.String())
	}
	if got := w.only(); got.NewStatus != "interrupted" || !strings.Contains(got.Detail, "late") {
		t.Errorf("the wake is %+v", got)
	}
}
