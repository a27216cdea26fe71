package run

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// output is the way that a command's output takes: what the command is given, and the streams that are passed on.
type output struct {
	stdout, stderr *os.File // the command's
	tail           *tail
	streams        []*stream
}

// newOutput makes the way for a command: one stream for each place that it prints to, so that what goes to one place
// keeps its order, and what goes to two stays apart.
func newOutput(c Command) (*output, error) {
	o := &output{stdout: c.Stdout, stderr: c.Stderr, tail: newTail(c.Tail)}
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

// stream opens a stream to one place and returns the end that the command is to print to.
func (o *output) stream(name string, to *os.File) (*os.File, error) {
	s := &stream{name: name, to: to, lines: o.tail.stream(), ended: make(chan struct{})}
	var err error
	if s.terminal, err = newTerminal(to); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.terminal != nil {
		s.from, s.entry = s.terminal.master, s.terminal.slave
	} else if s.from, s.entry, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o.streams = append(o.streams, s)
	return s.entry, nil
}

// relay begins to pass on what the command prints. The command has its own descriptors by now.
func (o *output) relay() {
	for _, s := range o.streams {
		s.entry.Close()
		go s.relay()
	}
}

// drain waits until everything that was printed is passed on, but no longer than patience.
func (o *output) drain(patience time.Duration) {
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
// so that this process neither dies of a broken pipe nor keeps vx. It gives up waiting for a reader that does not
// read when a signal comes.
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
	for _, s := range o.streams {
		if s.terminal != nil {
			s.terminal.giveBack()
		}
		s.entry.Close()
		s.from.Close()
	}
}

func (o *output) eachTerminal(f func(*terminal)) {
	for _, s := range o.streams {
		if s.terminal != nil {
			f(s.terminal)
		}
	}
}

func (o *output) hasTerminal() (has bool) {
	o.eachTerminal(func(*terminal) { has = true })
	return has
}

func (o *output) copyModes() { o.eachTerminal((*terminal).copyModes) }

func (o *output) resize() {
	changed := false
	o.eachTerminal(func(t *terminal) { changed = t.resize() || changed })
	if changed {
		// The kernel told the whole group before the new size was known here: tell it again. vx hears it too, and finds
		// nothing changed.
		unix.Kill(0, unix.SIGWINCH)
	}
}

// suspend passes on what was printed before the command stopped and gives the terminal to the shell.
func (o *output) suspend() {
	for _, s := range o.streams {
		s.settle(200 * time.Millisecond)
	}
	o.eachTerminal((*terminal).giveBack)
}

func (o *output) resume() {
	o.eachTerminal((*terminal).takeAgain)
	o.resize()
}
