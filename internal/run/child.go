package run

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// child is the command as a process.
type child interface {
	// signal gives the command a signal; after its end it does nothing.
	signal(syscall.Signal)
	// look asks the kernel for news, after a SIGCHLD.
	look()
	// news are the command's end, and before it its stops where vx is to stop too.
	news() <-chan syscall.WaitStatus
}

// direct is a command in vx's own process group: the terminal's signals reach both.
type direct struct {
	process *os.Process
	ended   chan syscall.WaitStatus
}

func launchDirect(path string, args []string, out *output) (child, error) {
	p, err := os.StartProcess(path, args, &os.ProcAttr{Files: out.files()})
	if err != nil {
		return nil, err
	}
	return &direct{p, make(chan syscall.WaitStatus, 1)}, nil
}

func (d *direct) signal(sig syscall.Signal) { d.process.Signal(sig) }

func (d *direct) news() <-chan syscall.WaitStatus { return d.ended }

// look reaps the command. Only its caller sends signals, so none is sent to a pid that was given back.
func (d *direct) look() {
	var s syscall.WaitStatus
	if pid, err := syscall.Wait4(d.process.Pid, &s, syscall.WNOHANG, nil); err == nil && pid != 0 {
		d.ended <- s
	}
}

// monitored is a command in a session of its own, whose parent is the monitor.
type monitored struct {
	control *os.File
	status  chan syscall.WaitStatus
}

func launchMonitored(path string, args []string, out *output) (child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	events, theirEvents, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	defer theirEvents.Close()
	theirControl, control, err := os.Pipe()
	if err != nil {
		events.Close()
		return nil, fmt.Errorf("monitor: %w", err)
	}
	defer theirControl.Close()
	m := &monitored{control: control, status: make(chan syscall.WaitStatus, 1)}
	monitor, err := os.StartProcess(exe, append([]string{os.Args[0], MonitorName, path}, args...), &os.ProcAttr{
		Files: append(out.files(), out.terminal.slave, theirEvents, theirControl),
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: monitorTerminal},
	})
	theirEvents.Close()
	if err == nil {
		err = m.begin(monitor, events)
	}
	if err != nil {
		events.Close()
		control.Close()
		return nil, err
	}
	return m, nil
}

// begin waits until the command runs. A signal that ends the monitor before that, such as that of an early Ctrl-C, was
// the command's.
func (m *monitored) begin(monitor *os.Process, events *os.File) error {
	first, err := readEvent(events)
	if err != nil {
		state, werr := monitor.Wait()
		if werr == nil {
			if end := state.Sys().(syscall.WaitStatus); end.Signaled() {
				m.status <- end
				return nil
			}
		}
		return fmt.Errorf("monitor: %w", errors.Join(err, werr))
	}
	if first.kind == eventFailed {
		return syscall.Errno(first.value)
	}
	go m.listen(events)
	return monitor.Release() // its news come through the pipe
}

// listen takes the monitor's news. Without a last word from it the command counts as killed.
func (m *monitored) listen(events *os.File) {
	defer events.Close()
	for {
		e, err := readEvent(events)
		if err != nil {
			m.status <- syscall.WaitStatus(syscall.SIGKILL)
			return
		}
		m.status <- syscall.WaitStatus(e.value)
		if e.kind == eventEnded {
			return
		}
	}
}

func (m *monitored) signal(sig syscall.Signal) { m.control.Write([]byte{byte(sig)}) }

func (m *monitored) news() <-chan syscall.WaitStatus { return m.status }

// look has nothing to ask: the monitor says what there is.
func (m *monitored) look() {}

// event is what the monitor tells: that the command runs or why it does not, and wait statuses.
type event struct {
	kind  byte
	value uint32
}

const (
	eventStarted = 's'
	eventFailed  = 'f' // value: the error number
	eventStopped = 'z' // value: the wait status
	eventEnded   = 'e' // value: the wait status
)

var errEvent = errors.New("unknown event")

func readEvent(r io.Reader) (event, error) {
	var b [5]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return event{}, err
	}
	e := event{b[0], binary.LittleEndian.Uint32(b[1:])}
	switch e.kind {
	case eventStarted, eventFailed, eventStopped, eventEnded:
		return e, nil
	}
	return e, errEvent
}

func (e event) write(w io.Writer) error {
	_, err := w.Write(binary.LittleEndian.AppendUint32([]byte{e.kind}, e.value))
	return err
}
