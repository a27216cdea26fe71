package loop

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// changes tells that files come to a directory or go, as a hint: whoever waits looks now and then all the same.
type changes struct {
	told chan struct{}
	f    *os.File
}

// watch has the kernel tell of a directory. From its return on nothing is missed.
func watch(dir string) (*changes, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVE|unix.IN_DELETE|unix.IN_ONLYDIR); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	c := &changes{make(chan struct{}, 1), os.NewFile(uintptr(fd), dir)}
	go c.read()
	return c, nil
}

func (c *changes) read() {
	buf := make([]byte, 4096)
	for {
		if _, err := c.f.Read(buf); err != nil {
			return // closed
		}
		select {
		case c.told <- struct{}{}:
		default:
		}
	}
}

func (c *changes) close() { c.f.Close() }
