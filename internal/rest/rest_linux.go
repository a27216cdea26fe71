//go:build amd64 || arm64

package rest

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tick   = 5 * time.Second
	coarse = 2 * time.Second // kernels stamp directories coarsely: a younger stamp may hide a second change
	again  = time.Minute     // a directory is read anew, whatever its stamp says
)

// Rest returns when something in w has happened, or may have. The time that it takes at a tick is that of one wake-up
// of one thread, and that needs some care with the Go runtime, which has to run on one processor (GOMAXPROCS=1):
//
// A goroutine that blocks in a system call is watched by the runtime's monitor, a thread of its own that naps 20 µs at a
// time until it has taken the processor away, and is woken again when the call returns. So this one does not block in a
// call: it is parked in the runtime's poller, with a timer of the kernel's instead of the runtime's, which would wake the
// monitor as well. And its looks are raw system calls, of which the monitor is told nothing. They must not take long then;
// but nothing else wants to run here.
func (w *Wait) Rest() error {
	l, err := w.listen()
	if err != nil {
		return fmt.Errorf("rest: %w", err)
	}
	defer l.close()
	for _, path := range w.Hold {
		l.hold(path)
	}
	for e := w.eyes(); e.quiet(); {
		if ticked, err := l.next(); err != nil || !ticked {
			return err
		}
	}
	return nil
}

// Quiet reports whether nothing has happened that can be looked for, so that Rest would not return at once on that
// account.
func (w *Wait) Quiet() bool { return w.eyes().quiet() }

// eyes are the looks that a tick takes.
type eyes struct {
	parent int
	files  []*byte // paths, as the kernel takes them
	locks  []*byte
	places []place
}

func (w *Wait) eyes() *eyes {
	e := &eyes{parent: w.Parent, files: make([]*byte, len(w.Files)), locks: make([]*byte, len(w.Locks)), places: make([]place, len(w.Places))}
	for i, path := range w.Files {
		e.files[i] = cString(path)
	}
	for i, path := range w.Locks {
		e.locks[i] = cString(path)
	}
	for i, p := range w.Places {
		e.places[i] = place{path: cString(p.Path), suffix: p.Suffix}
	}
	return e
}

func (e *eyes) quiet() bool {
	if os.Getppid() != e.parent {
		return false
	}
	var st unix.Statx_t
	for _, path := range e.files {
		if statx(path, &st) != 0 {
			return false
		}
	}
	for _, path := range e.locks {
		if !locked(path) {
			return false
		}
	}
	now := time.Now()
	for i := range e.places {
		if !e.places[i].empty(now) {
			return false
		}
	}
	return true
}

// locked reports whether somebody holds the lock on a file. It asks with a shared lock, so that two who ask at once do
// not take each other for the holder.
func locked(path *byte) bool {
	fd, errno := open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if errno != 0 {
		return false
	}
	defer closeFD(fd)
	return flock(fd, unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// place is a Place, and what it was like when it was read.
type place struct {
	path    *byte
	suffix  string
	changed unix.StatxTimestamp
	read    time.Time
}

// empty reports whether there is nothing in the place. One that is not there is empty.
func (p *place) empty(now time.Time) bool {
	var st unix.Statx_t
	switch statx(p.path, &st) {
	case 0:
	case unix.ENOENT:
		p.read = time.Time{}
		return true
	default:
		return false
	}
	since := now.Sub(p.read)
	settled := p.read.Sub(time.Unix(st.Mtime.Sec, int64(st.Mtime.Nsec))) > coarse
	if st.Mtime == p.changed && settled && since >= 0 && since < again {
		return true
	}
	p.changed, p.read = st.Mtime, now
	return !holds(p.path, p.suffix)
}

// listener is one descriptor for everything that is waited for, in the runtime's poller.
type listener struct {
	file   *os.File
	conn   syscall.RawConn
	fds    []int // closed with it
	timer  int
	events [1]unix.EpollEvent
	ticked bool
	err    error
	ready  func(fd uintptr) bool
}

func (w *Wait) listen() (l *listener, err error) {
	l = &listener{timer: -1}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	all, err := l.keep(unix.EpollCreate1(unix.EPOLL_CLOEXEC))
	if err != nil {
		return l, err
	}
	add := func(fd int, events uint32, err error) error {
		if err != nil {
			return err
		}
		return unix.EpollCtl(all, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
	}
	for _, fd := range w.Readable {
		if err := add(fd, unix.EPOLLIN, nil); err != nil {
			return l, err
		}
	}
	for _, fd := range w.Hangup {
		// That the other end is gone is told unasked. Where it cannot be, as for a file, it does not go.
		if err := add(fd, 0, nil); err != nil && err != unix.EPERM {
			return l, err
		}
	}
	l.timer, err = l.keep(timer(tick, tick))
	if err := add(l.timer, unix.EPOLLIN, err); err != nil {
		return l, err
	}
	end, err := l.keep(timer(max(w.Most, 1), 0))
	if err := add(end, unix.EPOLLIN, err); err != nil {
		return l, err
	}
	return l, l.park(all)
}

// keep notes a descriptor that is to be closed at the end.
func (l *listener) keep(fd int, err error) (int, error) {
	if err == nil {
		l.fds = append(l.fds, fd)
	}
	return fd, err
}

// hold locks a file until the end, if nobody else has.
func (l *listener) hold(path string) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	if flock(fd, unix.LOCK_EX|unix.LOCK_NB) != 0 {
		unix.Close(fd)
		return
	}
	l.fds = append(l.fds, fd)
}

// timer is readable after the time given, sleep included, and then at each interval.
func timer(first, interval time.Duration) (int, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return -1, err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(first.Nanoseconds()), Interval: unix.NsecToTimespec(interval.Nanoseconds())}
	if err := unix.TimerfdSettime(fd, 0, &spec, nil); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// park hands the descriptor to the runtime's poller, which takes one that does not block.
func (l *listener) park(all int) (err error) {
	if err := unix.SetNonblock(all, true); err != nil {
		return err
	}
	l.file = os.NewFile(uintptr(all), "rest")
	l.fds = l.fds[1:] // the file has it now
	l.conn, err = l.file.SyscallConn()
	l.ready = l.look
	return err
}

// look takes one thing that happened, and reports whether there was one.
func (l *listener) look(fd uintptr) bool {
	n, errno := epollWait(int(fd), l.events[:])
	if errno == unix.EINTR || errno == 0 && n == 0 {
		return false
	}
	l.ticked = false
	if errno != 0 {
		l.err = errno
	} else if int(l.events[0].Fd) == l.timer {
		l.ticked = true
		clearTimer(l.timer)
	}
	return true
}

// next waits for what happens next, and reports whether that was no more than a tick.
func (l *listener) next() (ticked bool, err error) {
	if err := l.conn.Read(l.ready); err != nil {
		return false, err
	}
	return l.ticked, l.err
}

func (l *listener) close() {
	if l.file != nil {
		l.file.Close()
	}
	for _, fd := range l.fds {
		unix.Close(fd)
	}
}
