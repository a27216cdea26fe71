// Package claude reads what Claude Code leaves on disk: session records, transcripts, the record of trusted folders.
// It never writes there. The formats are the client's own and may change: what does not parse is "unknown", never proof.
package claude

import (
	"time"

	"vx/internal/proc"
)

// ConfigDir is $CLAUDE_CONFIG_DIR, else ~/.claude.
func ConfigDir() (string, error) { return "", nil }

// Session is one session record, sessions/<pid>.json.
type Session struct {
	Process   proc.ID // pid and procStart as the file has them; not checked
	SessionID string
	Dir       string // cwd
	Status    string // "idle", "busy", "shell", "waiting", "" where the version does not write it
	Version   string
	Kind      string
	Entry     string // entrypoint
}

// SessionOf is the session record of a live process; ok is false when there is none or it names another process.
func SessionOf(id proc.ID) (s Session, ok bool) { return Session{}, false }

// Sessions are the records whose processes are alive. A record that does not parse is left out.
func Sessions() []Session { return nil }

// Trusted reports what the client's own record (.claude.json) says of a project folder; known is false when it cannot
// be read or says nothing.
func Trusted(project string) (trusted, known bool) { return false, false }

// Receipt is what a transcript shows of a delivery's token.
type Receipt int

// In the order of what they prove. NoTranscript: nothing to look at, or it was rotated.
const (
	NoTranscript Receipt = iota
	Absent
	Enqueued    // only in the client's own queue
	TurnStarted // in a user row: the model has it
	TurnFailed  // the same, and the next assistant row is an API error
)

// FindReceipt looks for token in the transcript at path behind size, and in transcripts of the same directory that
// were written after since. Memory is bounded (16 MiB at most, whatever a line's length).
func FindReceipt(path string, size int64, since time.Time, token string) (Receipt, error) {
	return NoTranscript, nil
}
