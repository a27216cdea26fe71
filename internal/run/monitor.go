package run

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// MonitorName is the argument with which vx runs itself as the monitor; what follows is the command's path and its
// arguments, from its own name on. It is not for people.
const MonitorName = "run-monitor"

// The monitor's descriptors. 0 to 2 are the command's.
const (
	monitorTerminal = 3 + iota
	monitorEvents
	monitorControl
)

// monitor is the process between vx and a command in a terminal of its own. It leads the session, and the command leads
// a process group in it.
type monitor struct {
	events  *os.File
	command *os.Process
	signals chan byte // to pass on, by number
}

// Monitor is the monitor's main program. It returns an exit status that nobody reads; 80 where it was not started by vx.
func Monitor(args []string) int {
	for _, fd := range []int{monitorTerminal, monitorEvents, monitorControl} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return 80
		}
	}
	if len(args) < 2 {
		return 80
	}
	children, hangUp := on(syscall.SIGCHLD), on(syscall.SIGHUP)
	m := &monitor{events: os.NewFile(monitorEvents, "events"), signals: make(chan byte)}
	var err error
	m.command, err = os.StartProcess(args[0], args[1:], &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		errno := syscall.EIO
		errors.As(err, &errno)
		event{eventFailed, uint32(errno)}.write(m.events)
		return 1
	}
	m.show(m.command.Pid)
	// Not before the command was started, which would inherit it. The monitor is in the background from now on.
	signal.Ignore(syscall.SIGTTOU)
	event{eventStarted, 0}.write(m.events)
	go m.listen(os.NewFile(monitorControl, "control"))
	m.attend(children, hangUp)
	return 0
}

// show puts a process group into the terminal's foreground.
func (m *monitor) show(group int) {
	unix.IoctlSetPointerInt(monitorTerminal, unix.TIOCSPGRP, group)
}

// listen takes the signals that vx passes on, one a byte.
func (m *monitor) listen(control io.Reader) {
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(control, b); err != nil {
			return
		}
		m.signals <- b[0]
	}
}

// attend waits for the command's end.
func (m *monitor) attend(children, hangUp <-chan os.Signal) {
	for {
		select {
		case <-hangUp:
			// vx is gone, and the command's terminal with it. The kernel tells the session's leader only.
			m.pass(syscall.SIGHUP)
		case sig := <-m.signals:
			m.pass(syscall.Signal(sig))
		case <-children:
			for {
				var s syscall.WaitStatus
				pid, err := syscall.Wait4(m.command.Pid, &s, syscall.WNOHANG|syscall.WUNTRACED, nil)
				if errors.Is(err, syscall.EINTR) {
					continue
				}
				if err != nil || pid == 0 {
					break
				}
				if m.tell(s) {
					return
				}
			}
		}
	}
}

// pass gives the command a signal. What a terminal gives to a whole job goes to the job.
func (m *monitor) pass(sig syscall.Signal) {
	switch sig {
	case syscall.SIGCONT:
		m.show(m.command.Pid)
		unix.Kill(-m.command.Pid, sig)
	case syscall.SIGHUP:
		unix.Kill(-m.command.Pid, sig)
		unix.Kill(-m.command.Pid, unix.SIGCONT) // a stopped one is to hear it, as from the kernel
	default:
		m.command.Signal(sig)
	}
}

// tell passes on what the kernel says of the command and reports whether that was its end.
func (m *monitor) tell(s syscall.WaitStatus) (ended bool) {
	if !s.Stopped() {
		// A session's end hangs up its foreground: let that not be what the command has left behind.
		m.show(unix.Getpgrp())
		for fd := range monitorEvents {
			unix.Close(fd) // vx is to see that nobody has the terminal any more
		}
		event{eventEnded, uint32(s)}.write(m.events)
		return true
	}
	if s.StopSignal() == syscall.SIGTTIN || s.StopSignal() == syscall.SIGTTOU {
		// It was faster at the terminal than the monitor was with putting it into the foreground.
		m.pass(syscall.SIGCONT)
		return false
	}
	event{eventStopped, uint32(s)}.write(m.events)
	return false
}
