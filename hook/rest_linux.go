//go:build amd64 || arm64

package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/rest"
	"vx/internal/state"
	"vx/internal/wake"
)

// maxNote fits into a pipe whole.
const maxNote = 16 << 10

// forRest are the variables that a program at rest is started with. The runtime is to be one that a wait costs little,
// and, should it not get on its feet, one that aborts: a fatal error would end with 2.
var forRest = []string{"GOMAXPROCS=1", "GOGC=off", "GOTRACEBACK=crash"}

// rest starts the program anew once there is nothing left to do but wait: same process, same registration, same streams.
// Go never gives back the memory that a start takes, one page here and one there; a program that has done nothing but
// begin to wait has half of it. With the first news it becomes an await like any other. See Resume.
func (a *await) rest() {
	if a.orders != nil || a.pending || len(a.older) > 0 || a.held < 0 || time.Now().Before(a.restAt) || a.sentinel != nil && a.sentinelLock == nil {
		return
	}
	if hasChild() {
		return // what has started a sentinel: the next program would not bury it
	}
	n := a.note()
	if w := n.wait(); !w.Quiet() {
		return
	}
	if err := a.startAnew(n); err != nil {
		a.log.Warn("the await goes on in the program that it started in", "err", err)
		a.restAt = time.Now().Add(maxWait)
	}
}

// hasChild reports whether there is a child that was not waited for yet, ended or not.
func hasChild() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != unix.ECHILD
}

func (a *await) note() *note {
	kept := a.bell.Kept()
	n := &note{
		state: a.dir.Path(), dir: a.project.Dir, project: a.project.Root,
		session: a.Session, transcript: a.Transcript, pane: a.pane,
		record: kept.Base, spare: a.queue.Spare(),
		claude: a.claude, client: a.client,
		began: a.began, parent: a.parent, lock: kept.Lock, bell: kept.Bell, held: a.held, stderr: a.out.stderr, signals: a.signals,
	}
	if a.sentinel != nil {
		n.sentinel = a.sentinelLock(a.dir)
	}
	return n
}

// wait is what ends the rest.
func (n *note) wait() rest.Wait {
	w := rest.Wait{
		Readable: []int{n.bell, n.held, n.signals.fd},
		Hangup:   []int{1, n.stderr},
		Parent:   n.parent,
		Most:     maxWait - (proc.SinceBoot() - n.began),
		Files:    []string{awaiter.Kept{Base: n.record}.Record()},
		Places:   wake.Open(&state.Project{Root: n.project, Dir: n.dir}).Quiet(),
	}
	if n.spare != "" {
		w.Hold = []string{n.spare}
	}
	if n.sentinel != "" {
		w.Locks = []string{n.sentinel}
	}
	return w
}

// startAnew does not return unless it fails.
func (a *await) startAnew(n *note) error {
	text := n.encode()
	if len(text) > maxNote {
		return errors.New("note: too long")
	}
	var ends [2]int
	if err := pipe(&ends); err != nil {
		return err
	}
	defer unix.Close(ends[0])
	_, err := unix.Write(ends[1], text)
	if err := errors.Join(err, unix.Close(ends[1])); err != nil {
		return err
	}
	over := append(n.descriptors(), ends[0])
	defer closeOnExec(true, over)
	if err := closeOnExec(false, over); err != nil {
		return err
	}
	// A signal that comes before the exec is in the pipe; one that comes after it, and before the next program catches it,
	// ends the process as it would any other.
	//
	// Not by its path: an upgrade may have put another program there.
	err = syscall.Exec("/proc/self/exe", append(os.Args[:3:3], strconv.Itoa(ends[0])), restEnvironment())
	return fmt.Errorf("exec: %w", err)
}

// descriptors are those that the await keeps.
func (n *note) descriptors() []int {
	return []int{n.lock, n.bell, n.held, n.stderr, n.signals.fd, n.signals.told}
}

func restEnvironment() []string {
	env := append([]string{}, forRest...)
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); !restVariable(name) {
			env = append(env, e)
		}
	}
	return env
}

func restVariable(name string) bool {
	for _, e := range forRest {
		if strings.HasPrefix(e, name+"=") {
			return true
		}
	}
	return false
}

func closeOnExec(on bool, fds []int) error {
	flags := 0
	if on {
		flags = unix.FD_CLOEXEC
	}
	var errs []error
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags); err != nil {
			errs = append(errs, fmt.Errorf("descriptor %d: %w", fd, err))
		}
	}
	return errors.Join(errs...)
}

// Resume is what `vx sentinel await N` does, which an await starts as the program that rests for it: N is the descriptor
// of its note. It rests, and is the await that it was as soon as there is anything to do. Until then every allocation
// counts: two hundred of these wait at a time.
func (p Program) Resume(from string) (status int) {
	end := ending{mode: "await"}
	defer end.recover(&status)
	n, err := takeNote(from)
	if err != nil {
		newLog("await").Error("await", "err", err)
		return 0
	}
	w := n.wait()
	failed := w.Rest()
	log := newLog("await")
	if failed != nil {
		log.Error("await", "err", failed) // a wait of the plainer kind is left
	}
	for _, e := range forRest {
		name, _, _ := strings.Cut(e, "=")
		os.Unsetenv(name)
	}
	dir, err := state.LookAt(n.state)
	if err != nil {
		log.Error("await", "err", err)
		return 0
	}
	c := &call{pane: n.pane, claude: n.claude, dir: dir, project: dir.Project(n.project)}
	c.Session, c.Transcript = n.session, n.transcript
	k := p.courier(c, log, &end)
	k.client, k.out = n.client, streams{stdout: 1, stderr: n.stderr}
	a := p.await(k, n.parent)
	a.restAt = time.Now().Add(tick) // whatever ended the rest may be there still
	if failed != nil {
		a.restAt = time.Now().Add(maxWait)
	}
	return a.resume(context.Background(), n)
}

// takeNote reads the note, and makes the process what it was before the exec to itself and to others.
func takeNote(from string) (*note, error) {
	fd, err := strconv.Atoi(from)
	if err != nil {
		return nil, fmt.Errorf("note: %w", err)
	}
	unix.CloseOnExec(fd)
	size, err := unix.Read(fd, inherited.text[:])
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return nil, fmt.Errorf("note: %w", err)
	}
	n := &inherited.note
	if err := n.decode(inherited.text[:size]); err != nil {
		return nil, err
	}
	if err := errors.Join(n.signals.catch(), closeOnExec(true, n.descriptors())); err != nil {
		return nil, fmt.Errorf("note: %w", err)
	}
	// A program that was started by way of /proc is called "exe" in lists of processes.
	if fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
		unix.Write(fd, []byte(filepath.Base(os.Args[0])))
		unix.Close(fd)
	}
	return n, nil
}

// inherited is what takeNote read. It is no variable of a function: neither the heap nor a stack is to grow for it.
var inherited struct {
	text [maxNote]byte
	note note
}

// resume is run for an await that has rested.
func (a *await) resume(ctx context.Context, n *note) int {
	slim()
	a.began = n.began
	a.said = map[string]string{}
	a.signals = n.signals
	a.record = awaiter.Record{
		Process: proc.Self(), Project: n.project, Client: n.client, Session: n.session, Pane: n.pane, Socket: os.Getenv("HERDR_SOCKET_PATH"), Harness: a.recipient().Harness,
	}
	a.queue.TakeUp(n.spare)
	var err error
	if a.bell, err = awaiter.Resume(a.project, awaiter.Kept{Base: n.record, Lock: n.lock, Bell: n.bell}); err != nil {
		a.log.Error("await", "err", err)
		return 0
	}
	defer a.leave()
	if err := a.listen(n.held); err != nil {
		a.log.Error("await", "err", err)
		return 0
	}
	return a.loop(ctx)
}
