package run

import (
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// ending is how a run ended, in the words of its wake.
type ending struct {
	status  string // done, failed, interrupted
	outcome string // "exit 2, 41 s"
}

// verdict is what the wake says of a command that has ended. Interrupted is one that somebody ended: by a signal that is
// sent for that, or that did not end well after vx was told to end.
func (r *running) verdict(end syscall.WaitStatus) ending {
	took := duration(r.took)
	if end.Signaled() {
		sig := end.Signal()
		e := ending{"failed", fmt.Sprintf("%s, %s", signalName(sig), took)}
		switch sig {
		case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGKILL:
			e.status = "interrupted"
		}
		return e
	}
	e := ending{"failed", fmt.Sprintf("exit %d, %s", end.ExitStatus(), took)}
	switch {
	case end.ExitStatus() == 0:
		e.status = "done"
	case r.told != 0, r.out.terminal != nil && r.out.terminal.interrupted.Load():
		e.status = "interrupted"
	}
	return e
}

// standing is what the wake says of a command that was told to end and has not yet.
func (r *running) standing() ending {
	return ending{"interrupted", fmt.Sprintf("%s, still running after %s", signalName(r.told), duration(r.elapsed()))}
}

// statusOf is the exit status that a shell gives for the end of a command.
func statusOf(end syscall.WaitStatus) int {
	if end.Signaled() {
		return 128 + int(end.Signal())
	}
	return end.ExitStatus()
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}

// duration is a duration as people say it: 400 ms, 41 s, 3 min 12 s, 2 h 5 min.
func duration(d time.Duration) string {
	s := int(d.Seconds())
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}

// maxTitle is how many characters of a command stand for it in a title.
const maxTitle = 100

// commandLine is the command as it could be typed, shortened.
func commandLine(args []string) string {
	var b strings.Builder
	for i, arg := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(shellWord(arg))
		if b.Len() > utf8.UTFMax*maxTitle {
			break
		}
	}
	if r := []rune(strings.ToValidUTF8(b.String(), "\uFFFD")); len(r) > maxTitle {
		return string(r[:maxTitle-1]) + "…"
	}
	return b.String()
}

func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
