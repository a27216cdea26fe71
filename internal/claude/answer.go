package claude

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vx/internal/proc"
	"vx/internal/receipt"
)

// maxAnswer is how much of a transcript's end is looked at for an answer.
const maxAnswer = 1 << 20

// Answer is what the model said at the end of the session's last turn, from its transcript: what it wrote before a tool is
// none of it. It is "" where that is not known, and for a turn that a person, or an error, has cut off.
func (s Session) Answer() string { return s.transcript(answerIn) }

// Transcript is the path of the session's transcript, "" where there is none.
func (s Session) Transcript() string {
	for path := range s.transcripts() {
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// transcript is what find makes of the rows of the session's transcript, "" where there is none.
func (s Session) transcript(find func([]said) string) string {
	for path := range s.transcripts() {
		data, err := readEnd(path, maxAnswer)
		if err != nil {
			continue
		}
		if text := find(conversation(data)); text != "" {
			return text
		}
	}
	return ""
}

// transcripts are the paths at which the session's transcript may be.
func (s Session) transcripts() iter.Seq[string] {
	return func(yield func(string) bool) {
		if s.SessionID == "" || !filepath.IsLocal(s.SessionID) {
			return
		}
		for _, dir := range configDirs(s.Process) {
			projects := filepath.Join(dir, "projects")
			// The folder is named after the one that the session began in, which need not be the record's.
			folders, err := os.ReadDir(projects)
			if err != nil {
				continue
			}
			for _, folder := range folders {
				if !yield(filepath.Join(projects, folder.Name(), s.SessionID+".jsonl")) {
					return
				}
			}
		}
	}
}

// configDirs are the configuration directories that a process may keep its files in.
func configDirs(id proc.ID) []string {
	var dirs []string
	if dir, err := ConfigDir(); err == nil {
		dirs = append(dirs, dir)
	}
	if own := configDirOf(id); own != "" && !slices.Contains(dirs, own) {
		dirs = append(dirs, own)
	}
	return dirs
}

// said is a row of a transcript: what somebody said, or a result that a tool had.
type said struct {
	Type      string
	UUID      string
	Parent    string `json:"parentUuid"` // what it was said to
	Sidechain bool   `json:"isSidechain"`
	Error     bool   `json:"isApiErrorMessage"`
	Message   struct {
		ID      string
		Content json.RawMessage
	}
}

// conversation are the rows in the order in which things were said. The file's is another one at the beginning: 2.1.197
// may write the first answer before the prompt that it answers.
func conversation(data []byte) []said {
	var rows []said
	known := map[string]bool{}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		var r said
		if json.Unmarshal(line, &r) == nil && !r.Sidechain {
			rows = append(rows, r)
			known[r.UUID] = true
		}
	}
	ordered := make([]said, 0, len(rows))
	early := map[string][]said{} // by what they were said to, which comes later
	var add func(said)
	add = func(r said) {
		ordered = append(ordered, r)
		delete(known, r.UUID)
		answers := early[r.UUID]
		delete(early, r.UUID)
		for _, a := range answers {
			add(a)
		}
	}
	for _, r := range rows {
		if r.Parent != "" && known[r.Parent] && r.Parent != r.UUID {
			early[r.Parent] = append(early[r.Parent], r)
			continue
		}
		add(r)
	}
	return ordered
}

// answerIn goes back from the end: the texts of the model's rows behind the last row of anybody else.
func answerIn(rows []said) string {
	var texts []string
	for _, r := range slices.Backward(rows) {
		text := textOf(r.Message.Content)
		switch {
		case r.Type == "user" && isLocal([]byte(text)):
		case r.Type == "assistant" && r.Error:
			return ""
		case r.Type == "assistant" && text != "":
			texts = append(texts, text)
		case r.Type == "user":
			slices.Reverse(texts)
			return strings.Join(texts, "\n\n")
		}
	}
	return "" // where the turn begins is out of sight
}

// textOf is the text of a message's content: a string, or blocks of which some are texts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" && b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// readEnd reads the last bytes of a regular file.
func readEnd(path string, most int64) ([]byte, error) {
	f, size, err := receipt.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(max(0, size-most), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, most))
}
