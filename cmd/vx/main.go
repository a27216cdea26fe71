//go:build !windows

// Command vx wakes an idle coding agent when what it waits for has happened.
//
// This package is the command line: the grammar, what commands are given, and how errors are shown and become exit
// statuses: 0 fine, 1 failed, 80 usage. 2 belongs to a delivery by the hook alone, but `vx run` ends as its command
// did, and `vx loop green` as the script that it replaces. What the commands do is in the packages that they call.
package main

import (
	"os"
	"runtime/debug"

	"vx/hook"
	"vx/internal/daemon"
	runner "vx/internal/run"
)

func main() {
	// A Go program that dies of a fatal error ends with 2, which would start a turn of the model. With "crash" it aborts.
	debug.SetTraceback("crash")
	os.Exit(run(os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}

// run is vx, from its arguments to its exit status. The hook's path is taken before anything is built: it runs at the
// end of every turn of every session.
func run(args []string, std stdio) int {
	if len(args) == 2 && args[0] == "sentinel" && (args[1] == "await" || args[1] == "drain") {
		return theHook().Main(args[1])
	}
	if len(args) == 3 && args[0] == "sentinel" && args[1] == "await" && hook.IsNote(args[2]) {
		return theHook().Resume(args[2])
	}
	if h, ok := holderOf(args); ok {
		return theHook().Hold(h)
	}
	if daemon.Launching() {
		return daemon.Launch()
	}
	if len(args) > 0 && args[0] == runner.MonitorName {
		return runner.Monitor(args[1:])
	}
	if fromHook(args) && !isTerminal(std.err) {
		// What a hook prints to stderr can end up in front of the model.
		std.err = nil
	}
	return guard(std, func() error { return execute(args, std) })
}

// guard runs a command and reports how it ended, a panic too.
func guard(std stdio, command func() error) (status int) {
	defer func() {
		if r := recover(); r != nil {
			status = report(std, &internalError{r, debug.Stack()})
		}
	}()
	return report(std, command())
}
