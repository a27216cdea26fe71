package claude

import (
	"io"
	"time"

	"vx/internal/receipt"
)

// Failures tells how many of a session's last turns, one after the other, ended in an API error, and when the last of
// them did: what its transcript says. A turn that worked, or works, ends the count. It is 0 where nothing is known, and
// too small, never too large, where the turns began out of sight.
func Failures(transcript string) (n int, last time.Time) {
	f, size, err := receipt.Open(transcript)
	if err != nil {
		return 0, time.Time{}
	}
	defer f.Close()
	// As a rule the end of the file is enough; a tool's result can fill it.
	for _, most := range []int64{64 << 10, 1 << 20} {
		var seen bool
		if n, last, seen = failuresIn(f, max(0, size-most), size); seen || size <= most {
			break
		}
	}
	return n, last
}

// failuresIn counts between two offsets. It has seen something if a row of the model was there.
func failuresIn(f io.ReaderAt, from, to int64) (n int, last time.Time, seen bool) {
	lines := receipt.NewLines(f, from, to, nil)
	if from > 0 {
		if lines.Skip() != nil {
			return 0, time.Time{}, false
		}
	}
	failed := false // the turn at hand, and it is counted
	for {
		var row row
		err := lines.Next(&row)
		switch {
		case err != nil && err != receipt.ErrForm:
			return n, last, seen
		case err != nil, row.sidechain:
		case row.kind == "user" && row.prompt:
			failed = false
		case row.kind == "assistant" && !row.apiError:
			n, failed, seen = 0, false, true
		case row.kind == "assistant":
			seen = true
			if !failed {
				n++
			}
			failed = true
			if at, err := time.Parse(time.RFC3339, row.timestamp); err == nil {
				last = at
			}
		}
	}
}
