package opencode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connecting bounds the wait for a connection; on one machine there is none.
const connecting = 3 * time.Second

// dial connects to the first of the addresses where somebody listens. From then on the end of ctx fails every read and write
// at once. It is made by hand, like the requests, because packages net and net/http would cost each waiting vx its memory
// and each hook its time, and nothing else in vx needs them.
func dial(ctx context.Context, addrs []netip.AddrPort) (conn *os.File, stop func() bool, err error) {
	fd := -1
	for _, addr := range addrs {
		if fd, err = connect(ctx, addr); err == nil {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	conn = os.NewFile(uintptr(fd), "opencode")
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }), nil
}

// connect makes a connected socket that does not block.
func connect(ctx context.Context, addr netip.AddrPort) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return -1, err
	}
	family, to := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(addr.Port()), Addr: as4(addr.Addr())})
	if addr.Addr().Is6() {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	}
	fd, err := socket(family)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Connect(fd, to)
		switch {
		case err == nil, errors.Is(err, unix.EISCONN):
			return fd, nil
		case !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EALREADY) && !errors.Is(err, unix.EINTR):
			unix.Close(fd)
			return -1, fmt.Errorf("connect to %s: %w", addr, err)
		}
		select {
		case <-ctx.Done():
			unix.Close(fd)
			return -1, fmt.Errorf("connect to %s: %w", addr, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func as4(a netip.Addr) (b [4]byte) {
	if a.Is4() {
		b = a.As4()
	}
	return b
}

// socket is a new socket that neither blocks nor goes to children. macOS has no flags for that.
func socket(family int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
