package wake

import "syscall"

func mtimeOf(st *syscall.Stat_t) (sec, nsec int64) { return st.Mtimespec.Sec, st.Mtimespec.Nsec }
