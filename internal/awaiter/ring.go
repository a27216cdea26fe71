package awaiter

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"vx/internal/state"
)

// Ring rings one awaiter of the project: the first that is not rung already. It is no error when there is none: the
// poll every few seconds is what guarantees a delivery, the bell only makes it instant.
func Ring(dir *state.Dir, p *state.Project) { ring(dir, p.ID(), "") }

// RingAfter is Ring for an awaiter that passes the bell on: only awaiters that sort behind it, so that a bell never
// goes round in circles.
func (a *Awaiter) RingAfter() {
	at := strings.LastIndexByte(a.base, '/')
	name := a.base[at+1:]
	ringIn(a.base[:at], name[:idWidth], name+".fifo")
}

// Tell rings exactly this awaiter: it is to look around (a younger one of its client has come).
func (e Entry) Tell() { press(e.base+".fifo", true) }

func ring(dir *state.Dir, project, after string) { ringIn(dir.Awaiters(), project, after) }

// ringIn goes by the names alone: records are not read, so that two hundred awaiters cost a producer next to nothing.
func ringIn(dir, project, after string) {
	names, _ := readNames(dir)
	var bells []string
	for _, name := range names {
		if strings.HasPrefix(name, project+"-") && strings.HasSuffix(name, ".fifo") && name > after {
			bells = append(bells, name)
		}
	}
	slices.Sort(bells)
	for _, name := range bells {
		if press(dir+"/"+name, false) {
			return
		}
	}
}

// press writes one byte into a doorbell, and reports whether it rings now by our doing. Nobody at the other end (ENXIO)
// is no proof of death: the awaiter may be leaving, or not be there yet. A bell that rings already is left alone unless
// again is set.
func press(path string, again bool) bool {
	fd, err := openRetry(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return false
	}
	if !again {
		// Where the system does not say what is in a FIFO, it counts as not rung.
		if n, err := unix.IoctlGetInt(fd, fionread); err == nil && n > 0 {
			return false
		}
	}
	for {
		n, err := unix.Write(fd, []byte{1})
		if err != unix.EINTR {
			return n == 1
		}
	}
}

func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
