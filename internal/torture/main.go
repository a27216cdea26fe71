//go:build !windows

// Command torture kills vx's consumers and producers by the thousand and fails the disk under them, and counts what
// became of every wake:
//
//	go run ./internal/torture [-short] [-seed N] [-kills N] [-only PART]
//
// Consumers and producers are processes of this same program. They run the code that the hook and `vx wake send` run,
// and are killed with SIGKILL, half of them at a named step of a wake's life and half at a random moment. This process
// plays the client: it reads what consumers print and writes the transcript that Claude Code would. It ends with 1 when
// a wake was lost, torn, invented or told twice, or when a step was hit too rarely for that to mean anything. The same is
// done with the processes that end a task's turn, with awaits that hold a delivery until their client says that the model has
// it, and those clients, and with whole sentinels that watch soldiers in a herdr, which is then itself restarted, frozen and
// made to speak garbage. That of two sentinels that start at the same instant one lives is a test of internal/daemon.
//
// It works in a scratch directory of its own and kills only what it started. A crash leaves that directory behind.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"
)

func main() {
	// A consumer that panics must not end with a delivery's status.
	debug.SetTraceback("crash")
	if len(os.Args) == 3 && os.Args[1] == childArg {
		os.Exit(child(os.Args[2]))
	}
	os.Exit(run(os.Args[1:]))
}

// plan is what one run does.
type plan struct {
	consumers, producers int // SIGKILLs
	perStep              int // of the consumers' steps that matter, each is hit at least so often
	projects             int
	seed                 uint64
	short, verbose       bool
}

// The full run's numbers, and how much less a short one does.
const (
	fullConsumers = 2000
	fullProducers = 1000
	fullPerStep   = 50
	projects      = 4 // half of them without a transcript
	shortness     = 10
)

func run(args []string) int {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	short := flags.Bool("short", false, "a tenth of it")
	consumers := flags.Int("kills", fullConsumers, "how many consumers to kill; of producers half as many")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano())%1e9, "of the random choices; the machine's timing adds its own")
	only := flags.String("only", "", "one of the parts: kills, faults, transitions, holds, sentinels, herdrs")
	keep := flags.Bool("keep", false, "leave the scratch directory, with the history of each project in it")
	verbose := flags.Bool("v", false, "a line for each child and each injected fault")
	if err := flags.Parse(args); err != nil {
		return 80
	}
	p := plan{consumers: *consumers, projects: projects, seed: *seed, verbose: *verbose}
	if p.short = *short; p.short {
		p.consumers = *consumers / shortness
	}
	p.producers = p.consumers * fullProducers / fullConsumers
	p.perStep = p.consumers * fullPerStep / fullConsumers

	scratch, err := os.MkdirTemp("", "vx-torture-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		return 1
	}
	remove := func() { os.RemoveAll(scratch) }
	if *keep {
		remove = func() { fmt.Println("torture: kept", scratch) }
	}
	defer remove()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-interrupted
		remove()
		os.Exit(1)
	}()

	// Nothing of the user's is read or written, and nothing of the session that this may run in is believed.
	os.Clearenv()
	for name, value := range map[string]string{
		"PATH": "/usr/bin:/bin", "HOME": scratch, "TMPDIR": scratch, "VEXILLUM_HOME": filepath.Join(scratch, "state"), "CLAUDE_CODE_SESSION_ATTENDED": "1",
	} {
		os.Setenv(name, value)
	}
	if !p.parts(*only, scratch) {
		fmt.Printf("torture: FAILED (-seed %d)\n", p.seed)
		return 1
	}
	fmt.Println("torture: ok")
	return 0
}

// parts reports whether all went well. Those that mostly wait go on beside the others, and have their say at the end.
func (p plan) parts(only, scratch string) bool {
	wanted := func(part string) bool { return only == "" || only == part }
	var aside []chan bool
	var logs []*bytes.Buffer
	for _, part := range []struct {
		name string
		run  func(plan, string, io.Writer) bool
	}{{"faults", faults}, {"sentinels", sentinels}, {"herdrs", herdrs}} {
		if wanted(part.name) {
			ok, log := make(chan bool, 1), new(bytes.Buffer)
			aside, logs = append(aside, ok), append(logs, log)
			go func() { ok <- part.run(p, scratch, log) }()
		}
	}
	ok := true
	if wanted("kills") {
		ok = kills(p, scratch)
	}
	if wanted("transitions") {
		ok = transitions(p, scratch) && ok
	}
	if wanted("holds") {
		ok = holds(p, scratch) && ok
	}
	for i := range aside {
		ok = <-aside[i] && ok
		logs[i].WriteTo(os.Stdout)
	}
	return ok
}
