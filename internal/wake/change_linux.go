package wake

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when a file was last changed or renamed: a rename does not touch its modification time.
func changeTime(fi fs.FileInfo) time.Time {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fi.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}
