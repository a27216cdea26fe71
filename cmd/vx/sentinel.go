//go:build !windows

package main

import "vx/hook"

// sentinelAwait and sentinelDrain are in the grammar for help and completion: the hook's own spelling never gets here.
type (
	sentinelAwait struct{}
	sentinelDrain struct{}
)

func (sentinelAwait) Run() error { return exitStatus(hook.Main("await")) }
func (sentinelDrain) Run() error { return exitStatus(hook.Main("drain")) }
