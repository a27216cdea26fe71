package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"

	"vx/internal/atomicfile"
	"vx/internal/state"
)

const (
	maxLog    = 1        // megabytes; then it is set aside under a name with the time, and one of these is kept
	maxRecord = 16 << 10 // bytes; a stack is longer at times
	tail      = 16 << 10 // bytes at the end of the log that are looked at for its last line
)

// Log is the sentinel's log file, rotated. Of a sentinel that was started detached it is stderr too, so that a crash is
// in it, also after a rotation.
type Log struct {
	mu     sync.Mutex
	path   string
	rotor  *lumberjack.Logger
	stderr bool      // is the log's
	gone   time.Time // when the file was first missed; zero while it is there
}

// OpenLog opens the log, for the one who holds the lock.
func OpenLog(dir *state.Dir) (*Log, error) {
	path := dir.Join(LogName)
	f, err := atomicfile.OpenLog(path)
	if err != nil {
		return nil, fmt.Errorf("sentinel log: %w", err)
	}
	defer f.Close()
	l := &Log{path: path, stderr: leadsTo(path, 2)}
	l.rotor = &lumberjack.Logger{Filename: path, MaxSize: maxLog, MaxBackups: 1}
	if _, err := l.rotor.Write(nil); err != nil { // open it now: later it may be gone
		return nil, fmt.Errorf("sentinel log: %w", err)
	}
	return l, nil
}

// removing is how long after the log the rest of the state directory may go, if it is to go.
const removing = time.Minute

// Write appends a record. A log that is gone is made again, but not at once: whoever removes the state directory with all
// that is in it is not to find something new there.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p) > maxRecord {
		p = append(p[:maxRecord:maxRecord], "…\n"...)
	}
	before, err := os.Lstat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l.writeGone(p)
	}
	l.gone = time.Time{}
	if err != nil {
		return 0, err
	}
	n, err := l.rotor.Write(p)
	if after, serr := os.Lstat(l.path); err == nil && (serr != nil || !os.SameFile(before, after)) {
		err = l.reopen()
	}
	return n, err
}

// writeGone is Write while there is no file.
func (l *Log) writeGone(p []byte) (int, error) {
	if l.gone.IsZero() {
		l.gone = time.Now()
	}
	if time.Since(l.gone) < removing {
		return 0, fs.ErrNotExist
	}
	if _, err := os.Lstat(filepath.Dir(l.path)); err != nil {
		return 0, err
	}
	if err := l.reopen(); err != nil {
		return 0, err
	}
	return l.rotor.Write(p)
}

// reopen follows the log's name to a new file. What rotates does not open it for appending, so that what stderr adds
// would be overwritten: it is made here and opened anew.
func (l *Log) reopen() error {
	f, err := atomicfile.OpenLog(l.path)
	if err == nil {
		defer f.Close()
		if l.stderr {
			err = dup2(int(f.Fd()), 2)
		}
	}
	return errors.Join(err, l.rotor.Close())
}

// Close lets go of the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rotor.Close()
}

// lastLine is the last line of the log that says something, "" if there is none. Of a crash that is its first.
func lastLine(dir *state.Dir) string {
	f, err := os.OpenFile(dir.Join(LogName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, fi.Size()-tail), tail))
	if err != nil {
		return ""
	}
	last := ""
	for line := range bytes.Lines(text) {
		s := strings.TrimRight(string(line), "\n")
		if strings.HasPrefix(s, "time=") || strings.HasPrefix(s, "panic: ") || strings.HasPrefix(s, "fatal error: ") || strings.HasPrefix(s, "vx: ") {
			last = s
		}
	}
	return last
}
