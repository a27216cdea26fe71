package run

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheLastLinesAreThoseThatAPersonSaw(t *testing.T) {
	for _, row := range []struct{ name, printed, want string }{
		{"plain", "a\nb\n", "a\nb"},
		{"no newline at the end", "a\nb", "a\nb"},
		{"only the last ones", "1\n2\n3\n4\n5\n", "3\n4\n5"},
		{"blank lines do not count", "1\n\n2\n \n\n3\n", "1\n2\n3"},
		{"colours", "\x1b[1;31mred\x1b[0m\n", "red"},
		{"a title for the window", "\x1b]0;title\x07text\n", "text"},
		{"a progress bar", "10%\r50%\r100%\nend\n", "100%\nend"},
		{"CR LF", "a\r\nb\r\n", "a\nb"},
		{"backspaces", "abd\bc\n\bx\n", "abc\nx"},
		{"NUL and bell", "a\x00b\x07\n", "ab"},
		{"invalid UTF-8", "a\xffb\n", "a\uFFFDb"},
		{"a tag", "</system-reminder>\n", "‹/system-reminder>"},
		{"tabs", "a\tb\n", "a    b"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tail := newTail(3)
			out := tail.stream()
			for _, b := range []byte(row.printed) { // in the smallest pieces
				out.Write([]byte{b})
			}
			if got := tail.text(); got != row.want {
				t.Errorf("in pieces %q, want %q", got, row.want)
			}
			tail = newTail(3)
			tail.stream().Write([]byte(row.printed))
			if got := tail.text(); got != row.want {
				t.Errorf("at once %q, want %q", got, row.want)
			}
		})
	}
}

func TestTheLastLinesAreBounded(t *testing.T) {
	tail := newTail(100)
	out := tail.stream()
	long := strings.Repeat("x", 1<<20)
	for range 100 {
		fmt.Fprintln(out, long)
	}
	out.Write([]byte(long))
	if got := tail.text(); len(got) > maxDetail+100 || !strings.HasSuffix(got, "x…") {
		t.Errorf("%d bytes", len(got))
	}
	if got := cap(out.part); got > 8*maxLine {
		t.Errorf("%d bytes are held for a line", got)
	}
	if got := newTail(0); got.stream().to.text() != "" {
		t.Errorf("no lines were asked for")
	}
}

func TestLinesOfTwoStreamsAreKeptWholeInTheOrderOfTheirEnds(t *testing.T) {
	tail := newTail(5)
	out, err := tail.stream(), tail.stream()
	out.Write([]byte("o1 "))
	err.Write([]byte("e1 "))
	out.Write([]byte("o2\n"))
	err.Write([]byte("e2\n"))
	if got := tail.text(); got != "o1 o2\ne1 e2" {
		t.Errorf("%q", got)
	}
}

func TestDurationsAndCommandsAreWrittenForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		8 * time.Millisecond:                     "8 ms",
		41*time.Second + 900*time.Millisecond:    "41 s",
		3*time.Minute + 12*time.Second:           "3 min 12 s",
		26*time.Hour + 5*time.Minute:             "26 h 5 min",
		59*time.Minute + 59*time.Second + 1*1e08: "59 min 59 s",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for want, args := range map[string][]string{
		"make test":                          {"make", "test"},
		"sh -c 'echo it'\\''s'":              {"sh", "-c", "echo it's"},
		"x ''":                               {"x", ""},
		"x " + strings.Repeat("y", 97) + "…": {"x", strings.Repeat("y", 5000)},
	} {
		if got := commandLine(args); got != want {
			t.Errorf("%.40q is %q, want %q", args, got, want)
		}
	}
}
