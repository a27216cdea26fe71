package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// narrow makes a pipe hold few bytes, so that a printed text does not fit.
func narrow(f *os.File, bytes int) { unix.FcntlInt(f.Fd(), unix.F_SETPIPE_SZ, bytes) }
