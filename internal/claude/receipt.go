package claude

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Receipt is what a transcript shows of a delivery's token.
type Receipt int

// In the order of what they prove. NoTranscript: nothing to look at, it was rotated, or what it shows of the token cannot
// be read. It proves neither that the model has the text nor that it has not.
const (
	NoTranscript Receipt = iota
	Absent
	Enqueued    // only in the client's own queue
	TurnStarted // in a user row, or given to a running turn: the model has it
	TurnFailed  // the same, and the next assistant row is an API error
)

func (r Receipt) String() string {
	switch r {
	case Absent:
		return "absent"
	case Enqueued:
		return "enqueued"
	case TurnStarted:
		return "turn started"
	case TurnFailed:
		return "turn failed"
	}
	return "no transcript"
}

// FindReceipt looks for token in the transcript at path behind size, and in transcripts of the same directory that
// were written after since: after /clear the client goes on in a new one. Memory is bounded (16 MiB at most, whatever a
// line's length).
//
// Only a row that is known to show so proves that the model has the text. That it has not is said only if everything
// could be looked at and understood: a token in a line that does not parse, or in a row of an unknown kind with no row
// beside it that shows the queue, is NoTranscript. An error means that this process could not look (it is out of
// descriptors or memory): ask again.
func FindReceipt(path string, size int64, since time.Time, token string) (Receipt, error) {
	if token == "" || path == "" {
		return NoTranscript, nil
	}
	found, noted, err := findNoted(path, size, token)
	if err == nil && found < failed {
		var elsewhere finding
		elsewhere, err = findElsewhere(path, noted, since, token)
		found = max(found, elsewhere)
	}
	if err != nil {
		return NoTranscript, err
	}
	switch found {
	case started:
		return TurnStarted, nil
	case failed:
		return TurnFailed, nil
	case queued:
		return Enqueued, nil
	case nothing:
		return Absent, nil
	}
	return NoTranscript, nil
}

// findNoted looks into the transcript that was noted with the delivery. One that is shorter now is another.
func findNoted(path string, size int64, token string) (finding, os.FileInfo, error) {
	f, now, err := openRegular(path)
	if err != nil {
		return unclear, nil, shortage(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || now < size {
		return unclear, fi, shortage(err)
	}
	found, err := findIn(f, max(0, size), now, token)
	return found, fi, err
}

// findElsewhere looks into the other transcripts of the directory.
func findElsewhere(path string, noted os.FileInfo, since time.Time, token string) (finding, error) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return unclear, shortage(err)
	}
	best := nothing
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".jsonl" {
			continue
		}
		other := filepath.Join(dir, e.Name())
		fi, err := os.Stat(other)
		if err != nil || !fi.Mode().IsRegular() || os.SameFile(fi, noted) || fi.ModTime().Before(since.Add(-slack)) {
			continue
		}
		found, err := findFresh(other, since, token)
		if err != nil {
			return unclear, err
		}
		if best = max(best, found); best >= failed {
			break
		}
	}
	return best, nil
}

// findFresh looks into the part of a transcript that was written after since.
func findFresh(path string, since time.Time, token string) (finding, error) {
	f, size, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, nil
	}
	if err != nil {
		return unclear, shortage(err)
	}
	defer f.Close()
	return findIn(f, freshFrom(f, size, since), size, token)
}

// slack is how far the times in a transcript may be out of order or off the file system's. Rows are written in batches,
// seconds late under load, with the time of what they tell.
const slack = 10 * time.Minute

// freshFrom is an offset before which everything was written before since, so that a long transcript of another session
// is not read whole each time. It steps back from the end until it meets a row that is old enough.
func freshFrom(f io.ReaderAt, size int64, since time.Time) int64 {
	for back := int64(1 << 20); back < size; back *= 4 {
		from := size - back
		if at, ok := firstTime(f, from, from+back/4); ok && at.Before(since.Add(-slack)) {
			return from
		}
	}
	return 0
}

// firstTime is the time of the first row that has one and begins between two offsets.
func firstTime(f io.ReaderAt, from, to int64) (time.Time, bool) {
	r := newRowReader(f, from, to, nil)
	err := r.skipLine()
	for err == nil {
		var row row
		row, err = r.next()
		if err == nil {
			if at, bad := time.Parse(time.RFC3339, row.timestamp); bad == nil {
				return at, true
			}
		}
		if errors.Is(err, errForm) {
			err = nil
		}
	}
	return time.Time{}, false
}

// chunk is how much is searched at once.
const chunk = 256 << 10

// findIn looks for the token between two offsets: as bytes first, then in the rows that hold it.
func findIn(f io.ReaderAt, from, to int64, token string) (finding, error) {
	buf, want := make([]byte, chunk), []byte(token)
	best, kept := nothing, 0 // kept is how much of the last window is still in buf: the token may have begun in it
	begin := from            // of the line at hand, or of one before it
	for at := from; at < to; {
		n, err := f.ReadAt(buf[kept:min(chunk, int64(kept)+to-at)], at)
		if n == 0 && err != nil {
			return max(best, unclear), shortage(err)
		}
		window := buf[:kept+n]
		hit := bytes.Index(window, want)
		if hit < 0 {
			at += int64(n)
			kept = copy(buf, window[len(window)-min(len(window), len(want)-1):])
			continue
		}
		line, err := lineStart(f, begin, at-int64(kept)+int64(hit))
		if err != nil {
			return max(best, unclear), shortage(err)
		}
		found, next, err := findAt(f, line, to, want)
		if best = max(best, found); err != nil || best >= failed {
			return best, err
		}
		at, begin, kept = next, next, 0
	}
	return best, nil
}

// lineStart is where the line that holds an offset begins, not before from.
func lineStart(f io.ReaderAt, from, at int64) (int64, error) {
	buf := make([]byte, 4<<10)
	for at > from {
		part := buf[:min(int64(len(buf)), at-from)]
		if _, err := f.ReadAt(part, at-int64(len(part))); err != nil && err != io.EOF {
			return 0, err
		}
		if end := bytes.LastIndexByte(part, '\n'); end >= 0 {
			return at - int64(len(part)-end-1), nil
		}
		at -= int64(len(part))
	}
	return from, nil
}

// findAt judges the row that begins at an offset and holds the token, and says where the next one begins.
func findAt(f io.ReaderAt, line, to int64, token []byte) (finding, int64, error) {
	r := newRowReader(f, line, to, token)
	row, err := r.next()
	if errors.Is(err, errForm) {
		return unclear, r.pos, nil
	}
	if err != nil {
		return unclear, to, shortage(err)
	}
	found, next := row.find(), r.pos
	if found == started && turnFailed(r) {
		found = failed
	}
	return found, next, nil
}

// turnFailed reports whether the next assistant row is an API error.
func turnFailed(r *rowReader) bool {
	for {
		row, err := r.next()
		if err != nil && !errors.Is(err, errForm) {
			return false
		}
		if err == nil && row.kind == "assistant" && !row.sidechain {
			return row.apiError
		}
	}
}

// shortage is err if it tells of this process and not of the file: then nothing at all has been found out.
func shortage(err error) error {
	for _, own := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, own) {
			return err
		}
	}
	return nil
}
