package claude

import (
	"strconv"

	"vx/internal/proc"
)

// startedAt reports whether a session record's procStart is the process's start: field 22 of /proc/PID/stat.
func startedAt(id proc.ID, procStart string) bool {
	return id.Start != 0 && procStart == strconv.FormatUint(id.Start, 10)
}
