package loop

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// changes tells that files come to a directory or go, as a hint: whoever waits looks now and then all the same.
type changes struct {
	told chan struct{}
	end  chan struct{}
}

// lookUp is how often the reader looks whether it is to end, in nanoseconds: a kqueue that is closed wakes nobody.
const lookUp = 200e6

// watch has the kernel tell of a directory. From its return on nothing is missed.
func watch(dir string) (*changes, error) {
	fail := func(err error, fds ...int) (*changes, error) {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	at, err := unix.Open(dir, unix.O_EVTONLY|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return fail(err)
	}
	kq, err := unix.Kqueue()
	if err != nil {
		return fail(err, at)
	}
	unix.CloseOnExec(kq)
	entries := unix.Kevent_t{Ident: uint64(at), Filter: unix.EVFILT_VNODE, Flags: unix.EV_ADD | unix.EV_CLEAR, Fflags: unix.NOTE_WRITE}
	if _, err := unix.Kevent(kq, []unix.Kevent_t{entries}, nil, nil); err != nil {
		return fail(err, kq, at)
	}
	c := &changes{make(chan struct{}, 1), make(chan struct{})}
	go c.read(kq, at)
	return c, nil
}

func (c *changes) read(kq, at int) {
	defer unix.Close(at)
	defer unix.Close(kq)
	for {
		n, err := unix.Kevent(kq, nil, make([]unix.Kevent_t, 1), &unix.Timespec{Nsec: lookUp})
		select {
		case <-c.end:
			return
		default:
		}
		if err != nil && err != unix.EINTR {
			return
		}
		if n > 0 {
			select {
			case c.told <- struct{}{}:
			default:
			}
		}
	}
}

func (c *changes) close() { close(c.end) }
