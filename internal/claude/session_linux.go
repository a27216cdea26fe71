package claude

import (
	"bytes"
	"os"
	"strconv"

	"vx/internal/proc"
)

// startedAt reports whether a session record's procStart is the process's start: field 22 of /proc/PID/stat.
func startedAt(id proc.ID, procStart string) bool {
	return id.Start != 0 && procStart == strconv.FormatUint(id.Start, 10)
}

// configDirOf is the configuration directory that a live process was started with, "" where that is its user's or cannot
// be read. Of its environment nothing else is looked at.
func configDirOf(id proc.ID) string {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/environ")
	if err != nil || id.Status() == proc.Gone {
		return ""
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if dir, ok := bytes.CutPrefix(v, []byte("CLAUDE_CONFIG_DIR=")); ok {
			return string(dir)
		}
	}
	return ""
}
