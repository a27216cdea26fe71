package awaiter

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"vx/internal/state"
)

// endedFile is in the project's directory; its modification time is all that it holds.
const endedFile = "await.ended"

// Ended is when the project's last await ended, or was found dead, for a person who wonders since when nobody waits. The
// zero time: none ever did, or it is not known. While one lives it says nothing.
func Ended(p *state.Project) time.Time {
	fi, err := os.Lstat(p.Join(endedFile))
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

// noteEnd keeps the time for Ended. That it cannot is no trouble: nothing is decided from it.
func noteEnd(p *state.Project) {
	path, now := p.Join(endedFile), time.Now()
	if err := os.Chtimes(path, now, now); errors.Is(err, fs.ErrNotExist) {
		os.WriteFile(path, nil, 0o600)
	}
}
