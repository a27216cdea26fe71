package doctor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/daemon"
	"vx/internal/proc"
	"vx/internal/state"
)

// playSentinel is a sentinel that does nothing, until its standard input ends.
func playSentinel() {
	dir, err := state.Open()
	if err == nil {
		_, err = daemon.Claim(dir, "1.2.3")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}

// sentinel starts one, and returns its pid.
func (w world) sentinel() int {
	w.Helper()
	cmd := exec.Command(os.Args[0], "sentinel")
	in, err := cmd.StdinPipe()
	w.must(err)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	w.Cleanup(func() { in.Close(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		w.Fatalf("the sentinel says %q, %v", line, err)
	}
	return cmd.Process.Pid
}

// record changes what the sentinel has told about itself.
func (w world) record(change func(*daemon.Info)) {
	w.Helper()
	path := w.home + "/.vexillum/sentinel.json"
	data, err := os.ReadFile(path)
	w.must(err)
	var info daemon.Info
	w.must(json.Unmarshal(data, &info))
	change(&info)
	data, err = json.Marshal(info)
	w.must(err)
	w.must(os.WriteFile(path, data, 0o600))
}

func TestWhetherASentinelRuns(t *testing.T) {
	w := newWorld(t)
	w.says("sentinel")
	p := w.project(w.root).Project
	w.says("sentinel", "ok not running, nothing to watch")
	w.task(p, "0000000000000001", "done", "")
	w.says("sentinel", "ok not running, nothing to watch")
	w.task(p, "0000000000000002", "running", "")
	w.says("sentinel", "warn not running, so nobody watches 1 running task: vx sentinel, or the next dispatch starts one")
	pid := w.sentinel()
	w.says("sentinel", "ok running, 0 sentinel await(s) waiting")
	a, err := awaiter.Register(p.State(), p, awaiter.Record{Process: proc.Self(), Project: p.Root})
	w.must(err)
	defer a.Close()
	w.says("sentinel", "ok running, 1 sentinel await(s) waiting")

	kill := fmt.Sprintf(": kill %d, and the next dispatch starts a current one", pid)
	program := os.Args[0]
	patient := Meet(w.root)
	patient.Version = "1.2.4"
	for _, row := range []struct {
		name, want string
		change     func(*daemon.Info)
	}{
		{"of another version", fmt.Sprintf("process %d is vx 1.2.3 of %s, and this is vx 1.2.4", pid, program), func(*daemon.Info) {}},
		{"replaced", fmt.Sprintf("process %d runs a program that %s is no more", pid, program), func(i *daemon.Info) { i.Build.Inode++ }},
		{"gone", fmt.Sprintf("process %d runs ~/gone, which is gone", pid), func(i *daemon.Info) { i.Build.Path = w.home + "/gone" }},
	} {
		w.record(row.change)
		all := Examine(t.Context(), patient, []Check{w.check("sentinel")})
		if len(all) != 1 || all[0].Level != Warn || all[0].Message+": "+all[0].Fix != row.want+kill {
			t.Errorf("%s: %+v, want %s", row.name, all, row.want+kill)
		}
	}
	w.must(os.WriteFile(w.home+"/.vexillum/sentinel.json", []byte("{"), 0o600))
	w.says("sentinel", "warn sentinel record: *: remove *sentinel.json")
}

func TestASentinelTooMany(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("which files another process has open is not told here")
	}
	w := newWorld(t)
	w.project(w.root)
	first := w.sentinel()
	w.must(os.Remove(w.home + "/.vexillum/sentinel.lock"))
	w.sentinel()
	w.says("sentinel", fmt.Sprintf("warn process %d is one too many: its lock file was removed: kill %d, *", first, first))
}

func TestASentinelThatDoesNotStart(t *testing.T) {
	w := newWorld(t)
	w.project(w.root)
	w.write(w.home+"/.vexillum/sentinel.log", "time=x msg=before\npanic: no room\n\ngoroutine 1 [running]:\n")
	w.write(w.home+"/.vexillum/sentinel.starts", fmt.Sprintf(`{"failed":3,"last":%q}`, time.Now().UTC().Format(time.RFC3339)))
	w.says("sentinel", "warn does not start (tried 3 times): panic: no room; next try not before *: see ~/.vexillum/sentinel.log")
	w.sentinel()
	w.says("sentinel", "ok running, 0 sentinel await(s) waiting")
}
