package atomicfile

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readQuiet reads a file. Quiet is false if another program has it open for writing or is opening it: the kernel grants a
// read lease only where nobody has, and tells its holder when somebody wants to. Where it grants none at all (another
// owner's file, a file system without leases) the file counts as quiet.
func readQuiet(path string) (data []byte, quiet bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close() // gives the lease back
	fd := f.Fd()
	_, leaseErr := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
	if data, err = io.ReadAll(f); err != nil {
		return nil, false, err
	}
	if leaseErr != nil {
		return data, !errors.Is(leaseErr, unix.EAGAIN), nil
	}
	kind, err := unix.FcntlInt(fd, unix.F_GETLEASE, 0)
	return data, err != nil || kind == unix.F_RDLCK, nil
}
