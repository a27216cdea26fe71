package claude

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errForm says that a line is not one JSON object.
var errForm = errors.New("not a JSON object")

const (
	maxDepth  = 200 // of a row's values in each other
	maxPrefix = 64  // bytes of a string that are kept; nothing that is compared is longer
)

// rowReader reads rows, piece by piece: a row may be larger than the memory that it is given, and nothing is kept of it
// but what row has.
type rowReader struct {
	src   *bufio.Reader
	pos   int64 // offset in the file
	token []byte

	row    row
	path   []byte // keys from the row's top to the value at hand, "[]" for an element
	prefix []byte // the last string, or its beginning
	tail   []byte // the end of what was read of it, in which the token may have begun
	hit    bool   // the token stood in it
	block  struct {
		kind string
		hit  bool
	}
}

func newRowReader(f io.ReaderAt, from, to int64, token []byte) *rowReader {
	return &rowReader{src: bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 64<<10), pos: from, token: token}
}

// next reads the row that begins here and goes to the next line. The error is errForm for a line that is none, io.EOF at
// the end, or a read error.
func (r *rowReader) next() (row, error) {
	if _, err := r.src.Peek(1); err != nil {
		return row{}, err
	}
	r.row, r.path = row{}, r.path[:0]
	err := r.expect('{')
	if err == nil {
		err = r.object(1)
	}
	if err == nil {
		err = r.lineEnd()
	}
	if err != nil && !errors.Is(err, errForm) {
		return row{}, err
	}
	if skip := r.skipLine(); skip != nil {
		return row{}, skip
	}
	return r.row, err
}

// skipLine goes to the beginning of the next line, or to the end of the file.
func (r *rowReader) skipLine() error {
	for {
		part, err := r.src.ReadSlice('\n')
		r.pos += int64(len(part))
		switch {
		case err == nil, err == io.EOF:
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// lineEnd checks that nothing more stands on the line. The last line may lack its end.
func (r *rowReader) lineEnd() error {
	for {
		b, err := r.src.Peek(1)
		switch {
		case err == io.EOF, err == nil && b[0] == '\n':
			return nil
		case err != nil:
			return err
		case !isBlank(b[0]):
			return errForm
		}
		r.skip(1)
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// peek is the next byte that is not a blank. The end of the file in the middle of a row is errForm.
func (r *rowReader) peek() (byte, error) {
	for {
		b, err := r.src.Peek(1)
		if err != nil {
			return 0, orForm(err)
		}
		if !isBlank(b[0]) {
			return b[0], nil
		}
		r.skip(1)
	}
}

func (r *rowReader) skip(n int) {
	r.src.Discard(n) // of bytes that were peeked at: cannot fail
	r.pos += int64(n)
}

func (r *rowReader) expect(want byte) error {
	c, err := r.peek()
	if err != nil {
		return err
	}
	if c != want {
		return errForm
	}
	r.skip(1)
	return nil
}

// value reads what stands at r.path.
func (r *rowReader) value(depth int) error {
	c, err := r.peek()
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return errForm
	case c == '{':
		r.skip(1)
		return r.object(depth + 1)
	case c == '[':
		r.skip(1)
		return r.array(depth + 1)
	case c == '"':
		if err := r.str(); err != nil {
			return err
		}
		r.sawString()
		return nil
	}
	if err := r.literal(); err != nil {
		return err
	}
	r.sawLiteral()
	return nil
}

func (r *rowReader) object(depth int) error {
	above := len(r.path)
	for first := true; ; first = false {
		c, err := r.peek()
		if err != nil {
			return err
		}
		if first && c == '}' {
			break
		}
		if err := r.member(depth, above); err != nil {
			return err
		}
		if c, err = r.peek(); err != nil {
			return err
		}
		if c == '}' {
			break
		}
		if err := r.expect(','); err != nil {
			return err
		}
	}
	r.skip(1)
	r.path = r.path[:above]
	r.sawObject()
	return nil
}

func (r *rowReader) member(depth, above int) error {
	if _, err := r.peek(); err != nil {
		return err
	}
	if err := r.str(); err != nil {
		return err
	}
	r.path = r.path[:above]
	if above > 0 {
		r.path = append(r.path, '.')
	}
	r.path = append(r.path, r.prefix...)
	if err := r.expect(':'); err != nil {
		return err
	}
	return r.value(depth)
}

func (r *rowReader) array(depth int) error {
	above := len(r.path)
	r.path = append(r.path, "[]"...)
	for first := true; ; first = false {
		c, err := r.peek()
		if err != nil {
			return err
		}
		if first && c == ']' {
			break
		}
		if err := r.value(depth); err != nil {
			return err
		}
		if c, err = r.peek(); err != nil {
			return err
		}
		if c == ']' {
			break
		}
		if err := r.expect(','); err != nil {
			return err
		}
	}
	r.skip(1)
	r.path = r.path[:above]
	return nil
}

// str reads a string into prefix and hit. It is taken as it is written: nothing that is looked for needs an escape.
func (r *rowReader) str() error {
	if err := r.expect('"'); err != nil {
		return err
	}
	r.prefix, r.tail, r.hit = r.prefix[:0], r.tail[:0], false
	for {
		if _, err := r.src.Peek(1); err != nil {
			return orForm(err)
		}
		window, _ := r.src.Peek(r.src.Buffered())
		end := bytes.IndexAny(window, "\"\\\n")
		if end < 0 {
			r.keep(window)
			r.search(window)
			r.skip(len(window))
			continue
		}
		r.keep(window[:end])
		r.search(window[:end])
		stop := window[end]
		r.skip(end)
		if stop == '\n' {
			return errForm
		}
		r.skip(1)
		if stop == '"' {
			return nil
		}
		if err := r.escaped(); err != nil {
			return err
		}
	}
}

// escaped passes over the byte behind a backslash. The four digits that may follow are as good as plain text.
func (r *rowReader) escaped() error {
	b, err := r.src.Peek(1)
	if err != nil {
		return orForm(err)
	}
	if b[0] == '\n' {
		return errForm
	}
	r.tail = r.tail[:0] // no token has a backslash in it
	r.keep([]byte{'\\', b[0]})
	r.skip(1)
	return nil
}

// keep adds to the beginning of a string that is kept.
func (r *rowReader) keep(part []byte) {
	if room := maxPrefix - len(r.prefix); room > 0 {
		r.prefix = append(r.prefix, part[:min(room, len(part))]...)
	}
}

// search looks for the token in a part of a string, and over the seam with the parts before.
func (r *rowReader) search(part []byte) {
	if len(r.token) == 0 || r.hit {
		return
	}
	overlap := len(r.token) - 1
	r.tail = append(r.tail, part[:min(overlap, len(part))]...)
	r.hit = bytes.Contains(r.tail, r.token) || bytes.Contains(part, r.token)
	if len(part) >= overlap {
		r.tail = append(r.tail[:0], part[len(part)-overlap:]...)
	} else if extra := len(r.tail) - overlap; extra > 0 {
		r.tail = append(r.tail[:0], r.tail[extra:]...)
	}
}

// literal reads a number, true, false or null into prefix.
func (r *rowReader) literal() error {
	r.prefix = r.prefix[:0]
	for {
		b, err := r.src.Peek(1)
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF || bytes.IndexByte([]byte(",]} \t\r\n"), b[0]) >= 0 {
			break
		}
		if len(r.prefix) == maxPrefix || bytes.IndexByte([]byte("{[\":\\"), b[0]) >= 0 {
			return errForm
		}
		r.prefix = append(r.prefix, b[0])
		r.skip(1)
	}
	if len(r.prefix) == 0 {
		return errForm
	}
	return nil
}

func orForm(err error) error {
	if err == io.EOF {
		return errForm
	}
	return err
}
