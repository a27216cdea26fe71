package claude

import "bytes"

// row is what one line of a transcript says, as far as a receipt depends on it.
type row struct {
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
}

// sawString takes what is wanted of the string at r.path.
func (r *rowReader) sawString() {
	switch string(r.path) {
	case "type":
		r.row.kind = string(r.prefix)
	case "timestamp":
		r.row.timestamp = string(r.prefix)
	case "operation":
		r.row.operation = string(r.prefix)
	case "content":
		r.row.inQueued = r.hit && bytes.HasPrefix(r.prefix, []byte("<"))
	case "origin.kind":
		r.row.origin = string(r.prefix)
	case "attachment.type":
		r.row.attachment = string(r.prefix)
	case "attachment.commandMode":
		r.row.mode = string(r.prefix)
	case "attachment.prompt", "attachment.prompt[].text":
		r.row.inPrompt = r.row.inPrompt || r.hit
	case "message.content":
		r.row.inText = r.hit && !isLocal(r.prefix)
		r.row.prompt = !isLocal(r.prefix)
	case "message.content[].type":
		r.block.kind = string(r.prefix)
	case "message.content[].text":
		r.block.hit = r.hit && !isLocal(r.prefix)
	}
}

// sawLiteral takes what is wanted of the number, true, false or null at r.path.
func (r *rowReader) sawLiteral() {
	is := string(r.prefix) == "true"
	switch string(r.path) {
	case "isSidechain":
		r.row.sidechain = is
	case "isCompactSummary":
		r.row.summary = is
	case "isApiErrorMessage":
		r.row.apiError = is
	}
}

// sawObject looks at the block of a message that has just ended: its type may stand behind its text.
func (r *rowReader) sawObject() {
	if string(r.path) != "message.content[]" {
		return
	}
	if r.block.kind == "text" {
		r.row.inText = r.row.inText || r.block.hit
		r.row.prompt = true
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

// finding is what a row, or a file, shows of a token, in the order in which one outweighs another.
type finding int

const (
	nothing finding = iota
	strange         // in a row of a kind that is not known
	queued          // in the client's own queue
	unclear         // in a line that cannot be read, or where it cannot be looked
	failed          // the model has it, and its turn died
	started         // the model has it
)

// find judges a row that holds the token somewhere. testdata/transcripts/README.md has the rows.
func (r row) find() finding {
	switch r.kind {
	case "user":
		return r.findUser()
	case "attachment":
		return r.findAttachment()
	case "queue-operation":
		if r.operation == "enqueue" && r.inQueued {
			return queued
		}
		return nothing
	case "assistant", "system", "summary", "progress", "api-request-blob", "api-request-shape", "last-prompt",
		"ai-title", "custom-title", "tools-used", "file-history-snapshot", "file-history-delta":
		return nothing
	}
	return strange
}

// findUser: what the model was told in a message of its own. Not a tool's result, not a person's words, not what one
// agent tells another, not a summary that quotes.
func (r row) findUser() finding {
	switch {
	case !r.inText, r.sidechain, r.summary, r.origin == "human":
		return nothing
	case r.origin == "", r.origin == "task-notification":
		return started
	}
	return strange
}

// findAttachment: what was put into a running turn. A person's prompt that waited comes the same way.
func (r row) findAttachment() finding {
	switch {
	case r.attachment != "queued_command", !r.inPrompt, r.sidechain, r.mode == "prompt":
		return nothing
	case r.mode == "task-notification":
		return started
	}
	return strange
}
