package run

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// lookEvery is how often a run in the background looks whether it has come into the foreground: no signal says so.
const lookEvery = 200 * time.Millisecond

// terminal is the command's own terminal, in front of the real one. While vx is in the foreground the real one is raw,
// and its keys are the command's: what Ctrl-C is, and whether a key is echoed, is decided by the command's terminal. In
// the background nothing is read, and the real one stays as the shell has it.
type terminal struct {
	master, slave *os.File
	screen        int           // a descriptor of the real one, for its size
	keys          *os.File      // the real one to read from; nil where there is none
	taken         chan struct{} // the keys are the command's from now on

	mu     sync.Mutex
	raw    bool
	before unix.Termios // the real one's modes of before
	made   unix.Termios // the raw ones
	away   bool         // the keys are the shell's, whatever is in the foreground

	feeding sync.Mutex // held while keys are on their way

	interrupted atomic.Bool // Ctrl-C or Ctrl-\ was typed, and meant a signal
}

// newTerminal is a terminal for a command that would print to screen; nil where none is to be had.
func newTerminal(stdin, screen *os.File) (*terminal, error) {
	t := &terminal{screen: int(screen.Fd()), taken: make(chan struct{}, 1)}
	modes, err := unix.IoctlGetTermios(t.screen, getTermios)
	if err != nil {
		return nil, fmt.Errorf("terminal modes: %w", err)
	}
	master, slave, err := pty.Open()
	if err != nil {
		return nil, nil // a machine without /dev/ptmx: the command prints to a pipe
	}
	defer master.Close()
	if err := unix.IoctlSetTermios(int(slave.Fd()), setTermios, modes); err != nil {
		slave.Close()
		return nil, fmt.Errorf("terminal modes: %w", err)
	}
	if t.master, err = pollable(master); err != nil {
		slave.Close()
		return nil, err
	}
	t.slave = slave
	if isTerminal(stdin) {
		t.keys = stdin
	} else if tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0); err == nil {
		t.keys = tty
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

// listen makes the real terminal raw if it is ours to read.
func (t *terminal) listen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.raw || t.away || t.keys == nil || !inForeground(int(t.keys.Fd())) {
		return
	}
	modes, err := unix.IoctlGetTermios(int(t.keys.Fd()), getTermios)
	if err != nil {
		return
	}
	if *modes != t.made { // else they were left from the last time
		t.before = *modes
	}
	modes.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	modes.Oflag &^= unix.OPOST
	modes.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	modes.Cflag &^= unix.CSIZE | unix.PARENB
	modes.Cflag |= unix.CS8
	modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 0, 0 // a read never waits
	t.made = *modes
	if t.raw = unix.IoctlSetTermios(int(t.keys.Fd()), setTermios, modes) == nil; t.raw {
		select {
		case t.taken <- struct{}{}:
		default:
		}
	}
}

// look takes the keys once vx has come into the foreground. Where the real terminal is gone, as when a shell was killed
// that this ran in the background of, the command finds the end of its input, as it would have there.
func (t *terminal) look() {
	t.listen()
	if t.keys == nil {
		return
	}
	keys := []unix.PollFd{{Fd: int32(t.keys.Fd())}}
	if n, err := unix.Poll(keys, 0); err != nil || n == 0 {
		return
	}
	t.control(func(fd int) {
		if modes, err := unix.IoctlGetTermios(fd, getTermios); err == nil && modes.Lflag&unix.ICANON != 0 {
			unix.Write(fd, []byte{modes.Cc[unix.VEOF]})
		}
	})
}

// relayKeys passes keys on for as long as vx runs.
func (t *terminal) relayKeys() {
	for block := make([]byte, 4096); t.keys != nil; {
		if raw, away := t.state(); !raw || away {
			<-t.taken
			continue
		}
		keys := []unix.PollFd{{Fd: int32(t.keys.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(keys, -1); err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return
		}
		if t.feed(block) == 0 && keys[0].Revents&^unix.POLLIN != 0 {
			return // hung up
		}
	}
}

// feed passes on the keys that are there, if they are the command's.
func (t *terminal) feed(block []byte) int {
	t.feeding.Lock()
	defer t.feeding.Unlock()
	if raw, away := t.state(); !raw || away || !inForeground(int(t.keys.Fd())) {
		return 0
	}
	n, _ := unix.Read(int(t.keys.Fd()), block)
	if n > 0 {
		t.note(block[:n])
		t.master.Write(block[:n])
	}
	return n
}

// note sees whether a key is one that the command's terminal makes a signal of.
func (t *terminal) note(keys []byte) {
	t.control(func(fd int) {
		modes, err := unix.IoctlGetTermios(fd, getTermios)
		if err == nil && modes.Lflag&unix.ISIG != 0 && bytes.ContainsAny(keys, string([]byte{modes.Cc[unix.VINTR], modes.Cc[unix.VQUIT]})) {
			t.interrupted.Store(true)
		}
	})
}

func (t *terminal) state() (raw, away bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raw, t.away
}

// rest stops the taking of keys; those that were taken are passed on, as far as the command's terminal has room.
func (t *terminal) rest() {
	t.mu.Lock()
	t.away = true
	t.mu.Unlock()
	t.master.SetWriteDeadline(time.Unix(1, 0))
	t.feeding.Lock()
	defer t.feeding.Unlock()
}

// giveBack gives the real terminal its modes of before, and leaves it alone from now on.
func (t *terminal) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away = true
	if t.raw && inForeground(int(t.keys.Fd())) {
		unix.IoctlSetTermios(int(t.keys.Fd()), setTermios, &t.before)
	}
	t.raw = false
}

// wake ends rest and giveBack.
func (t *terminal) wake() {
	t.mu.Lock()
	t.away, t.raw = false, false // the shell may have set its own modes since
	t.mu.Unlock()
	t.master.SetWriteDeadline(time.Time{})
	t.listen()
}

// resize gives the command's terminal the real one's size; if that is another one now the kernel tells the command.
func (t *terminal) resize() {
	if size, err := unix.IoctlGetWinsize(t.screen, unix.TIOCGWINSZ); err == nil {
		t.control(func(fd int) { unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	}
}

// control calls f with the master's descriptor.
func (t *terminal) control(f func(fd int)) {
	if raw, err := t.master.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// asPrinted undoes what the command's terminal does to a newline (it becomes CR LF) where the real one does it again.
func (t *terminal) asPrinted(data []byte) []byte {
	if raw, _ := t.state(); raw || !t.newlines() {
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

// newlines reports whether the command's terminal makes CR LF of a newline.
func (t *terminal) newlines() (yes bool) {
	t.control(func(fd int) {
		modes, err := unix.IoctlGetTermios(fd, getTermios)
		yes = err == nil && modes.Oflag&unix.OPOST != 0 && modes.Oflag&unix.ONLCR != 0
	})
	return yes
}

// plain lets newlines pass from now on: nobody will undo what the terminal does to them.
func (t *terminal) plain() {
	t.control(func(fd int) {
		if modes, err := unix.IoctlGetTermios(fd, getTermios); err == nil {
			modes.Oflag &^= unix.ONLCR
			unix.IoctlSetTermios(fd, setTermios, modes)
		}
	})
}
