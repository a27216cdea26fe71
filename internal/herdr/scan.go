package herdr

import "encoding/json"

// scanner reads a line of JSON once, from front to back, and copies nothing: encoding/json takes some thirty times as
// long for a list of a thousand agents. What is not asked for is passed over without judging it, but a line that is cut
// off or garbled never ends well. Anything wrong makes it bad, and from then on it is at the end.
type scanner struct {
	in  []byte
	at  int
	bad bool
}

// span is a string in the line, without its quotes.
type span struct {
	from, to int
	escaped  bool
}

// peek is the next byte that is no blank, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; c {
		case ' ', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) fail() { s.bad, s.at = true, len(s.in) }

// take passes over c, which must be next.
func (s *scanner) take(c byte) {
	if s.peek() != c || s.bad {
		s.fail()
		return
	}
	s.at++
}

// object calls each for every field, which must take the value. What is no object is passed over.
func (s *scanner) object(each func(key []byte)) {
	s.list('{', '}', func() {
		key := s.str()
		s.take(':')
		if !s.bad {
			each(s.in[key.from:key.to])
		}
	})
}

// array calls each for every element, which must take it. What is no array is passed over.
func (s *scanner) array(each func()) { s.list('[', ']', each) }

func (s *scanner) list(begin, end byte, each func()) {
	if s.peek() != begin {
		s.skip()
		return
	}
	s.at++
	if s.peek() == end {
		s.at++
		return
	}
	for !s.bad {
		each()
		if s.peek() != ',' {
			s.take(end)
			return
		}
		s.at++
	}
}

// str takes a string.
func (s *scanner) str() span {
	s.take('"')
	from, escaped := s.at, false
	for i := from; i < len(s.in); i++ {
		switch s.in[i] {
		case '"':
			s.at = i + 1
			return span{from, i, escaped}
		case '\\':
			escaped = true
			i++
		}
	}
	s.fail()
	return span{}
}

// text takes a string; anything else in its place is passed over and counts as "".
func (s *scanner) text() span {
	if s.peek() != '"' {
		s.skip()
		return span{}
	}
	return s.str()
}

// flag takes a true; anything else is false.
func (s *scanner) flag() bool {
	yes := s.peek() == 't'
	s.skip()
	return yes
}

// number takes a whole number that is not negative; anything else is none.
func (s *scanner) number() (n uint64, ok bool) {
	s.peek()
	from := s.at
	s.skip()
	for _, c := range s.in[from:s.at] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, s.at > from
}

// skip passes over a value.
func (s *scanner) skip() {
	for depth := 0; !s.bad; {
		switch s.peek() {
		case '"':
			s.str()
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				s.fail()
				return
			}
			s.at++
		case ',', ':':
			if depth == 0 {
				s.fail()
				return
			}
			s.at++
			continue
		case 0:
			s.fail()
			return
		default:
			s.literal()
		}
		if depth == 0 {
			return
		}
	}
}

// literal passes over a number, true, false or null.
func (s *scanner) literal() {
	from := s.at
	for ; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '-', c == '+', c == '.', c == 'E':
			continue
		}
		break
	}
	if s.at == from {
		s.fail()
	}
}

// whole reports that the line was one value to its end.
func (s *scanner) whole() bool { return s.peek() == 0 && s.at == len(s.in) && !s.bad }

// cut is the text of a span out of all, which is a copy of the line from the offset from on.
func (t span) cut(all string, from int) string {
	if t.to == 0 {
		return ""
	}
	raw := all[t.from-from : t.to-from]
	if !t.escaped {
		return raw
	}
	var plain string
	if json.Unmarshal([]byte(`"`+raw+`"`), &plain) != nil {
		return raw // what herdr cannot have meant is shown as it came
	}
	return plain
}
