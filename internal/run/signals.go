package run

import (
	"os"
	"os/signal"
	"syscall"
)

// signals are the channels on which signals come in, by what is done about them.
type signals struct {
	child, end, plain, resume, size, lost chan os.Signal
	tty                                   *os.File // the controlling terminal, nil where there is none
}

// catch begins to take signals. What was ignored when vx was started stays ignored, here and in the command, as under
// nohup.
func catch() *signals {
	s := &signals{
		child:  on(syscall.SIGCHLD),
		end:    on(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM),
		plain:  on(syscall.SIGUSR1, syscall.SIGUSR2),
		resume: on(syscall.SIGCONT),
		size:   on(syscall.SIGWINCH),
		lost:   on(syscall.SIGPIPE), // caught, so that the writes return an error
	}
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0); err == nil {
		s.tty = tty
	}
	return s
}

// on is a channel of signals, without those that are ignored.
func on(sigs ...os.Signal) chan os.Signal {
	c := make(chan os.Signal, 8)
	for _, sig := range sigs {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	return c
}

func (s *signals) release() {
	for _, c := range []chan os.Signal{s.child, s.end, s.plain, s.resume, s.size, s.lost} {
		signal.Stop(c)
	}
	if s.tty != nil {
		s.tty.Close()
	}
}

// foreground reports whether vx's process group is what the terminal sends its signals to.
func (s *signals) foreground() bool { return s.tty != nil && inForeground(int(s.tty.Fd())) }

// stopSelf stops this process as Ctrl-Z would, and returns when it was continued; at once where there is no shell that
// could continue it: there the kernel lets the signal pass.
func (s *signals) stopSelf() {
	stop()
	select {
	case <-s.resume:
	default:
	}
}
