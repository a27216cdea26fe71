package receipt

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrForm says that a line is not one JSON object.
var ErrForm = errors.New("not a JSON object")

const (
	maxDepth  = 200 // of a row's values in each other
	maxPrefix = 64  // bytes of a string that are kept; nothing that is compared is longer
)

// Row takes what is wanted of one line. Path are the keys from the row's top to the value, with dots between them and
// "[]" for an element; what is handed over is not to be kept.
type Row interface {
	// String has the beginning of a string as it is written, and whether the token stands in the whole of it.
	String(path, text []byte, hit bool)
	// Literal is a number, true, false or null.
	Literal(path, text []byte)
	// End says that the object at path has ended: its keys come in any order.
	End(path []byte)
}

// Lines reads a file of JSON lines, piece by piece: a line may be larger than the memory that it is given, and nothing is
// kept of it but what a Row keeps.
type Lines struct {
	src   *bufio.Reader
	pos   int64 // offset in the file
	token []byte

	row    Row
	path   []byte
	prefix []byte // the last string, or its beginning
	tail   []byte // the end of what was read of it, in which the token may have begun
	hit    bool   // the token stood in it
}

// NewLines reads the lines between two offsets, of which the first is where one begins; nil looks for no token.
func NewLines(f io.ReaderAt, from, to int64, token []byte) *Lines {
	return &Lines{src: bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 64<<10), pos: from, token: token}
}

// Offset is where the next line begins.
func (r *Lines) Offset() int64 { return r.pos }

// Next reads the row that begins here and goes to the next line. The error is ErrForm for a line that is none, of which
// row may have got a part, io.EOF at the end, or a read error.
func (r *Lines) Next(row Row) error {
	if _, err := r.src.Peek(1); err != nil {
		return err
	}
	r.row, r.path = row, r.path[:0]
	err := r.expect('{')
	if err == nil {
		err = r.object(1)
	}
	if err == nil {
		err = r.lineEnd()
	}
	if err != nil && !errors.Is(err, ErrForm) {
		return err
	}
	if skip := r.Skip(); skip != nil {
		return skip
	}
	return err
}

// Skip goes to the beginning of the next line, or to the end of the file.
func (r *Lines) Skip() error {
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
func (r *Lines) lineEnd() error {
	for {
		b, err := r.src.Peek(1)
		switch {
		case err == io.EOF, err == nil && b[0] == '\n':
			return nil
		case err != nil:
			return err
		case !isBlank(b[0]):
			return ErrForm
		}
		r.skip(1)
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// peek is the next byte that is not a blank. The end of the file in the middle of a row is ErrForm.
func (r *Lines) peek() (byte, error) {
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

func (r *Lines) skip(n int) {
	r.src.Discard(n) // of bytes that were peeked at: cannot fail
	r.pos += int64(n)
}

func (r *Lines) expect(want byte) error {
	c, err := r.peek()
	if err != nil {
		return err
	}
	if c != want {
		return ErrForm
	}
	r.skip(1)
	return nil
}

// value reads what stands at path.
func (r *Lines) value(depth int) error {
	c, err := r.peek()
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return ErrForm
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
		r.row.String(r.path, r.prefix, r.hit)
		return nil
	}
	if err := r.literal(); err != nil {
		return err
	}
	r.row.Literal(r.path, r.prefix)
	return nil
}

func (r *Lines) object(depth int) error {
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
	r.row.End(r.path)
	return nil
}

func (r *Lines) member(depth, above int) error {
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

func (r *Lines) array(depth int) error {
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
func (r *Lines) str() error {
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
			return ErrForm
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
func (r *Lines) escaped() error {
	b, err := r.src.Peek(1)
	if err != nil {
		return orForm(err)
	}
	if b[0] == '\n' {
		return ErrForm
	}
	r.tail = r.tail[:0] // no token has a backslash in it
	r.keep([]byte{'\\', b[0]})
	r.skip(1)
	return nil
}

// keep adds to the beginning of a string that is kept.
func (r *Lines) keep(part []byte) {
	if room := maxPrefix - len(r.prefix); room > 0 {
		r.prefix = append(r.prefix, part[:min(room, len(part))]...)
	}
}

// search looks for the token in a part of a string, and over the seam with the parts before.
func (r *Lines) search(part []byte) {
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
func (r *Lines) literal() error {
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
			return ErrForm
		}
		r.prefix = append(r.prefix, b[0])
		r.skip(1)
	}
	if len(r.prefix) == 0 {
		return ErrForm
	}
	return nil
}

func orForm(err error) error {
	if err == io.EOF {
		return ErrForm
	}
	return err
}
