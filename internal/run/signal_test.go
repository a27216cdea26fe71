package run

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// children counts the child processes of a process.
func children(t *testing.T, pid int) int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "ppid=").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range strings.Fields(string(out)) {
		if f == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}

// process is a vx run without a terminal.
type process struct {
	*world
	cmd *exec.Cmd
}

// inTheDark starts vx run without a terminal and waits until the command has printed "ready".
func (w *world) inTheDark(cmd *exec.Cmd) *process {
	w.t.Helper()
	r, p, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd.Stdout = p
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	p.Close()
	w.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		r.Close()
	})
	block := make([]byte, 100)
	n, err := r.Read(block)
	if err != nil || string(block[:n]) != "ready\n" {
		w.t.Fatalf("%v, %q", err, block[:n])
	}
	return &process{world: w, cmd: cmd}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) status() int {
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

func TestASignalToVxIsPassedOnAndTold(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			w := newWorld(t)
			p := w.inTheDark(w.vx(sh("echo ready; exec sleep 60")))
			p.signal(sig)
			if got := p.status(); got != 128+int(sig) {
				t.Errorf("exit status %d, want that of %v", got, sig)
			}
			if got := w.only(); got.NewStatus != "interrupted" || !strings.HasPrefix(got.Outcome, signalName(sig)) {
				t.Errorf("the wake is %+v", got)
			}
		})
	}
}

func TestAUserSignalIsPassedOn(t *testing.T) {
	w := newWorld(t)
	p := w.inTheDark(w.vx(sh("trap 'exit 6' USR1; echo ready; while :; do sleep 0.05; done")))
	p.signal(syscall.SIGUSR1)
	if got := p.status(); got != 6 {
		t.Errorf("exit status %d, want 6", got)
	}
}

func TestACommandThatDoesNotEndOnASignalIsToldOfBeforeAndAfter(t *testing.T) {
	for name, old := range map[string]string{"the first wake waits": "running", "the first wake was taken": "interrupted"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.inTheDark(w.vx(sh("trap 'stop=1' TERM; trap 'exit 4' USR1; echo ready; while :; do sleep 0.05; done")))
			p.signal(syscall.SIGTERM)
			w.eventually("a wake of the command that still runs", func() bool { return len(w.waiting()) == 1 })
			first := w.only()
			if first.NewStatus != "interrupted" || !strings.HasPrefix(first.Outcome, "SIGTERM, still running") {
				t.Errorf("the first wake is %+v", first)
			}
			if old == "interrupted" {
				if _, err := w.queue.Claim(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			p.signal(syscall.SIGUSR1)
			if got := p.status(); got != 4 {
				t.Errorf("exit status %d, want 4", got)
			}
			if got := w.only(); got.Key != first.Key || got.OldStatus != old || !strings.HasPrefix(got.Outcome, "exit 4") {
				t.Errorf("the wake that waits now is %+v, want it to come from %s", got, old)
			}
		})
	}
}

func TestWhatWasIgnoredAtTheStartStaysIgnored(t *testing.T) {
	w := newWorld(t)
	vx := w.vx(sh("kill -HUP $$; echo ready; exec sleep 60"))
	cmd := exec.Command("sh", "-c", `trap '' HUP; exec "$0"`, vx.Path)
	cmd.Dir, cmd.Env = vx.Dir, vx.Env
	p := w.inTheDark(cmd) // ready: the command has survived its own SIGHUP
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGTERM)
	if got := p.status(); got != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d, want that of SIGTERM", got)
	}
}
