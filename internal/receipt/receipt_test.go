package receipt

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func timed(at time.Time, words string) string {
	return fmt.Sprintf(`{"type":"assistant","timestamp":%q,"message":{"content":[{"type":"text","text":%q}]}}`, at.UTC().Format(time.RFC3339Nano), words)
}

// countingReader counts the bytes that are asked of a file.
type countingReader struct {
	*bytes.Reader
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}

func TestOfAnotherLongTranscriptOnlyTheEndIsRead(t *testing.T) {
	since := time.Now()
	var file bytes.Buffer
	words := strings.Repeat("long ago ", 1000)
	for file.Len() < 16<<20 {
		file.WriteString(timed(since.Add(-24*time.Hour), words) + "\n")
	}
	old := int64(file.Len())
	for file.Len() < 18<<20 {
		file.WriteString(timed(since.Add(time.Minute), words) + "\n" + `{"type":"mode"}` + "\n")
	}
	f := &countingReader{Reader: bytes.NewReader(file.Bytes())}
	from := freshFrom(f, f.Size(), since)
	if from <= 0 || from > old {
		t.Errorf("search begins at %d of %d; fresh rows begin at %d", from, f.Size(), old)
	}
	if f.n > 1<<20 {
		t.Errorf("%d bytes read to find that out", f.n)
	}
}

func TestATranscriptWithoutTimesIsReadWhole(t *testing.T) {
	since := time.Now()
	old, fresh := timed(since.Add(-24*time.Hour), "x"), timed(since.Add(-time.Minute), "x")
	pad := strings.Repeat(`{"type":"mode"}`+"\n", 1<<18)
	for name, content := range map[string]string{"no times": pad, "all fresh": strings.Repeat(fresh+"\n", 1<<14), "one long row": `{"x":"` + pad, "old ones before a long row": old + "\n" + pad} {
		f := bytes.NewReader([]byte(content))
		if from := freshFrom(f, f.Size(), since); from != 0 {
			t.Errorf("%s: search begins at %d, want 0", name, from)
		}
	}
}
