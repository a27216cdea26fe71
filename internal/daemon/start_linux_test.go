package daemon

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAStarterThatLivesOnHasNoZombie(t *testing.T) {
	w := newWorld(t)
	self := os.Args[0]
	defer func() { os.Args[0] = self }()
	os.Args[0] = w.program
	w.must(Ensure(w.dir))
	w.running()
	w.eventually("no child left", func() bool {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		return errors.Is(err, unix.ECHILD)
	})
}
