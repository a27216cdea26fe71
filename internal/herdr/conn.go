package herdr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// conn is one connection with its deadline. It is made by hand because package net would cost each waiting vx half a
// megabyte of memory, and nothing else in vx needs it.
type conn struct {
	file *os.File
	ctx  context.Context
	stop func() bool // of the watch on ctx
}

// dial connects, and from then on the end of ctx fails every read and write at once, as the deadline does.
func dial(ctx context.Context, path string, deadline time.Time) (*conn, error) {
	fd, err := connect(ctx, path, deadline)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	if err := file.SetDeadline(deadline); err != nil {
		file.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { file.SetDeadline(time.Unix(1, 0)) })
	return &conn{file: file, ctx: ctx, stop: stop}, nil
}

func (c *conn) close() {
	c.stop()
	c.file.Close()
}

// connect makes a connected socket that does not block. A herdr that is frozen or flooded lets its queue of connections
// run full, which Linux reports at once instead of waiting: so the wait is here.
func connect(ctx context.Context, path string, deadline time.Time) (int, error) {
	if longest := len(unix.RawSockaddrUnix{}.Path) - 1; len(path) > longest {
		return 0, fmt.Errorf("%w: socket path has %d bytes, the system allows %d", ErrUnreachable, len(path), longest)
	}
	if err := ctx.Err(); err != nil {
		return 0, ended(err)
	}
	fd, err := socket()
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		switch {
		case err == nil, errors.Is(err, unix.EISCONN):
			return fd, nil
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EALREADY):
			unix.Close(fd)
			return 0, fmt.Errorf("%w: %s: %w", ErrUnreachable, path, err)
		case time.Now().After(deadline):
			unix.Close(fd)
			return 0, fmt.Errorf("%w: its queue of connections is full", ErrTimeout)
		}
		select {
		case <-ctx.Done():
			unix.Close(fd)
			return 0, ended(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// socket is a new socket that neither blocks nor goes to children. macOS has no flags for that.
func socket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// explain says what a failed read or write means.
func (c *conn) explain(err error) error {
	switch {
	case c.ctx.Err() != nil:
		return ended(c.ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case err == io.EOF, isHangup(err):
		return ErrCut
	}
	return err
}

// ended is the error of a request whose context has ended: a deadline of the caller's is a timeout like any other.
func ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

func isHangup(err error) bool { return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) }
