package herdr

import (
	"io/fs"
	"syscall"
)

func epochOf(info fs.FileInfo) Epoch {
	st := info.Sys().(*syscall.Stat_t)
	return Epoch{Dev: uint64(st.Dev), Inode: st.Ino, Changed: syscall.TimespecToNsec(st.Ctimespec)}
}
