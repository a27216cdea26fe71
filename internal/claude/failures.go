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
	// As a rule the end of the file is enough; a tool's result can fill it, and so can what the client notes of one request.
	for _, most := range []int64{64 << 10, 1 << 20} {
		var all bool
		if n, last, all = failuresIn(f, max(0, size-most), size); all || size <= most {
			break
		}
	}
	return n, last
}

// failuresIn counts between two offsets. These are all if they follow a turn that worked.
func failuresIn(f io.ReaderAt, from, to int64) (n int, last time.Time, all bool) {
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
			return n, last, all
		case err != nil, row.sidechain:
		case row.kind == "user" && row.prompt:
			failed = false
		case row.kind == "assistant" && !row.apiError:
			n, failed, all = 0, false, true
		case row.kind == "assistant":
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
