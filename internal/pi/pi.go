// Package pi reads what the coding agent Pi leaves on disk of a session: a file of JSON lines, one for each message. It
// never writes there, so a crash leaves nothing, and it starts no client. The format is Pi's own and may change: what does
// not parse is "unknown", never proof. docs/wakes.md has what was measured, testdata/transcripts what was recorded.
package pi

import (
	"time"

	"vx/internal/receipt"
)

// FindReceipt looks for token in the session's file at path behind size, and in files of the same directory that were
// written after since: after /new or /fork Pi goes on in another one. See receipt.Find.
//
// A message of the user that holds the token proves that the model was told. What waits in Pi's own queue leaves no row, so
// there is no receipt.Enqueued; and before the first message of a session there is no file, which is
// receipt.NoTranscript.
func FindReceipt(path string, size int64, since time.Time, token string) (receipt.Receipt, error) {
	return receipt.Find(path, size, since, token, func() receipt.Judge { return new(row) })
}

// row is what one line of a session says, as far as a receipt depends on it.
type row struct {
	kind string // type
	role string // of a message
	stop string // stopReason of an answer
	hit  bool   // the token stands in the message's own text

	block struct { // of the message, the one at hand
		kind string
		hit  bool
	}
}

func (r *row) String(path, text []byte, hit bool) {
	switch string(path) {
	case "type":
		r.kind = string(text)
	case "message.role":
		r.role = string(text)
	case "message.stopReason":
		r.stop = string(text)
	case "message.content":
		r.hit = r.hit || hit
	case "message.content[].type":
		r.block.kind = string(text)
	case "message.content[].text":
		r.block.hit = hit
	}
}

func (r *row) Literal(path, text []byte) {}

// End looks at the block of a message that has just ended: its type may stand behind its text.
func (r *row) End(path []byte) {
	if string(path) != "message.content[]" {
		return
	}
	r.hit = r.hit || r.block.kind == "text" && r.block.hit
	r.block.kind, r.block.hit = "", false
}

// Finding: only what the user said to the model counts, in whose name an extension speaks too. A command that a person ran
// (!), a tool's result, an answer, a summary may quote anything.
func (r *row) Finding() receipt.Finding {
	switch r.kind {
	case "message":
		return r.inMessage()
	case "session", "model_change", "thinking_level_change", "usage", "compaction", "context_edit", "branch_summary", "custom",
		"custom_message", "label", "session_info":
		return receipt.Nothing
	}
	return receipt.Strange
}

func (r *row) inMessage() receipt.Finding {
	switch r.role {
	case "user":
		if r.hit {
			return receipt.Started
		}
		return receipt.Nothing
	case "assistant", "system", "toolResult", "bashExecution", "custom", "branchSummary", "compactionSummary":
		return receipt.Nothing
	}
	return receipt.Strange
}

// Turn: after an error Pi may ask the model again by itself, and writes both answers.
func (r *row) Turn() receipt.Turn {
	switch {
	case r.kind != "message":
		return receipt.Goes
	case r.role == "user":
		return receipt.Over
	case r.role != "assistant":
		return receipt.Goes
	case r.stop == "error":
		return receipt.Fails
	}
	return receipt.Worked
}
