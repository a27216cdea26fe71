package hook

import (
	"os"
	"path/filepath"

	"vx/internal/state"
)

// Logs are the files that the hook may have logged to, whether or not they are there; see openLog.
func Logs() []string {
	var all []string
	if dir, err := state.Path(); err == nil {
		all = append(all, filepath.Join(dir, logName))
	}
	if cache, err := os.UserCacheDir(); err == nil {
		all = append(all, filepath.Join(cache, "vx", logName))
	}
	return all
}
