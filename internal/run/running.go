package run

import (
	"os"
	"syscall"
	"time"

	"vx/internal/proc"
)

// running is a command between its start and its end.
type running struct {
	Command
	id      string
	began   time.Duration // by proc.SinceBoot
	took    time.Duration // set at the end
	last    string        // the status that was told last
	child   child
	out     *output
	signals *signals
	told    syscall.Signal // what asked the command to end, last
}

// mercy is how long after a signal that ends things the wake waits for the command to end. Whoever sends one often
// follows it with SIGKILL, which leaves no time to put a wake.
const mercy = time.Second

// attend waits for the command's end and passes on what happens meanwhile.
func (r *running) attend() syscall.WaitStatus {
	var interrupted <-chan time.Time
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	if r.out.terminal == nil {
		look.Stop()
	}
	for {
		select {
		case s := <-r.child.news():
			if !s.Stopped() {
				r.took = r.elapsed()
				return s
			}
			r.suspend()
		case sig := <-r.signals.end:
			if r.passOn(sig) && interrupted == nil {
				interrupted = time.After(mercy)
			}
		case sig := <-r.signals.plain:
			r.child.signal(sig.(syscall.Signal))
		case <-r.signals.child:
			r.child.look()
		case <-r.signals.resume:
			r.resume()
		case <-r.signals.size:
			r.out.resize()
		case <-look.C:
			r.out.look()
		case <-interrupted:
			if r.last == "running" {
				// An error shows again at the end, where the wake is put once more.
				r.tell(r.standing())
			}
		}
	}
}

// passOn gives the command a signal that is meant to end it, unless the terminal has given it the same. It reports
// whether the command is now expected to end.
func (r *running) passOn(sig os.Signal) bool {
	r.told = sig.(syscall.Signal)
	if (sig == syscall.SIGINT || sig == syscall.SIGQUIT) && r.out.terminal == nil && r.signals.foreground() {
		// The command can have reasons to go on after Ctrl-C, as a shell or a debugger has. Its end will say.
		return false
	}
	r.child.signal(r.told)
	return true
}

// suspend follows the command after Ctrl-Z: vx stops too, so that the shell sees the job stop.
func (r *running) suspend() {
	r.out.suspend()
	r.signals.stopSelf()
	r.resume()
}

// resume follows after vx was stopped and continued.
func (r *running) resume() {
	r.out.resume()
	r.child.signal(syscall.SIGCONT)
}

// elapsed is how long the command has been running, sleep of the machine included.
func (r *running) elapsed() time.Duration { return proc.SinceBoot() - r.began }
