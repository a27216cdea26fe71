package run

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// modesEvery is how often the modes of the second terminal are looked at while nothing is printed.
const modesEvery = 100 * time.Millisecond

// terminal is a second terminal that stands in front of a real one for the command's output: a twin, of the same size
// and modes. The command's input still comes from the real one, so modes that the command gives the twin (a full-screen
// program does, through its output) are given to the real one too, and taken back at the end.
type terminal struct {
	master, slave *os.File
	real          int

	mu      sync.Mutex
	before  unix.Termios // the real one's, when the command was started
	applied unix.Termios // the real one's, as far as they were set here
	size    unix.Winsize
	away    bool // the real one belongs to the shell at present
}

// newTerminal is a terminal in front of f; nil where f is none, or where no other is to be had.
func newTerminal(f *os.File) (*terminal, error) {
	if !term.IsTerminal(int(f.Fd())) {
		return nil, nil
	}
	t := &terminal{real: int(f.Fd())}
	modes, err := unix.IoctlGetTermios(t.real, getTermios)
	if err != nil {
		return nil, fmt.Errorf("terminal modes: %w", err)
	}
	t.before, t.applied = *modes, *modes
	master, slave, err := pty.Open()
	if err != nil {
		return nil, nil // a machine without /dev/ptmx: the command sees a pipe
	}
	defer master.Close()
	if t.master, err = pollable(master); err != nil {
		slave.Close()
		return nil, err
	}
	t.slave = slave
	if err := unix.IoctlSetTermios(int(slave.Fd()), setTermios, modes); err != nil {
		slave.Close()
		t.master.Close()
		return nil, fmt.Errorf("terminal modes: %w", err)
	}
	t.resize()
	return t, nil
}

// pollable is f again, as a file that knows read deadlines.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// inForeground reports whether this process group is the one that a terminal, its controlling one, listens to.
func inForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// modes are the twin's.
func (t *terminal) modes() (modes unix.Termios, err error) {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return modes, err
	}
	cerr := raw.Control(func(fd uintptr) {
		var m *unix.Termios
		if m, err = unix.IoctlGetTermios(int(fd), getTermios); err == nil {
			modes = *m
		}
	})
	if err == nil {
		err = cerr
	}
	return modes, err
}

// copyModes gives the real terminal the twin's modes, where the command has changed them. In the background the real
// one is the shell's.
func (t *terminal) copyModes() {
	t.mu.Lock()
	defer t.mu.Unlock()
	modes, err := t.modes()
	if err == nil && !t.away && modes != t.applied {
		t.apply(modes)
	}
}

func (t *terminal) apply(modes unix.Termios) {
	if !inForeground(t.real) {
		return
	}
	if unix.IoctlSetTermios(t.real, setTermios, &modes) == nil {
		t.applied = modes
	}
}

// giveBack gives the real terminal its modes of before, if they were changed here, and leaves it alone from now on.
func (t *terminal) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.applied != t.before {
		t.apply(t.before)
	}
	t.away = true
}

// takeAgain ends giveBack.
func (t *terminal) takeAgain() {
	t.mu.Lock()
	t.away = false
	t.mu.Unlock()
	t.copyModes()
}

// resize gives the twin the real terminal's size and reports whether that is another one now.
func (t *terminal) resize() (changed bool) {
	size, err := unix.IoctlGetWinsize(t.real, unix.TIOCGWINSZ)
	if err != nil || *size == t.size {
		return false
	}
	t.size = *size
	raw, err := t.master.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) })
	return err == nil
}

// asPrinted undoes what the twin does to a newline (it becomes CR LF), which the real terminal does again: so the real
// one gets what the command has printed, whatever its modes.
func (t *terminal) asPrinted(data []byte) []byte {
	modes, err := t.modes()
	if err != nil || modes.Oflag&unix.OPOST == 0 || modes.Oflag&unix.ONLCR == 0 {
		return data
	}
	kept := data[:0]
	for i, b := range data {
		if b == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			continue
		}
		kept = append(kept, b)
	}
	return kept
}
