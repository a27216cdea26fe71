package hook

import "golang.org/x/sys/unix"

func dup2(from, to int) error { return unix.Dup2(from, to) }

func pipe(ends *[2]int) error {
	if err := unix.Pipe(ends[:]); err != nil {
		return err
	}
	for _, fd := range ends {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	return nil
}
