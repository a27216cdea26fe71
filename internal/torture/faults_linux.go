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

// privately has a child mount its own small file system where nobody else sees it.
func privately(t task, cmd *exec.Cmd) {
	if t != asFull {
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
}

// prepareFaults makes a child's directory what its faults need. The error is a leftOut where that cannot be had.
func prepareFaults(o order) error {
	switch {
	case o.Task == asFull:
		if err := syscall.Mount("tmpfs", o.Root, "tmpfs", 0, fmt.Sprintf("size=%d,nr_inodes=200,mode=0755", 64*page)); err != nil {
			return leftOut(fmt.Sprintf("mount: %v", err))
		}
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
