package hook

import (
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

// watch is one poll(2) over everything that an await waits for.
type watch struct{ fds [6]unix.PollFd }

func newWatch(d watched) (*watch, error) {
	w := new(watch)
	for i, fd := range []int{d.bell, d.client, d.signals} {
		w.fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	// Of these no event is asked for: that the reader is gone is always told.
	w.fds[3] = unix.PollFd{Fd: int32(d.out.stdout)}
	w.fds[4] = unix.PollFd{Fd: int32(d.out.stderr)}
	w.fds[5] = unix.PollFd{Fd: int32(d.orders), Events: unix.POLLIN} // what it says is read, not told here
	return w, nil
}

// wait waits until something happens, or the time is up.
func (w *watch) wait(timeout time.Duration) (seen, error) {
	_, err := unix.Poll(w.fds[:], int(timeout.Milliseconds()))
	if err == unix.EINTR {
		return seen{}, nil
	}
	if err != nil {
		return seen{}, err
	}
	return seen{
		rung:   w.fds[0].Revents != 0,
		ended:  w.fds[1].Revents != 0,
		asked:  w.fds[2].Revents != 0,
		hungUp: w.fds[3].Revents != 0 || w.fds[4].Revents != 0,
	}, nil
}
