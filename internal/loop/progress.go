package loop

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/wake"
)

const (
	progressFile = "progress.txt"
	maxTail      = 64 << 10 // bytes of a progress.txt that are read, the last ones
	maxHead      = 1 << 10  // bytes that are read for the header
	maxValue     = 300      // characters of a value or a line that are kept
)

// The two lines of the marker. Old readers look for the second one anywhere in the file.
const (
	reasonKey = "completion_reason="
	complete  = "promise=COMPLETE"
)

// Field is one line key=value of progress.txt.
type Field struct{ Key, Value string }

// key is what begins a line that is an assignment; all other lines are prose.
var key = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`) })

// line is text of unknown origin as one line that is not too long.
func line(s string) string {
	s = s[:min(len(s), 16*maxValue)]
	s = strings.Join(strings.Fields(wake.Clean(s)), " ")
	if r := []rune(s); len(r) > maxValue {
		s = string(r[:maxValue-1]) + "…"
	}
	return s
}

// defuse keeps what old readers take for the end of a run out of a line that is not.
func defuse(line string) string {
	return strings.ReplaceAll(line, complete, `promise="COMPLETE"`)
}

// assign is the line of a field. The reason of the end is the marker's alone.
func (f Field) assign() (string, error) {
	if !key().MatchString(f.Key+"=") || f.Key+"=" == reasonKey || strings.ContainsAny(f.Key, "=\n") {
		return "", fmt.Errorf("progress: %q is no key", f.Key)
	}
	return defuse(f.Key+"="+line(f.Value)) + "\n", nil
}

// prose is text as lines that nobody takes for an assignment, the head of an iteration, or a rule.
func prose(text string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if l = line(l); l == "" {
			continue
		}
		if key().MatchString(l) || l[0] == '#' || l == "---" {
			l = "> " + l
		}
		b.WriteString(defuse(l) + "\n")
	}
	return b.String()
}

// header is how a progress.txt begins.
func header(of, id string, began time.Time) string {
	return defuse(fmt.Sprintf("# Progress of a run of %s\nRun: %s\nStarted: %s\n---\n", line(of), line(id), began.UTC().Format(time.RFC3339)))
}

// marker is what is appended to progress.txt at a run's end. It stands in lines of its own whatever is before it.
func marker(reason Reason, before []byte) string {
	text := "\n" + reasonKey + defuse(line(string(reason))) + "\n" + complete + "\n"
	if len(before) > 0 && before[len(before)-1] != '\n' {
		return "\n" + text
	}
	return text
}

// add appends to progress.txt in one write. A durable one outlives a crash of the machine.
func add(dir, text string, durable bool) error {
	path := filepath.Join(dir, progressFile)
	// Others may have put a link or a FIFO in its place.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &atomicfile.Unfit{Why: path + " is not a regular file"}
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	if durable {
		return atomicfile.SyncDir(dir)
	}
	return nil
}

// progress is what a progress.txt says. Its text is a stranger's, cleaned and cut.
type progress struct {
	there   bool
	changed time.Time
	started time.Time // as the header says it
	values  map[string]string
	tail    []byte // the end of the file, as it is
	reason  Reason // of the marker; "" where there is none
	decided Reason // of a marker that was not written to its end
}

// readProgress reads the end of a progress.txt, and the header at its beginning. A missing one says nothing.
func readProgress(dir string) (progress, error) {
	p := progress{values: map[string]string{}}
	f, err := os.OpenFile(filepath.Join(dir, progressFile), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("progress: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return p, errors.Join(err, fmt.Errorf("progress: %s is not a regular file", f.Name()))
	}
	p.there, p.changed = true, fi.ModTime()
	head := make([]byte, maxHead)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return p, fmt.Errorf("progress: %w", err)
	}
	p.header(string(head[:n]))
	at := max(0, fi.Size()-maxTail)
	if p.tail, err = io.ReadAll(io.NewSectionReader(f, at, maxTail)); err != nil {
		return p, fmt.Errorf("progress: %w", err)
	}
	text := string(p.tail)
	if at > 0 { // the first line is a part of one
		_, text, _ = strings.Cut(text, "\n")
	}
	p.read(text)
	return p, nil
}

// header looks for when the run began.
func (p *progress) header(text string) {
	for l := range strings.SplitSeq(text, "\n") {
		if when, ok := strings.CutPrefix(l, "Started: "); ok {
			p.started, _ = time.Parse(time.RFC3339, strings.TrimSpace(when))
		}
		if l == "---" || !p.started.IsZero() {
			return
		}
	}
}

// iterHead is ralph.sh's line above an iteration, which may be all that says its number.
var iterHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^## \S+ - iter ([0-9]{1,9})$`) })

// read takes in the lines: of one key the last assignment wins.
func (p *progress) read(text string) {
	lines := strings.Split(text, "\n")
	for _, l := range lines {
		l = strings.TrimSuffix(l, "\r")
		if m := iterHead().FindStringSubmatch(l); m != nil {
			p.values["iteration"] = m[1]
		}
		if !key().MatchString(l) {
			continue
		}
		name, value, _ := strings.Cut(l, "=")
		if name == "status" {
			value = p.several(value)
		}
		if len(name) <= maxValue && (len(p.values) < 1000 || p.values[name] != "") {
			p.values[name] = line(value)
		}
	}
	p.end(lines)
}

// several takes apart what ralph.sh writes into one line: status=work epic=E task=T reason=R. It returns the status.
func (p *progress) several(value string) string {
	words := strings.Fields(value)
	if !strings.Contains(value, "=") {
		return value
	}
	for _, w := range words {
		switch name, v, _ := strings.Cut(w, "="); name {
		case "epic", "spec", "task":
			p.values[name] = line(v)
		}
	}
	if strings.Contains(words[0], "=") {
		return "" // as in status= epic=E
	}
	return words[0]
}

// end finds the marker: the pair, and nothing but blank lines behind it.
func (p *progress) end(lines []string) {
	ended := len(lines) > 0 && lines[len(lines)-1] == "" // the last line has its newline
	var last []string
	for i := len(lines) - 1; i >= 0 && len(last) < 3; i-- {
		if l := strings.TrimRight(lines[i], " \t\r"); l != "" || len(last) > 0 {
			last = append(last, l)
		}
	}
	last = append(last, "", "", "") // last[0] is the last line that is not blank
	reason := func(l string) Reason {
		r, _ := strings.CutPrefix(l, reasonKey)
		return Reason(line(r))
	}
	switch {
	case last[0] == complete && strings.HasPrefix(last[1], reasonKey):
		p.reason = reason(last[1])
		if p.reason == "" {
			p.reason = "unknown"
		}
	case strings.HasPrefix(last[0], reasonKey) && ended && last[1] == "":
		p.decided = reason(last[0])
	case last[0] != "" && strings.HasPrefix(complete, last[0]) && strings.HasPrefix(last[1], reasonKey) && last[2] == "":
		p.decided = reason(last[1])
	}
	if _, err := ParseReason(string(p.decided)); err != nil {
		p.decided = ""
	}
}

// iteration is the number of the iteration that began last, 0 where none did.
func (p *progress) iteration() int {
	n, err := strconv.Atoi(p.values["iteration"])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// pausedSince is when a pause took effect that goes on; the zero time where the loop says nothing of one.
func (p *progress) pausedSince() time.Time {
	t, _ := time.Parse(time.RFC3339, p.values[pausedKey])
	return t
}

// pausedKey is cleared when the pause is over.
const pausedKey = "paused_at"
