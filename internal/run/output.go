package run

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// output is the way that a command's output takes: what the command is given, and the streams that are passed on.
type output struct {
	stdin, stdout, stderr *os.File // the command's
	terminal              *terminal
	tail                  *tail
	streams               []*stream
}

// newOutput makes the way for a command: one stream for each place that it prints to, so that what goes to one place
// keeps its order, and what goes to two stays apart.
func newOutput(c Command) (*output, error) {
	o := &output{stdin: c.Stdin, stdout: c.Stdout, stderr: c.Stderr, tail: newTail(c.Tail)}
	if c.Direct {
		return o, nil
	}
	var err error
	if o.stdout, err = o.stream("stdout", c.Stdout); err != nil {
		return nil, err
	}
	if sameFile(c.Stdout, c.Stderr) {
		o.stderr = o.stdout
		return o, nil
	}
	if o.stderr, err = o.stream("stderr", c.Stderr); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func sameFile(a, b *os.File) bool {
	fa, err := a.Stat()
	if err != nil {
		return false
	}
	fb, err := b.Stat()
	return err == nil && os.SameFile(fa, fb)
}

// stream opens a stream to one place and returns the end that the command is to print to. The first place that is a
// terminal brings the command's own terminal with it.
func (o *output) stream(name string, to *os.File) (*os.File, error) {
	s := &stream{name: name, to: to, lines: o.tail.stream(), ended: make(chan struct{})}
	var err error
	if o.terminal == nil && isTerminal(to) {
		if s.terminal, err = newTerminal(o.stdin, to); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.terminal != nil {
		o.terminal = s.terminal
		s.from, s.entry = s.terminal.master, s.terminal.slave
		if isTerminal(o.stdin) {
			o.stdin = s.entry
		}
	} else if s.from, s.entry, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o.streams = append(o.streams, s)
	return s.entry, nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// files are the command's first three descriptors.
func (o *output) files() []*os.File { return []*os.File{o.stdin, o.stdout, o.stderr} }

// relay begins to pass on what the command prints, and keys. The command has its own descriptors by now.
func (o *output) relay() {
	for _, s := range o.streams {
		s.entry.Close()
		go s.relay()
	}
	if o.terminal != nil {
		o.terminal.listen()
		go o.terminal.relayKeys()
	}
}

// drain waits until everything that was printed is passed on, but no longer than patience. Keys are the shell's again.
func (o *output) drain(patience time.Duration) {
	if o.terminal != nil {
		o.terminal.rest()
		defer o.terminal.giveBack()
	}
	late := time.After(patience)
	for _, s := range o.streams {
		select {
		case <-s.ended:
		case <-late:
			return
		}
	}
}

// leave ends the passing on. Where a process that the command left behind still holds its output open, a cat takes over,
// so that this process neither dies of a broken pipe nor keeps vx. It gives up waiting for a reader that does not read
// when a signal comes.
func (o *output) leave(give <-chan os.Signal) error {
	var errs []error
	for _, s := range o.streams {
		s.from.SetReadDeadline(time.Unix(1, 0))
		select {
		case <-s.ended:
			errs = append(errs, s.handOver(), s.err)
		case <-give:
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// close frees what is held and gives the terminal back as it was.
func (o *output) close() {
	if o.terminal != nil {
		o.terminal.giveBack()
	}
	for _, s := range o.streams {
		s.entry.Close()
		s.from.Close()
	}
}

// look is to be called from time to time, where there is a terminal.
func (o *output) look() {
	if o.terminal != nil {
		o.terminal.look()
	}
}

func (o *output) resize() {
	if o.terminal != nil {
		o.terminal.resize()
	}
}

// suspend passes on what was printed before the command stopped and gives the terminal to the shell.
func (o *output) suspend() {
	if o.terminal != nil {
		o.terminal.rest()
	}
	for _, s := range o.streams {
		s.settle(200 * time.Millisecond)
	}
	if o.terminal != nil {
		o.terminal.giveBack()
	}
}

func (o *output) resume() {
	if o.terminal != nil {
		o.terminal.resize()
		o.terminal.wake()
	}
}
