package green

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"vx/internal/wake"
)

const (
	maxLines   = 20   // of a gate's output that look like errors
	maxTail    = 1500 // bytes of it where none does
	maxOneLine = 1000 // bytes that are kept of one of them
	maxWords   = 4000 // bytes of a judge's answer that are kept
)

// telling is what a line has that looks like an error.
var telling = []string{"error[", "error:", "no field", "unknown", "cannot find", "FAILED", "failed", "panicked", "Error", "✗", "not ok", "AssertionError"}

// excerpt is the telling part of a gate's output: the first lines that look like errors, else its end. It is cleaned.
func excerpt(r io.Reader) (string, error) {
	var lines []string
	var tail []byte
	in := bufio.NewReaderSize(r, 64<<10)
	for len(lines) < maxLines {
		part, err := in.ReadSlice('\n')
		tail = append(tail, part...)
		if len(tail) > 8*maxTail {
			tail = append([]byte(nil), tail[len(tail)-maxTail:]...)
		}
		if l := strings.TrimRight(wake.Clean(string(part)), "\n"); tells(l) {
			lines = append(lines, cut(l, maxOneLine))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
	if len(lines) > 0 {
		return strings.Join(lines, "\n") + "\n", nil
	}
	if len(tail) > maxTail {
		tail = tail[len(tail)-maxTail:]
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	return wake.Clean(string(tail)), nil
}

func tells(line string) bool {
	for _, t := range telling {
		if strings.Contains(line, t) {
			return true
		}
	}
	return false
}

var pass = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*PASS([^A-Za-z0-9_]|$)`) })

// verdict reports whether a judge's answer, cleaned, is a yes: its first line that is not blank decides.
func verdict(said string) bool { return pass().MatchString(firstLine(said)) }

func firstLine(s string) string {
	for l := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(l) != "" {
			return l
		}
	}
	return ""
}

// fence is text in a code fence that it cannot close.
func fence(s string) string {
	marks := "```"
	for strings.Contains(s, marks) {
		marks += "`"
	}
	return marks + "\n" + strings.TrimRight(s, "\n") + "\n" + marks + "\n"
}

// quote is text as a quotation.
func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ") + "\n"
}

// cut is s in about n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// report is what Claude Code prints with --output-format json.
type report struct {
	Type    string   `json:"type"`
	Subtype string   `json:"subtype"`
	Result  string   `json:"result"`
	IsError bool     `json:"is_error"`
	Cost    *float64 `json:"total_cost_usd"`
}

// reported finds the client's report in what it has printed: one object, the last line of several (stream-json), or the
// last element of a list. It is nil where there is none.
func reported(out []byte) *report {
	out = bytes.TrimSpace(out)
	var list []report
	if json.Unmarshal(out, &list) == nil && len(list) > 0 {
		return list[len(list)-1].checked()
	}
	var r report
	if json.Unmarshal(out, &r) == nil {
		return r.checked()
	}
	lines := bytes.Split(out, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		var r report
		if bytes.HasPrefix(bytes.TrimSpace(lines[i]), []byte("{")) && json.Unmarshal(lines[i], &r) == nil && r.checked() != nil {
			return &r
		}
	}
	return nil
}

// checked is nil for an object that is no report. A negative cost is none.
func (r *report) checked() *report {
	if r.Cost != nil && *r.Cost < 0 {
		r.Cost = nil
	}
	if r.Type != "result" && r.Cost == nil {
		return nil
	}
	return r
}

// words are what the client has answered.
func (r *report) words() string {
	if strings.TrimSpace(r.Result) == "" && r.IsError || strings.HasPrefix(r.Subtype, "error") {
		return "Error: " + r.Subtype
	}
	return r.Result
}
