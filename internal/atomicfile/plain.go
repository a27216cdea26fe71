package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Others can put things where a file of ours is to be: a FIFO that would hang who opens it, a link that leads elsewhere.
const plainFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// An Unfit is what stands in a file's place and is none of ours.
type Unfit struct{ Why string }

func (e *Unfit) Error() string { return e.Why }

// ReadPlain reads a regular file of at most that many bytes; anything else is an *Unfit. A link is not followed: that is
// the system's own error.
func ReadPlain(path string, most int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|plainFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, info, &Unfit{"not a regular file"}
	case info.Size() > most:
		return nil, info, &Unfit{fmt.Sprintf("%d bytes, more than %d", info.Size(), most)}
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	return data, info, err
}

// OpenLog opens a regular file to append to it, and makes it for its user alone.
func OpenLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|plainFlags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = &Unfit{path + " is not a regular file"}
	case info.Mode().Perm() != 0o600:
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Names are the names in a directory, in no order; none where it is not there.
func Names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
