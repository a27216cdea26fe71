package wake

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBack sends a file's content to the disk. It makes nothing durable and so cannot fail: what the file system has not
// got is written by the sync that follows.
func writeBack(f *os.File) {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, all)
}
