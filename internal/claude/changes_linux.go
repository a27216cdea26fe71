package claude

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Changes tells of session records that change, as hints: the records have to be looked at now and then all the same.
type Changes struct {
	f   *os.File
	dir string // of the records
	buf [4096]byte
	at  []byte // of buf, what was not looked at yet
}

// Watch has the kernel tell of changes to the session records of a configuration directory. No file is opened: beside
// the records lie secrets.
func Watch(config string) (*Changes, error) {
	dir := filepath.Join(config, "sessions")
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	// The client writes in place; a record that comes or goes is a client that starts or ends.
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_MODIFY|unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	return &Changes{f: os.NewFile(uintptr(fd), dir), dir: dir}, nil
}

// Of reports whether changes to this record are told of.
func (c *Changes) Of(s *Session) bool { return s.file.path != "" && filepath.Dir(s.file.path) == c.dir }

// Next waits for the next change and returns the pid of the record; 0 means that any may have changed. An error ends the
// watch: Close was called, or the directory is gone.
func (c *Changes) Next() (int, error) {
	for {
		if len(c.at) == 0 {
			n, err := c.f.Read(c.buf[:])
			if err != nil {
				return 0, err
			}
			c.at = c.buf[:n]
		}
		mask, name := c.event()
		switch pid, ok := pidOf(name); {
		case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0:
			return 0, os.ErrNotExist
		case mask&unix.IN_Q_OVERFLOW != 0:
			return 0, nil
		case ok:
			return pid, nil
		}
	}
}

// event takes the first event off what was read.
func (c *Changes) event() (mask uint32, name string) {
	if len(c.at) < unix.SizeofInotifyEvent {
		c.at = nil
		return 0, ""
	}
	mask = binary.NativeEndian.Uint32(c.at[4:])
	length := int(binary.NativeEndian.Uint32(c.at[12:]))
	rest := c.at[unix.SizeofInotifyEvent:]
	length = min(length, len(rest))
	name, _, _ = strings.Cut(string(rest[:length]), "\x00")
	c.at = rest[length:]
	return mask, name
}

// Close ends the watch, and a Next that waits.
func (c *Changes) Close() error { return c.f.Close() }
