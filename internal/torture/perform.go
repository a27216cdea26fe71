//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vx/internal/wake"
)

// reader is how a child's output is read.
type reader int

const (
	readsAll reader = iota
	leaves          // once the delivery is noted
	chokes          // reads nothing, and the child is killed when its pipe is full
)

const (
	idle  = 2 * time.Second // after its last step an await waits for a bell: it is asked to end
	choke = 15 * time.Millisecond
	small = 4096 // bytes that a choked pipe holds
)

// ending is how a child came to its end.
type ending struct {
	Status         int  // -1 when a signal ended it
	Killed         bool // by SIGKILL
	Steps          []wake.Step
	Trouble        string // the child's own error, or what kept it from starting
	Stdout, Stderr string
	Took           time.Duration // from its first word to its end
}

func (e ending) came(to wake.Step) bool { return slices.Contains(e.Steps, to) }

// last is the step that the child came to before it ended.
func (e ending) last() wake.Step {
	if len(e.Steps) == 0 {
		return "started"
	}
	return e.Steps[len(e.Steps)-1]
}

func reexec(o order) *exec.Cmd {
	arg, err := json.Marshal(o)
	if err != nil {
		panic(err) // an order has no field that cannot be encoded
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, childArg, string(arg))
}

// perform runs a child to its end. o.After, when it is not zero, is how long after its first word, or o.From, it is killed.
func perform(o order) ending {
	e, err := performing(o)
	if err != nil {
		e.Trouble = err.Error()
	}
	return e
}

func performing(o order) (e ending, err error) {
	cmd := reexec(o)
	cmd.Dir = o.Root
	cmd.Stdin = strings.NewReader(o.Stdin)
	cmd.Env = append(os.Environ(), "CLAUDE_PROJECT_DIR="+o.Root)
	if o.PID {
		cmd.Env = append(cmd.Env, "CLAUDE_PID="+strconv.Itoa(os.Getpid()))
	}
	privately(o, cmd)
	report, steps, err := os.Pipe()
	if err != nil {
		return e, err
	}
	defer report.Close()
	defer steps.Close()
	cmd.ExtraFiles = []*os.File{steps}
	var stdout, stderr output
	defer stdout.close()
	defer stderr.close()
	if err := errors.Join(stdout.open(o.Reader), stderr.open(o.Reader)); err != nil {
		return e, err
	}
	cmd.Stdout, cmd.Stderr = stdout.w, stderr.w
	if err := cmd.Start(); err != nil {
		return e, err
	}
	steps.Close()
	stdout.w.Close()
	stderr.w.Close()
	if o.Reader != chokes {
		stdout.read()
		stderr.read()
	}
	var began time.Time
	asked := time.AfterFunc(time.Hour, func() { cmd.Process.Signal(syscall.SIGTERM) })
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		if o.Task == asAwait {
			asked.Reset(idle)
		}
		switch line := lines.Text(); {
		case line == "started":
			began = time.Now()
			if o.From == "" {
				o.killAfter(cmd.Process)
			}
		case strings.HasPrefix(line, "error "):
			e.Trouble = line[len("error "):]
		default:
			e.Steps = append(e.Steps, wake.Step(line))
			switch {
			case line == string(o.From):
				o.killAfter(cmd.Process)
			case line == string(wake.Noted) && o.Reader == leaves:
				stderr.close()
				stdout.close()
			case line == string(wake.Printing) && o.Reader == chokes:
				time.AfterFunc(choke, func() { cmd.Process.Kill() })
			}
		}
	}
	err = cmd.Wait()
	asked.Stop()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return e, err
	}
	e.Took = time.Since(began)
	e.Stdout, e.Stderr = stdout.text(), stderr.text()
	e.Status = cmd.ProcessState.ExitCode()
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	e.Killed = ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
	return e, nil
}

// killAfter kills a child in a while, if that is ordered.
func (o order) killAfter(child *os.Process) {
	if o.After > 0 {
		time.AfterFunc(o.After, func() { child.Kill() })
	}
}

// output is a pipe that a child prints into.
type output struct {
	r, w *os.File
	buf  bytes.Buffer
	done chan struct{}
}

func (o *output) open(how reader) (err error) {
	if o.r, o.w, err = os.Pipe(); err == nil && how == chokes {
		narrow(o.w, small)
	}
	return err
}

// read begins to read; it ends with the last of the writers, or with close.
func (o *output) read() {
	o.done = make(chan struct{})
	go func() {
		io.Copy(&o.buf, o.r)
		close(o.done)
	}()
}

// text is all that was read.
func (o *output) text() string {
	if o.done == nil {
		o.read()
	}
	<-o.done
	return o.buf.String()
}

func (o *output) close() {
	for _, f := range []*os.File{o.r, o.w} {
		if f != nil {
			f.Close()
		}
	}
}

// clientMain is a client's process: it carries out one order after the other.
func clientMain(orders io.Reader, endings io.Writer) int {
	in, out := json.NewDecoder(orders), json.NewEncoder(endings)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return 0
		}
		if err := out.Encode(perform(o)); err != nil {
			return 0
		}
	}
}
