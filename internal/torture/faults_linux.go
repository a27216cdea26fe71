package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nobody is the user that a root's process becomes: nothing is forbidden to root.
const nobody = 65534

// privately has a child that tries faults mount a file system of its own where nobody else sees it.
func privately(o order, cmd *exec.Cmd) {
	root := os.Geteuid() == 0
	switch o.Task {
	case asFull:
	case asInject, asLimits, asForbid:
		if !root {
			return // the disk will do, and a user with a name space is root in it
		}
	default:
		return
	}
	if o.Plain {
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if !root {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
}

// prepareFaults makes a child's directory what its faults need. The error is a leftOut where that cannot be had.
func prepareFaults(o order) error {
	// In memory, so that no time is spent on syncing a disk.
	options := fmt.Sprintf("size=%d,mode=0755", 8192*page)
	if o.Task == asFull {
		options = fmt.Sprintf("size=%d,nr_inodes=200,mode=0755", 64*page)
	}
	if err := syscall.Mount("tmpfs", o.Root, "tmpfs", 0, options); err != nil && o.Task == asFull {
		return leftOut(fmt.Sprintf("mount: %v", err))
	}
	switch {
	case o.Task == asForbid && os.Geteuid() == 0:
		if err := os.Chmod(filepath.Dir(o.Root), 0o711); err != nil {
			return err
		}
		if err := os.Chown(o.Root, nobody, nobody); err != nil {
			return err
		}
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setgid(nobody); err != nil {
			return err
		}
		return syscall.Setuid(nobody)
	}
	return nil
}
