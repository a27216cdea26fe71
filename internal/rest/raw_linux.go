//go:build amd64 || arm64

package rest

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These are system calls that the Go runtime is told nothing of; see Rest. All are tried again when a signal comes in
// between.

// cString is the path as the kernel takes it. No path has a NUL in it; one that had would lead nowhere.
func cString(path string) *byte {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return new(byte)
	}
	return p
}

var here = unix.AT_FDCWD // a variable, since a negative constant is no uintptr

func statx(path *byte, st *unix.Statx_t) syscall.Errno {
	for {
		_, _, errno := syscall.RawSyscall6(unix.SYS_STATX, uintptr(here), uintptr(unsafe.Pointer(path)),
			unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MTIME, uintptr(unsafe.Pointer(st)), 0)
		if errno != unix.EINTR {
			return errno
		}
	}
}

func open(path *byte, flags int) (int, syscall.Errno) {
	for {
		fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(path)),
			uintptr(flags|unix.O_CLOEXEC), 0, 0, 0)
		if errno != unix.EINTR {
			return int(fd), errno
		}
	}
}

func closeFD(fd int) { syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func flock(fd, how int) syscall.Errno {
	for {
		_, _, errno := syscall.RawSyscall(unix.SYS_FLOCK, uintptr(fd), uintptr(how), 0)
		if errno != unix.EINTR {
			return errno
		}
	}
}

// epollWait does not wait.
func epollWait(fd int, events []unix.EpollEvent) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	return int(n), errno
}

func clearTimer(fd int) {
	var count [8]byte
	syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&count)), unsafe.Sizeof(count))
}

// entries is where directories are read into: one buffer for all, as a rest reads one at a time.
var entries [2048]byte

// holds reports whether the directory has an entry whose name does not begin with a dot and ends with suffix, or cannot
// be read.
func holds(dir *byte, suffix string) bool {
	fd, errno := open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errno != 0 {
		return errno != unix.ENOENT
	}
	defer closeFD(fd)
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(&entries)), unsafe.Sizeof(entries))
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return true
		case n == 0:
			return false
		}
		for left := entries[:n]; len(left) > 0; {
			e := (*unix.Dirent)(unsafe.Pointer(&left[0]))
			if counts(left[unsafe.Offsetof(e.Name):e.Reclen], suffix) {
				return true
			}
			left = left[e.Reclen:]
		}
	}
}

// counts judges a name that a NUL ends.
func counts(name []byte, suffix string) bool {
	end := 0
	for name[end] != 0 {
		end++
	}
	return name[0] != '.' && end >= len(suffix) && string(name[end-len(suffix):end]) == suffix
}
