package daemon

import "vx/internal/state"

// LockPath is the file that a sentinel keeps locked as long as it runs: for one who asks so often, and has so little
// room, that it has to ask without this package.
func LockPath(dir *state.Dir) string { return dir.Join(lockName) }
