package claude

import (
	"bytes"

	"vx/internal/receipt"
)

// row is what one line of a transcript says, as far as a receipt depends on it.
type row struct {
	typed bool // the token is in a text that was typed for the client, as a person's prompt

	kind       string // type
	operation  string // of a queue-operation
	origin     string // origin.kind: "human", "task-notification"; "" where there is none
	attachment string // attachment.type
	mode       string // attachment.commandMode: "prompt", "task-notification"
	timestamp  string
	sidechain  bool // a subagent's
	summary    bool // written by /compact
	apiError   bool
	prompt     bool // a text of its own, not only a tool's result: a turn may begin with it
	// Where the token stands.
	inText   bool // in the row's own message, not in a tool's result
	inQueued bool // in what the client put into its queue
	inPrompt bool // in an attachment's prompt

	block struct { // of the message, the one at hand
		kind string
		hit  bool
	}
}

func (r *row) String(path, text []byte, hit bool) {
	switch string(path) {
	case "type":
		r.kind = string(text)
	case "timestamp":
		r.timestamp = string(text)
	case "operation":
		r.operation = string(text)
	case "content":
		r.inQueued = hit && (r.typed || bytes.HasPrefix(text, []byte("<")))
	case "origin.kind":
		r.origin = string(text)
	case "attachment.type":
		r.attachment = string(text)
	case "attachment.commandMode":
		r.mode = string(text)
	case "attachment.prompt", "attachment.prompt[].text":
		r.inPrompt = r.inPrompt || hit
	case "message.content":
		r.inText = hit && !isLocal(text)
		r.prompt = !isLocal(text)
	case "message.content[].type":
		r.block.kind = string(text)
	case "message.content[].text":
		r.block.hit = hit && !isLocal(text)
	}
}

func (r *row) Literal(path, text []byte) {
	is := string(text) == "true"
	switch string(path) {
	case "isSidechain":
		r.sidechain = is
	case "isCompactSummary":
		r.summary = is
	case "isApiErrorMessage":
		r.apiError = is
	}
}

// End looks at the block of a message that has just ended: its type may stand behind its text.
func (r *row) End(path []byte) {
	if string(path) != "message.content[]" {
		return
	}
	if r.block.kind == "text" {
		r.inText = r.inText || r.block.hit
		r.prompt = true
	}
	r.block.kind, r.block.hit = "", false
}

// isLocal reports whether a text is what the client notes of a command that a person ran in it (! ls, /compact): its
// output may hold anything.
func isLocal(text []byte) bool {
	for _, mark := range []string{"<bash-", "<local-command-", "<command-"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return true
		}
	}
	return false
}

// Finding: testdata/transcripts/README.md has the rows.
func (r *row) Finding() receipt.Finding {
	switch r.kind {
	case "user":
		return r.findUser()
	case "attachment":
		return r.findAttachment()
	case "queue-operation":
		if r.operation == "enqueue" && r.inQueued {
			return receipt.Queued
		}
		return receipt.Nothing
	case "assistant", "system", "summary", "progress", "api-request-blob", "api-request-shape", "last-prompt",
		"ai-title", "custom-title", "tools-used", "file-history-snapshot", "file-history-delta":
		return receipt.Nothing
	}
	return receipt.Strange
}

// findUser: what the model was told in a message of its own. Not a tool's result, not a person's words, not what one
// agent tells another, not a summary that quotes.
func (r *row) findUser() receipt.Finding {
	switch {
	case !r.inText, r.sidechain, r.summary, r.origin == "human" && !r.typed:
		return receipt.Nothing
	case r.origin == "", r.origin == "task-notification", r.origin == "human":
		return receipt.Started
	}
	return receipt.Strange
}

// findAttachment: what was put into a running turn. A person's prompt that waited comes the same way.
func (r *row) findAttachment() receipt.Finding {
	switch {
	case r.attachment != "queued_command", !r.inPrompt, r.sidechain, r.mode == "prompt" && !r.typed:
		return receipt.Nothing
	case r.mode == "task-notification", r.mode == "prompt":
		return receipt.Started
	}
	return receipt.Strange
}

// Turn: the next answer says it all. After an error the client goes on only when it is told to.
func (r *row) Turn() receipt.Turn {
	switch {
	case r.kind != "assistant" || r.sidechain:
		return receipt.Goes
	case r.apiError:
		return receipt.Dies
	}
	return receipt.Worked
}
