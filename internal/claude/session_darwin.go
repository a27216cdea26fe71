package claude

import (
	"time"

	"vx/internal/proc"
)

// startedAt reports whether a session record's procStart is the process's start: what ps says of it (lstart, in UTC), to
// the second. Read in the client's text; never seen on a Mac.
func startedAt(id proc.ID, procStart string) bool {
	t, err := time.Parse("Mon Jan _2 15:04:05 2006", procStart)
	return err == nil && id.Start != 0 && t.Unix() == int64(id.Start/1e6)
}

// configDirOf would be the configuration directory that a process was started with: here no environment but one's own is
// read.
func configDirOf(proc.ID) string { return "" }
