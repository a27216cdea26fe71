package claude

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
	"vx/internal/receipt"
)

// Session is one session record, sessions/<pid>.json.
type Session struct {
	Process   proc.ID // the live process that the record names
	SessionID string
	Dir       string // cwd
	Status    string // "idle", "busy", "shell", "waiting", "" where the version does not write it
	Version   string
	Kind      string
	Entry     string // entrypoint
	Name      string // given with --name, else made up by the client
	Waiting   string // with status waiting: what for ("permission prompt", "dialog open", …)
	// Changed is when the status changed last; zero where the version does not say. The record is written at changes
	// only, so an old one is not stale.
	Changed time.Time

	file stamp // before it was read
}

// stamp is what tells a file that was written since from one that was not.
type stamp struct {
	path        string
	inode       uint64
	size        int64
	mtime, read int64 // in nanoseconds since 1970
}

// coarse is how long a file must have been left alone for an unchanged time to mean that nothing changed: kernels stamp
// coarsely.
const coarse = 2 * time.Second

func stampOf(path string) stamp {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return stamp{}
	}
	return stamp{path, st.Ino, st.Size, st.Mtim.Nano(), time.Now().UnixNano()}
}

// Unchanged reports whether the record is known to be as it was read, at a fraction of the cost of reading it. It says
// nothing of the process.
func (s *Session) Unchanged() bool {
	was := s.file
	if was.path == "" || was.read-was.mtime < int64(coarse) {
		return false
	}
	now := stampOf(was.path)
	now.read = was.read
	return now == was
}

// SessionOf is the session record of a live process; ok is false when there is none or it names another process.
func SessionOf(id proc.ID) (s Session, ok bool) {
	dir, err := ConfigDir()
	if err != nil || id.PID <= 0 {
		return Session{}, false
	}
	if s, ok := SessionAt(filepath.Join(dir, "sessions", recordName(id.PID)), id); ok {
		return s, true
	}
	// It may have been started with a configuration directory of its own.
	own := configDirOf(id)
	if own == "" || own == dir {
		return Session{}, false
	}
	return SessionAt(filepath.Join(own, "sessions", recordName(id.PID)), id)
}

func recordName(pid int) string { return strconv.Itoa(pid) + ".json" }

// Sessions are the records whose processes are alive. A record that does not parse is left out.
func Sessions() []Session {
	dir, err := ConfigDir()
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, "sessions"))
	if err != nil {
		return nil
	}
	var all []Session
	for _, e := range entries {
		id, ok := processOf(e.Name())
		if !ok {
			continue
		}
		if s, ok := SessionAt(filepath.Join(dir, "sessions", e.Name()), id); ok {
			all = append(all, s)
		}
	}
	return all
}

// processOf is the live process whose session record has this name. Other files in the directory hold secrets
// (<pid>.<hex>.key) and are none of our business.
func processOf(name string) (proc.ID, bool) {
	pid, ok := pidOf(name)
	if !ok {
		return proc.ID{}, false
	}
	id, err := proc.Find(pid)
	return id, err == nil
}

// pidOf is the pid in the name of a session record.
func pidOf(name string) (int, bool) {
	digits, ok := strings.CutSuffix(name, ".json")
	pid, err := strconv.Atoi(digits)
	return pid, ok && err == nil && strconv.Itoa(pid) == digits
}

// maxRecord is far above what a session record holds (about 1 KB).
const maxRecord = 1 << 20

// SessionAt reads the record at a path and compares its process with id: a client that was killed leaves its record, and
// the pid may be another's now. What a later version writes in another form is left out, but for what names the process.
func SessionAt(path string, id proc.ID) (Session, bool) {
	var r struct {
		PID       int    `json:"pid"`
		ProcStart string `json:"procStart"`
		SessionID word   `json:"sessionId"`
		Dir       word   `json:"cwd"`
		Status    word   `json:"status"`
		Version   word   `json:"version"`
		Kind      word   `json:"kind"`
		Entry     word   `json:"entrypoint"`
		Name      word   `json:"name"`
		Waiting   word   `json:"waitingFor"`
		Changed   millis `json:"statusUpdatedAt"`
	}
	file := stampOf(path)
	if !readRecord(path, &r) || r.PID != id.PID || !startedAt(id, r.ProcStart) {
		return Session{}, false
	}
	return Session{
		Process: id, SessionID: string(r.SessionID), Dir: string(r.Dir), Status: string(r.Status), Version: string(r.Version),
		Kind: string(r.Kind), Entry: string(r.Entry), Name: string(r.Name), Waiting: string(r.Waiting), Changed: time.Time(r.Changed),
		file: file,
	}, true
}

// word is a string; what is none is "".
type word string

func (w *word) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*w = word(s)
	}
	return nil
}

// millis is a time in milliseconds since 1970; what is none is the zero time.
type millis time.Time

func (m *millis) UnmarshalJSON(data []byte) error {
	var ms int64
	if json.Unmarshal(data, &ms) == nil && ms > 0 {
		*m = millis(time.UnixMilli(ms))
	}
	return nil
}

// readRecord decodes a session record. The client rewrites it in place, so what does not parse is read again.
func readRecord(path string, into any) bool {
	for range 3 {
		data, err := readSmall(path, maxRecord)
		if err != nil {
			return false
		}
		if json.Valid(data) {
			return json.Unmarshal(data, into) == nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

// readSmall reads a regular file of at most limit bytes; a FIFO in its place does not make it wait.
func readSmall(path string, limit int64) ([]byte, error) {
	f, size, err := receipt.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, unix.EFBIG
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
