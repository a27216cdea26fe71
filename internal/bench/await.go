//go:build !windows

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"vx/internal/state"
)

// childArg makes this program one of its own children.
const childArg = "child"

// child is main in a child process.
func child(task string, args []string) int {
	switch task {
	case "client":
		// Starts the hook as Claude Code does: each client has an await of its own.
		cmd := exec.Command(args[0], "sentinel", "await")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			return 1
		}
		return cmd.ProcessState.ExitCode()
	case "claim":
		return claimMain(args)
	case "race":
		return raceMain(args)
	}
	return 1
}

// awaiting is a live await and what comes out of it.
type awaiting struct {
	cmd     *exec.Cmd
	project *state.Project
	text    chan said // one, when the first bytes are there and all is read
}

// said is a text and when its first byte came.
type said struct {
	at   time.Time
	text string
}

// await starts an await in a project: straight, or with a client process of its own.
func (b *bench) await(p *state.Project, ownClient bool) (*awaiting, error) {
	cmd := exec.Command(b.vx, "sentinel", "await")
	if ownClient {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd = exec.Command(self, childArg, "client", b.vx)
	}
	cmd.Env = append(os.Environ(), "CLAUDE_PROJECT_DIR="+p.Root)
	cmd.Stdin = bytes.NewReader(stopInput("bench", ""))
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	// stdout is a pipe as well, so that somebody must read it.
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), w
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, err
	}
	a := &awaiting{cmd, p, make(chan said, 1)}
	go func() {
		defer r.Close()
		buf := make([]byte, 64<<10)
		n, _ := r.Read(buf)
		s := said{at: time.Now()}
		for n > 0 {
			s.text += string(buf[:n])
			n, _ = r.Read(buf)
		}
		a.text <- s
	}()
	return a, nil
}

// awaits starts one await in each project of a list, and returns when all are waiting. A project that is listed twice
// gets two, with a client each.
func (b *bench) awaits(projects []*state.Project) (all []*awaiting, err error) {
	times := map[string]int{}
	for _, p := range projects {
		times[p.Root]++
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	gate := make(chan bool, 8) // as many start at once
	for _, p := range projects {
		wg.Go(func() {
			gate <- true
			defer func() { <-gate }()
			a, aerr := b.await(p, times[p.Root] > 1)
			mu.Lock()
			defer mu.Unlock()
			if err = errors.Join(err, aerr); aerr == nil {
				all = append(all, a)
			}
		})
	}
	wg.Wait()
	if err == nil {
		err = b.settled(len(all))
	}
	if err != nil {
		endAll(all)
	}
	return all, err
}

func endAll(all []*awaiting) {
	for _, a := range all {
		a.cmd.Process.Signal(os.Interrupt)
	}
	for _, a := range all {
		a.cmd.Wait()
	}
}

// settled waits until so many awaits are registered, and then a moment, until they have nothing more to do.
func (b *bench) settled(n int) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		names, err := os.ReadDir(b.dir.Awaiters())
		if err != nil {
			return err
		}
		live := 0
		for _, e := range names {
			if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
				live++
			}
		}
		if live >= n {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d awaits wait after a minute", live, n)
		}
	}
	time.Sleep(20*time.Millisecond + time.Duration(n)*5*time.Millisecond)
	return nil
}
