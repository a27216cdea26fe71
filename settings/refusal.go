package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	at := cursor{body: body, line: 1, column: 1}
	return at.move(offset)
}

// A cursor turns offsets that only grow into lines and columns, in one pass over the body.
type cursor struct {
	body                 string
	offset, line, column int
}

func (c *cursor) move(offset int) (line, column int) {
	passed := c.body[c.offset:min(offset, len(c.body))]
	if i := strings.LastIndexByte(passed, '\n'); i >= 0 {
		c.line += strings.Count(passed, "\n")
		c.column = 1
		passed = passed[i+1:]
	}
	c.column += utf8.RuneCountInString(passed)
	c.offset = offset
	return c.line, c.column
}

// ignored is what a user has to know about a file that is not JSON: the client says nothing.
const ignored = "; Claude Code ignores the whole file"

// checkJSON refuses what is not one JSON value in UTF-8. gjson takes anything, and encoding/json both takes broken UTF-8
// and knows the depth at which nesting stops being a settings file. The text is b once more.
func checkJSON(b []byte, text string) *Refusal {
	if !utf8.Valid(b) {
		at := 0
		for at < len(b) {
			r, size := utf8.DecodeRune(b[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return refuse(text, at, "not UTF-8 text")
	}
	if json.Valid(b) {
		return nil
	}
	var value json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(b, &value)
	if !errors.As(err, &syntax) {
		return refuse(text, 0, "not JSON: %v", err)
	}
	at := max(0, int(syntax.Offset)-1)
	// Unmarshal says of an end within a word or an escape that a space is wrong there; a stream's reader knows better.
	ends := json.NewDecoder(bytes.NewReader(b)).Decode(&value)
	switch {
	case errors.Is(ends, io.ErrUnexpectedEOF):
		return refuse(text, len(text), "not JSON: the file ends in the middle of a value%s", ignored)
	case strings.HasSuffix(syntax.Error(), "exceeded max depth"):
		return refuse(text, at, "nested more than 10000 deep")
	}
	return refuse(text, at, "not JSON: %s%s", reason(b, at, syntax), ignored)
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
	if r, _ := utf8.DecodeRune(body[at:]); r >= utf8.RuneSelf {
		return fmt.Sprintf("%q does not belong there", r) // encoding/json names its first byte
	}
	return syntax.Error()
}
