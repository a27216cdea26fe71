package claude

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vx/internal/proc"
)

// maxAnswer is how much of a transcript's end is looked at for an answer.
const maxAnswer = 1 << 20

// Answer is what the model said at the end of the session's last turn, from its transcript: what it wrote before a tool is
// none of it. It is "" where that is not known, and for a turn that a person, or an error, has cut off.
func (s Session) Answer() string {
	if s.SessionID == "" || !filepath.IsLocal(s.SessionID) {
		return ""
	}
	for _, dir := range configDirs(s.Process) {
		projects := filepath.Join(dir, "projects")
		// The folder is named after the one that the session began in, which need not be the record's.
		folders, err := os.ReadDir(projects)
		if err != nil {
			continue
		}
		for _, folder := range folders {
			if text := answerAt(filepath.Join(projects, folder.Name(), s.SessionID+".jsonl")); text != "" {
				return text
			}
		}
	}
	return ""
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

// answerAt reads the transcript from its end: the texts of the model's rows behind the last row of anybody else.
func answerAt(path string) string {
	data, err := readEnd(path, maxAnswer)
	if err != nil {
		return ""
	}
	var said []string
	for line := range backwards(data) {
		var r struct {
			Type      string
			Sidechain bool `json:"isSidechain"`
			Error     bool `json:"isApiErrorMessage"`
			Message   struct{ Content json.RawMessage }
		}
		if json.Unmarshal(line, &r) != nil || r.Sidechain {
			continue
		}
		text := textOf(r.Message.Content)
		switch {
		case r.Type == "user" && isLocal([]byte(text)):
		case r.Type == "assistant" && r.Error:
			return ""
		case r.Type == "assistant" && text != "":
			said = append(said, text)
		case r.Type == "user":
			slices.Reverse(said)
			return strings.Join(said, "\n\n")
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

// backwards are the whole lines of data, the last one first.
func backwards(data []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			data = bytes.TrimRight(data, "\n")
			at := bytes.LastIndexByte(data, '\n')
			if !yield(data[at+1:]) {
				return
			}
			data = data[:at+1]
		}
	}
}

// readEnd reads the last bytes of a regular file.
func readEnd(path string, most int64) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(max(0, size-most), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, most))
}
