//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vx/internal/loop"
	"vx/internal/state"
)

// fakeLoop is the program `fakeloop TITLE COMMAND`: a loop of vx whose worker is a shell command, until it is stopped.
func fakeLoop() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	reason, err := loopOn(ctx, os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(reason.Status(syscall.SIGTERM))
}

func loopOn(ctx context.Context, title, command string) (loop.Reason, error) {
	dir, err := state.Open()
	if err != nil {
		return loop.Failed, err
	}
	root, err := place{}.root(dir)
	if err != nil {
		return loop.Failed, err
	}
	r, err := loop.Create(dir.Project(root), loop.Plan{
		Kind: "green", Title: title, Command: os.Args, Tree: root, Dir: os.Getenv("RUN_DIR"), Limits: loop.Limits{Iterations: 100},
	})
	if err != nil {
		return loop.Failed, err
	}
	end := func(reason loop.Reason, err error) (loop.Reason, error) {
		return reason, errors.Join(err, r.Finish(reason, ""))
	}
	for n := 1; n <= 100; n++ {
		if err := r.Check(ctx); errors.Is(err, loop.ErrStopped) {
			return loop.Stopped, nil
		} else if ctx.Err() != nil {
			return end(loop.Interrupted, nil)
		} else if err != nil {
			return end(loop.Failed, err)
		}
		log, err := r.IterLog(n)
		if err != nil {
			return end(loop.Failed, err)
		}
		cmd := exec.Command("sh", "-c", command)
		cmd.Stdout, cmd.Stderr = log, log
		if err := errors.Join(r.Begin(n, loop.Field{Key: "task", Value: title}), r.Start(cmd)); err != nil {
			return end(loop.Failed, err)
		}
		_ = r.Wait(cmd) // its status is noted
		if err := errors.Join(log.Close(), r.Note(loop.Field{Key: "claude_rc", Value: fmt.Sprint(cmd.ProcessState.ExitCode())})); err != nil {
			return end(loop.Failed, err)
		}
	}
	return end(loop.MaxIterations, nil)
}

// until is `until PATTERN PROGRAM ARGUMENT...`: it runs the program again and again until what it prints matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM ARGUMENT...")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := ts.Exec(args[1], args[2:]...); err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s is not printed", args[0])
		}
	}
}
