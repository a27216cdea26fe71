package hook

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// watched are the descriptors that end a wait; -1 for one that there is not.
type watched struct {
	bell    int // the doorbell
	client  int // readable when the client has ended
	signals int // readable when a signal asked for the end
	orders  int // readable when the client has something to say
	out     streams
}

// seen is what a wait found.
type seen struct{ rung, ended, asked, hungUp bool }

// watch is one kqueue over everything that an await waits for: poll(2) here does not tell of every kind of descriptor.
type watch struct {
	watched
	kq     int
	hungUp bool // told once only, so it is kept
}

func newWatch(d watched) (*watch, error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return nil, fmt.Errorf("kqueue: %w", err)
	}
	unix.CloseOnExec(kq)
	w := &watch{watched: d, kq: kq}
	for _, fd := range []int{d.bell, d.client, d.signals, d.orders} {
		if fd < 0 {
			continue
		}
		if err := w.add(fd, unix.EVFILT_READ, unix.EV_ADD); err != nil {
			unix.Close(kq)
			return nil, fmt.Errorf("kqueue: %w", err)
		}
	}
	for _, fd := range []int{d.out.stdout, d.out.stderr} {
		if fd >= 0 {
			// Told at changes only, or it would tell for ever that there is room. What cannot be watched, a file
			// or a device, does not hang up.
			w.add(fd, unix.EVFILT_WRITE, unix.EV_ADD|unix.EV_CLEAR)
		}
	}
	return w, nil
}

func (w *watch) add(fd, filter, flags int) error {
	var k unix.Kevent_t
	unix.SetKevent(&k, fd, filter, flags)
	_, err := unix.Kevent(w.kq, []unix.Kevent_t{k}, nil, nil)
	return err
}

// wait waits until something happens, or the time is up.
func (w *watch) wait(timeout time.Duration) (seen, error) {
	var events [6]unix.Kevent_t
	t := unix.NsecToTimespec(timeout.Nanoseconds())
	n, err := unix.Kevent(w.kq, nil, events[:], &t)
	if err == unix.EINTR {
		n, err = 0, nil
	}
	if err != nil {
		return seen{}, err
	}
	var s seen
	for _, e := range events[:n] {
		switch fd := int(e.Ident); {
		case e.Filter == unix.EVFILT_WRITE:
			w.hungUp = w.hungUp || e.Flags&unix.EV_EOF != 0
		case fd == w.bell:
			s.rung = true
		case fd == w.client:
			s.ended = true
		case fd == w.signals:
			s.asked = true
		}
	}
	s.hungUp = w.hungUp
	return s, nil
}
