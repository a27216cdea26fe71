package main

import (
	"os"
	"os/exec"
)

func privately(order, *exec.Cmd) {}

// prepareFaults makes a child's directory what its faults need. The error is a leftOut where that cannot be had.
func prepareFaults(o order) error {
	switch {
	case o.Task == asFull:
		return leftOut("needs a small tmpfs")
	case o.Task == asForbid && os.Geteuid() == 0:
		return leftOut("nothing is forbidden to root")
	}
	return nil
}
