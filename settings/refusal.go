package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Refusal says why a settings file is not understood, and so left as it is, and where.
type Refusal struct {
	Line, Column int    // from 1; columns are characters
	Why          string // "hooks.Stop is an object, want an array"
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s (line %d, column %d)", r.Why, r.Line, r.Column)
}

// refuse makes a Refusal about the byte at offset.
func refuse(body string, offset int, format string, args ...any) *Refusal {
	line, column := position(body, offset)
	return &Refusal{Line: line, Column: column, Why: fmt.Sprintf(format, args...)}
}

func position(body string, offset int) (line, column int) {
	before := body[:min(offset, len(body))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// ignored is what a user has to know about a file that is not JSON: the client says nothing.
const ignored = "; Claude Code ignores the whole file"

// checkJSON refuses what is not one JSON value in UTF-8. gjson takes anything, and encoding/json both takes broken UTF-8
// and knows the depth at which nesting stops being a settings file.
func checkJSON(body []byte) *Refusal {
	if !utf8.Valid(body) {
		at := 0
		for at < len(body) {
			r, size := utf8.DecodeRune(body[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return refuse(string(body), at, "not UTF-8 text")
	}
	if json.Valid(body) {
		return nil
	}
	var value json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(body, &value)
	if !errors.As(err, &syntax) {
		return refuse(string(body), 0, "not JSON: %v", err)
	}
	at := max(0, int(syntax.Offset)-1)
	if syntax.Error() == "unexpected end of JSON input" {
		return refuse(string(body), len(body), "not JSON: the file ends in the middle of a value%s", ignored)
	}
	return refuse(string(body), at, "not JSON: %s%s", reason(body, at, syntax), ignored)
}

// reason puts the two usual mistakes, comments and trailing commas, in words.
func reason(body []byte, at int, syntax *json.SyntaxError) string {
	before := bytes.TrimRight(body[:at], " \t\r\n")
	switch {
	case body[at] == '/' || body[at] == '#':
		return "comments are not allowed"
	case (body[at] == '}' || body[at] == ']') && bytes.HasSuffix(before, []byte(",")):
		return "a comma before the closing bracket"
	}
	return syntax.Error()
}
