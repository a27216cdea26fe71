package hook

import (
	"errors"
	"os"
	"path/filepath"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
)

const (
	logName   = "hook.log"
	maxLog    = 1 << 20  // bytes; then it becomes hook.log.1
	maxRecord = 16 << 10 // bytes; a stack is longer at times
)

// logFile appends each record to the log by itself: an await that lives for an hour holds no file open that was rotated
// away long ago. What cannot be logged is lost; there is nowhere else to say it.
type logFile struct{}

func (logFile) Write(p []byte) (int, error) {
	f, err := openLog()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if len(p) > maxRecord {
		p = append(p[:maxRecord:maxRecord], "…\n"...)
	}
	return f.Write(p)
}

// openLog opens the log in the state directory; where that cannot be used, in the user's cache directory.
func openLog() (*os.File, error) {
	dir, err := state.Look()
	if err == nil {
		var f *os.File
		if f, err = openLogIn(dir.Path()); err == nil {
			return f, nil
		}
	}
	cache, cerr := os.UserCacheDir()
	if cerr != nil {
		return nil, errors.Join(err, cerr)
	}
	own := filepath.Join(cache, "vx")
	if cerr := os.MkdirAll(own, 0o700); cerr != nil {
		return nil, errors.Join(err, cerr)
	}
	return openLogIn(own)
}

func openLogIn(dir string) (*os.File, error) {
	path := filepath.Join(dir, logName)
	for {
		f, err := atomicfile.OpenLog(path)
		if err != nil {
			return nil, err
		}
		fi, err := f.Stat()
		if err == nil && (fi.Size() < maxLog || !rotate(path)) {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// rotate moves a full log out of the way. Whoever comes while another does so writes to what is there.
func rotate(path string) bool {
	l, err := lock.Try(path + ".lock")
	if err != nil {
		return false
	}
	defer l.Unlock()
	if fi, err := os.Stat(path); err != nil || fi.Size() < maxLog {
		return err == nil
	}
	return os.Rename(path, path+".1") == nil
}
