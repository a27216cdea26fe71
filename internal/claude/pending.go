package claude

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxPending is more of a call than anybody wants to be told.
const maxPending = 4 << 10

// Pending is what a dialog that waits in the session may be about: the tools that the model called last and that have not
// run yet, a line for each; of a question to the person, its words with the answers below. It is "" where that is not known.
func (s Session) Pending() string { return s.transcript(pendingIn) }

func pendingIn(rows []said) string {
	var calls []string
	message, ran := "", map[string]bool{}
	for _, r := range slices.Backward(rows) {
		if r.Type != "user" && r.Type != "assistant" {
			continue
		}
		if r.Type == "assistant" && message != "" && r.Message.ID != message {
			break
		}
		var blocks []block
		if json.Unmarshal(r.Message.Content, &blocks) != nil {
			continue // a prompt
		}
		if r.Type == "assistant" {
			message = r.Message.ID // it may have a row for each of its calls
		}
		for _, b := range slices.Backward(blocks) {
			switch {
			case b.Type == "tool_result":
				ran[b.Of] = true
			case b.Type == "tool_use" && !ran[b.ID]:
				calls = append(calls, b.call())
			}
		}
		if message == "" && r.Type == "assistant" {
			break // which of the rows before belong to it is not said
		}
	}
	slices.Reverse(calls)
	return strings.Join(calls, "\n")
}

// block is a part of a message.
type block struct {
	Type  string
	ID    string
	Of    string `json:"tool_use_id"`
	Name  string
	Input json.RawMessage
}

// call is what the model wants of a tool, as far as it can be said of any.
func (b block) call() string {
	var in struct {
		Command   string
		File      string `json:"file_path"`
		URL       string
		Questions []struct {
			Question string
			Options  []struct{ Label string }
		}
	}
	_ = json.Unmarshal(b.Input, &in) // of a tool that is like none of these its name is told
	var lines []string
	for _, q := range in.Questions {
		lines = append(lines, q.Question)
		for _, o := range q.Options {
			lines = append(lines, "- "+o.Label)
		}
	}
	text := strings.Join(lines, "\n")
	if text == "" {
		text = b.Name
		if of := in.Command + in.File + in.URL; of != "" {
			text += ": " + of
		}
	}
	if len(text) > maxPending {
		text = strings.ToValidUTF8(text[:maxPending], "") + "…"
	}
	return text
}
