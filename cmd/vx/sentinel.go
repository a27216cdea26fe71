//go:build !windows

package main

import (
	"vx/hook"
	"vx/internal/proc"
	"vx/internal/task"
)

// theHook is what runs inside a harness's hook, with what it asks of tasks.
func theHook() hook.Program {
	return hook.Program{Clock: proc.SinceBoot, News: task.News, Soldier: task.Soldier}
}

// sentinelAwait and sentinelDrain are in the grammar for help and completion: the hook's own spelling never gets here.
type (
	sentinelAwait struct{}
	sentinelDrain struct{}
)

func (sentinelAwait) Run() error { return exitStatus(theHook().Main("await")) }
func (sentinelDrain) Run() error { return exitStatus(theHook().Main("drain")) }
