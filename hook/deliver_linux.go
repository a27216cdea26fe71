package hook

import "golang.org/x/sys/unix"

// drained reports whether the other end has read everything that was written to a pipe or a socket. For anything else,
// a terminal or a file, written is read.
func drained(fd int) bool {
	var st unix.Stat_t
	if fd < 0 || unix.Fstat(fd, &st) != nil {
		return true
	}
	ask := uint(unix.TIOCINQ) // of a pipe: what is in it
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
	case unix.S_IFSOCK:
		ask = unix.SIOCOUTQ
	default:
		return true
	}
	left, err := unix.IoctlGetInt(fd, ask)
	return err != nil || left == 0
}
