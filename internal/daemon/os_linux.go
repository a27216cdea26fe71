package daemon

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func changed(st *syscall.Stat_t) time.Time { return time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec)) }

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }
