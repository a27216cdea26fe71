package green

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/wake"
)

const (
	// judgeTimeout is generous: it is one answer.
	judgeTimeout = 10 * time.Minute
	// maxReport is in bytes; a client's report is at the end of what it prints.
	maxReport = 4 << 20
	// maxArg is what fits into one argument on Linux (128 KB), with some room; a longer prompt goes to stdin.
	maxArg = 120 << 10
)

// Client is the program of the default writer and judge.
const Client = "claude"

// refusal is what Claude Code prints, and ends with 1, where it is to skip permissions for root and IS_SANDBOX is not 1.
const refusal = "cannot be used with root/sudo privileges"

// ended is how a program has ended.
type ended struct {
	status  int // 128 + signal where a signal ended it
	signal  syscall.Signal
	late    time.Duration // the time limit that it has exceeded
	start   error         // it could not be started
	excerpt string        // of a gate
	refused bool          // it is a client that does not work for root
}

// trouble is what there is to say of an end besides its status.
func (e ended) trouble() string {
	switch {
	case e.start != nil:
		return "could not be started: " + e.start.Error()
	case e.late > 0:
		return fmt.Sprintf("was ended: it took longer than %v", e.late)
	case e.signal != 0:
		return fmt.Sprintf("was ended by a signal: %v", e.signal)
	case e.status != 0:
		return fmt.Sprintf("ended with %d", e.status)
	}
	return ""
}

// line is the ledger's line on a writer that did not end well.
func (e ended) line() string {
	if why := e.trouble(); why != "" {
		return "(the writer " + wake.Clean(why) + ")\n\n"
	}
	return ""
}

// do runs a program in a process group of its own, until it ends, its time is up, or ctx ends.
func (l *looper) do(ctx context.Context, cmd *exec.Cmd, limit time.Duration) ended {
	if ctx.Err() != nil {
		return ended{status: -1}
	}
	o := l.run.Work(ctx, cmd, limit)
	if o.Left != nil {
		l.show.Say(o.Left.Error())
	}
	e := ended{status: o.Status, signal: o.Signal, start: o.Start}
	if o.Late {
		e.late = limit
	}
	if o.Late && e.status == 0 { // it ended well when it was told to
		e.status = 128 + int(syscall.SIGTERM)
	}
	return e
}

// environment is what writer, gate and judge get besides ours.
func (l *looper) environment(more ...string) []string {
	return append(os.Environ(), append(more,
		"VX_TASK="+l.Task, "VX_LEDGER="+l.ledger(), "VX_ESCALATION="+l.escalation(), fmt.Sprintf("VX_PASS=%d", l.pass))...)
}

// agent is a writer or a judge: a command of the user's, or the client with arguments before and behind the prompt. The file
// that is stdin is to be closed.
func (l *looper) agent(command, name, prompt string, args []string) (*exec.Cmd, *os.File, error) {
	path := filepath.Join(l.run.Dir, fmt.Sprintf("%s-%03d.md", name, l.pass))
	if err := atomicfile.Write(path, []byte(prompt), 0o600); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command("sh", "-c", command)
	from := path
	if command == "" {
		cmd = exec.Command(Client, append([]string{"-p", prompt}, args...)...)
		from = os.DevNull
		if len(prompt) > maxArg {
			cmd = exec.Command(Client, append([]string{"-p"}, args...)...)
			from = path
		}
	}
	stdin, err := os.Open(from)
	if err != nil {
		return nil, nil, err
	}
	// An agent is nobody's commander: its own Stop hook must not take the wakes.
	cmd.Dir, cmd.Stdin, cmd.Env = l.Dir, stdin, without(l.environment("VX_HOOK=0", "VX_PROMPT_FILE="+path), "CLAUDECODE")
	return cmd, stdin, nil
}

func without(env []string, name string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// write runs the writer. Its output goes to the log of the pass as it comes.
func (l *looper) write(ctx context.Context, log *os.File) (ended, error) {
	cmd, stdin, err := l.agent(l.Writer, "prompt", l.writerPrompt(), []string{
		"--allowedTools", "Read,Edit,Write,Bash,Grep,Glob", "--max-turns", "80", "--dangerously-skip-permissions", "--output-format", "json",
	})
	if err != nil {
		return ended{}, err
	}
	defer stdin.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ended{}, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	e := l.do(ctx, cmd, l.WriterTimeout)
	if why := e.trouble(); why != "" && ctx.Err() == nil {
		l.show.Say(fmt.Sprintf("pass %d: the writer %s", l.pass, why))
	}
	out, err := part(log.Name(), from)
	if err != nil {
		return e, err
	}
	r := reported(out)
	e.refused = e.status != 0 && r == nil && l.skipsPermissions() && bytes.Contains(out, []byte(refusal))
	if r != nil && r.Cost != nil {
		l.Spent += *r.Cost
		l.costs = true
	} else {
		l.lost = true
	}
	return e, nil
}

// part is the end of a file behind an offset.
func part(path string, from int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from = max(from, fi.Size()-maxReport)
	return io.ReadAll(io.NewSectionReader(f, from, maxReport))
}

// tryGate runs the gate.
func (l *looper) tryGate(ctx context.Context, log *os.File) (ended, error) {
	shell := "bash"
	if _, err := exec.LookPath(shell); err != nil {
		shell = "sh"
	}
	cmd := exec.Command(shell, "-c", l.Gate)
	cmd.Dir, cmd.Env = l.Dir, l.environment()
	if _, err := log.WriteString("\n== gate\n"); err != nil {
		return ended{}, err
	}
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ended{}, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	e := l.do(ctx, cmd, l.GateTimeout)
	if e.status == 0 {
		return e, nil
	}
	f, err := os.Open(log.Name())
	if err != nil {
		return e, err
	}
	defer f.Close()
	e.excerpt, err = excerpt(io.NewSectionReader(f, from, 1<<62-from))
	return e, err
}

// ask runs the judge and returns what it has said, cleaned; "" is no answer.
func (l *looper) ask(ctx context.Context, log *os.File) (string, error) {
	c, err := l.change(ctx)
	if err != nil && ctx.Err() == nil {
		l.show.Say("the judge does not see what has changed: " + err.Error())
		c.missing = true
	}
	cmd, stdin, err := l.agent(l.Judge, "judge", l.judgePrompt(c), []string{
		"--model", "haiku", "--tools", "", "--strict-mcp-config", "--max-turns", "1", "--output-format", "json",
	})
	if err != nil {
		return "", err
	}
	defer stdin.Close()
	if _, err := log.WriteString("\n== judge\n"); err != nil {
		return "", err
	}
	out, err := os.CreateTemp(l.run.Dir, ".judge-")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, log // what it warns of is no answer
	e := l.do(ctx, cmd, judgeTimeout)
	if why := e.trouble(); why != "" && ctx.Err() == nil {
		l.show.Say("the judge " + why)
	}
	data, err := part(out.Name(), 0)
	if err == nil {
		_, err = log.Write(data)
	}
	if err != nil {
		return "", err
	}
	said := string(data)
	r := reported(data)
	if r != nil && r.Type == "result" {
		said = r.words()
	}
	switch {
	case r != nil && r.Cost != nil:
		l.Spent += *r.Cost
	case l.Judge == "":
		l.lost = true
	}
	if e.late > 0 || e.start != nil {
		return "", nil
	}
	return wake.Clean(said), errors.Join(l.save(l.run.Dir))
}
