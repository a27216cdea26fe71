// Package receipt looks for the proof that a model was told something: a random token in the file that its client keeps the
// session in, one JSON object a line. What a row proves is the client's format and is said by others (internal/claude,
// internal/pi); this package finds the rows, in little memory and without waiting, and says what it could not look at. It
// writes nothing, so a crash leaves nothing.
package receipt

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

// Receipt is what a session's file shows of a delivery's token.
type Receipt int

// In the order of what they prove. NoTranscript: nothing to look at, it was rotated, or what it shows of the token cannot
// be read. It proves neither that the model has the text nor that it has not.
const (
	NoTranscript Receipt = iota
	Absent
	Enqueued    // only in the client's own queue
	TurnStarted // in a user row, or given to a running turn: the model has it
	TurnFailed  // the same, and the turn ended in an error
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

// Finding is what a row, or a file, shows of a token, in the order in which one outweighs another.
type Finding int

// What a row shows.
const (
	Nothing Finding = iota
	Strange         // in a row of a kind that is not known
	Queued          // in the client's own queue
	Unclear         // in a line that cannot be read, or where it cannot be looked
	Failed          // the model has it, and its turn died
	Started         // the model has it
)

// Turn is what a row says of how the turn that runs ends.
type Turn int

// How a turn ends.
const (
	Goes   Turn = iota // the row says nothing of it
	Worked             // the model has answered
	Fails              // it could not, and may be asked once more
	Dies               // it could not
	Over               // another turn begins
)

// A Judge is a row of one client's format.
type Judge interface {
	Row
	// Finding judges a row that holds the token somewhere.
	Finding() Finding
	// Turn is asked of the rows behind one that proves that the model was told.
	Turn() Turn
}

// A Format makes an empty row.
type Format func() Judge

// Find looks for token in the file at path behind size, and in files of the same directory that were written after since:
// a client may go on in a new one. Memory is bounded (16 MiB at most, whatever a line's length).
//
// Only a row that is known to show so proves that the model has the text. That it has not is said only if everything
// could be looked at and understood: a token in a line that does not parse, or in a row of an unknown kind with no row
// beside it that shows the queue, is NoTranscript. An error means that this process could not look (it is out of
// descriptors or memory): ask again.
func Find(path string, size int64, since time.Time, token string, format Format) (Receipt, error) {
	if token == "" || path == "" {
		return NoTranscript, nil
	}
	s := search{since, []byte(token), format}
	found, noted, err := s.noted(path, size)
	if err == nil && found < Failed {
		var elsewhere Finding
		elsewhere, err = s.elsewhere(path, noted)
		found = max(found, elsewhere)
	}
	if err != nil {
		return NoTranscript, err
	}
	switch found {
	case Started:
		return TurnStarted, nil
	case Failed:
		return TurnFailed, nil
	case Queued:
		return Enqueued, nil
	case Nothing:
		return Absent, nil
	}
	return NoTranscript, nil
}

// search is one run of Find.
type search struct {
	since  time.Time
	token  []byte
	format Format
}

// noted looks into the transcript that was noted with the delivery. One that is shorter now is another.
func (s *search) noted(path string, size int64) (Finding, os.FileInfo, error) {
	f, now, err := Open(path)
	if err != nil {
		return Unclear, nil, shortage(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || now < size {
		return Unclear, fi, shortage(err)
	}
	found, err := s.in(f, max(0, size), now)
	return found, fi, err
}

// elsewhere looks into the other transcripts of the directory.
func (s *search) elsewhere(path string, noted os.FileInfo) (Finding, error) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Unclear, shortage(err)
	}
	best := Nothing
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".jsonl" {
			continue
		}
		other := filepath.Join(dir, e.Name())
		fi, err := os.Stat(other)
		if err != nil || !fi.Mode().IsRegular() || os.SameFile(fi, noted) || fi.ModTime().Before(s.since.Add(-slack)) {
			continue
		}
		found, err := s.fresh(other)
		if err != nil {
			return Unclear, err
		}
		if best = max(best, found); best >= Failed {
			break
		}
	}
	return best, nil
}

// fresh looks into the part of a transcript that was written after since.
func (s *search) fresh(path string) (Finding, error) {
	f, size, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Nothing, nil
	}
	if err != nil {
		return Unclear, shortage(err)
	}
	defer f.Close()
	return s.in(f, freshFrom(f, size, s.since), size)
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
	lines := NewLines(f, from, to, nil)
	err := lines.Skip()
	for err == nil || errors.Is(err, ErrForm) {
		var row stamped
		if err = lines.Next(&row); err == nil && row.ok {
			return row.at, true
		}
	}
	return time.Time{}, false
}

// stamped is the time of a row, which stands at the same place in every format that is read here.
type stamped struct {
	at time.Time
	ok bool
}

func (s *stamped) String(path, text []byte, _ bool) {
	if string(path) != "timestamp" {
		return
	}
	at, err := time.Parse(time.RFC3339, string(text))
	s.at, s.ok = at, err == nil
}

func (*stamped) Literal(path, text []byte) {}
func (*stamped) End(path []byte)           {}

// chunk is how much is searched at once.
const chunk = 256 << 10

// in looks for the token between two offsets: as bytes first, then in the rows that hold it.
func (s *search) in(f io.ReaderAt, from, to int64) (Finding, error) {
	buf := make([]byte, chunk)
	best, kept := Nothing, 0 // kept is how much of the last window is still in buf: the token may have begun in it
	begin := from            // of the line at hand, or of one before it
	for at := from; at < to; {
		n, err := f.ReadAt(buf[kept:min(chunk, int64(kept)+to-at)], at)
		if n == 0 && err != nil {
			return max(best, Unclear), shortage(err)
		}
		window := buf[:kept+n]
		hit := bytes.Index(window, s.token)
		if hit < 0 {
			at += int64(n)
			kept = copy(buf, window[len(window)-min(len(window), len(s.token)-1):])
			continue
		}
		line, err := lineStart(f, begin, at-int64(kept)+int64(hit))
		if err != nil {
			return max(best, Unclear), shortage(err)
		}
		found, next, err := s.at(f, line, to)
		if best = max(best, found); err != nil || best >= Failed {
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

// at judges the row that begins at an offset and holds the token, and says where the next one begins.
func (s *search) at(f io.ReaderAt, line, to int64) (Finding, int64, error) {
	lines, row := NewLines(f, line, to, s.token), s.format()
	err := lines.Next(row)
	if errors.Is(err, ErrForm) {
		return Unclear, lines.Offset(), nil
	}
	if err != nil {
		return Unclear, to, shortage(err)
	}
	found, next := row.Finding(), lines.Offset()
	if found == Started && s.died(lines) {
		found = Failed
	}
	return found, next, nil
}

// died reports whether the turn that runs at these lines ended in an error.
func (s *search) died(lines *Lines) bool {
	died := false
	for {
		row := s.format()
		err := lines.Next(row)
		if errors.Is(err, ErrForm) {
			continue
		}
		if err != nil {
			return died
		}
		switch row.Turn() {
		case Worked:
			return false
		case Dies:
			return true
		case Fails:
			died = true
		case Over:
			return died
		}
	}
}

// Open opens a file for reading if it is a regular one; a FIFO in its place does not make it wait.
func Open(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: unix.EINVAL}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, fi.Size(), nil
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
