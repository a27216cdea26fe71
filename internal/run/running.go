package run

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
)

// running is a command between its start and its end. One goroutine owns it, so that it is never signalled after its
// pid was given back.
type running struct {
	Command
	id      string
	began   time.Duration // by proc.SinceBoot
	took    time.Duration // set at the end
	last    string        // the status that was told last
	child   *os.Process
	out     *output
	signals *signals
	told    syscall.Signal // what asked the command to end, last
	stopped bool           // the command is stopped by a signal
}

// mercy is how long after a signal that ends things the wake waits for the command to end. Whoever sends one often
// follows it with SIGKILL, which leaves no time to put a wake.
const mercy = time.Second

// attend waits for the command's end and passes on what happens meanwhile.
func (r *running) attend() syscall.WaitStatus {
	var interrupted <-chan time.Time
	tick := time.NewTicker(modesEvery)
	defer tick.Stop()
	if !r.out.hasTerminal() {
		tick.Stop()
	}
	for {
		select {
		case <-r.signals.child:
			if end, ended := r.wait(); ended {
				r.took = r.elapsed()
				return end
			}
		case sig := <-r.signals.end:
			if r.passOn(sig) && interrupted == nil {
				interrupted = time.After(mercy)
			}
		case sig := <-r.signals.plain:
			r.child.Signal(sig)
		case <-r.signals.stop:
			r.signals.asked = time.Now()
			r.stopWithChild()
		case <-r.signals.resume:
			r.resume()
		case <-r.signals.size:
			r.out.resize()
		case <-tick.C:
			r.out.copyModes()
		case <-interrupted:
			if r.last == "running" {
				// An error shows again at the end, where the wake is put once more.
				r.tell(r.standing())
			}
		}
	}
}

// wait takes note of what the kernel says of the command.
func (r *running) wait() (end syscall.WaitStatus, ended bool) {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(r.child.Pid, &s, syscall.WNOHANG|syscall.WUNTRACED|syscall.WCONTINUED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil || pid == 0:
			return 0, false
		case s.Stopped():
			// A stop by the terminal proves that there is a shell that can go on with the job: the kernel sees to that. One
			// by SIGSTOP proves nothing, and vx must not be left stopped.
			r.stopped = s.StopSignal() == syscall.SIGTSTP || s.StopSignal() == syscall.SIGTTIN
			r.stopWithChild()
		case s.Continued():
			r.stopped = false
		default:
			return s, true
		}
	}
}

// passOn gives the command a signal that is meant to end it, unless the terminal has given it the same. It reports
// whether the command is now expected to end.
func (r *running) passOn(sig os.Signal) bool {
	r.told = sig.(syscall.Signal)
	if (sig == syscall.SIGINT || sig == syscall.SIGQUIT) && r.signals.foreground() {
		// The command can have reasons to go on after Ctrl-C, as a shell or a debugger has. Its end will say.
		return false
	}
	r.child.Signal(sig)
	return true
}

// stopWithChild stops vx itself once Ctrl-Z (or, in the background, the command's attempt to read) has reached both and
// the command has stopped, so that the shell sees the job stop. A command that does not stop for it goes on being served.
func (r *running) stopWithChild() {
	if !r.stopped || !r.signals.stopAsked(time.Now()) {
		return
	}
	r.out.suspend()
	r.signals.stopSelf()
	r.resume()
}

// resume follows after vx was stopped and continued.
func (r *running) resume() {
	r.stopped = false
	r.child.Signal(syscall.SIGCONT)
	r.out.resume()
}

// signals are the channels on which signals come in, by what is done about them.
type signals struct {
	child, end, plain, stop, resume, size, lost chan os.Signal
	tty                                         *os.File // the controlling terminal, nil where there is none
	asked                                       time.Time
}

// catch begins to take signals. What was ignored when vx was started stays ignored, here and in the command, as under
// nohup.
func catch() *signals {
	s := &signals{}
	on := func(sigs ...os.Signal) chan os.Signal {
		c := make(chan os.Signal, 8)
		for _, sig := range sigs {
			if !signal.Ignored(sig) {
				signal.Notify(c, sig)
			}
		}
		return c
	}
	s.end = on(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	s.plain = on(syscall.SIGUSR1, syscall.SIGUSR2)
	s.stop = on(syscall.SIGTSTP, syscall.SIGTTIN)
	s.resume = on(syscall.SIGCONT)
	s.size = on(syscall.SIGWINCH)
	s.lost = on(syscall.SIGPIPE) // caught, so that the writes return an error
	s.child = make(chan os.Signal, 1)
	signal.Notify(s.child, syscall.SIGCHLD)
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0); err == nil {
		s.tty = tty
	}
	return s
}

func (s *signals) release() {
	for _, c := range []chan os.Signal{s.child, s.end, s.plain, s.stop, s.resume, s.size, s.lost} {
		signal.Stop(c)
	}
	if s.tty != nil {
		s.tty.Close()
	}
}

// foreground reports whether vx and the command are what the terminal sends its signals to.
func (s *signals) foreground() bool { return s.tty != nil && inForeground(int(s.tty.Fd())) }

// stopAsked reports whether the terminal stopped the group a moment ago. The command's stop and vx's own signal arrive in either order.
func (s *signals) stopAsked(now time.Time) bool {
	select {
	case <-s.stop:
		s.asked = now
	default:
	}
	return now.Sub(s.asked) < 2*time.Second
}

// stopSelf stops this process and returns when it was continued. It is SIGSTOP, because the runtime keeps its handler for
// the terminal's own stop signals.
func (s *signals) stopSelf() {
	s.asked = time.Time{}
	unix.Kill(os.Getpid(), unix.SIGSTOP)
	select {
	case <-s.resume:
	case <-time.After(200 * time.Millisecond): // continued before it was stopped
	}
}

// elapsed is how long the command has been running, sleep of the machine included.
func (r *running) elapsed() time.Duration { return proc.SinceBoot() - r.began }
