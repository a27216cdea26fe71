package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Nothing above the last lines of a pane is looked at. The caps are several screens of a large terminal, with escape
// sequences, and keep megabytes of anything else cheap.
const (
	textCap = 1 << 20
	lineCap = 2000
	linesUp = 400
)

// pane is what a terminal shows, from the top, without escape sequences, control characters and trailing blanks.
type pane []string

// read makes a pane of untrusted text: any bytes, with or without escape sequences.
func read(text string) pane {
	if len(text) > textCap {
		text = text[len(text)-textCap:]
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) > linesUp {
		lines = lines[len(lines)-linesUp:]
	}
	s := make(pane, len(lines))
	for i, line := range lines {
		s[i] = cleanLine(line)
	}
	for len(s) > 0 && s[len(s)-1] == "" {
		s = s[:len(s)-1]
	}
	return s
}

// cleanLine is a line as a terminal shows it: plain characters, any blank a space, nothing after the last character.
func cleanLine(line string) string {
	var b strings.Builder
	for n := 0; line != "" && n < lineCap; n++ {
		if line[0] == 0x1b {
			line = line[escape(line):]
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		line = line[size:]
		switch {
		case r == '\t' || unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
		default:
			b.WriteRune(r) // an invalid byte became U+FFFD
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// escape is the length of the escape sequence that line begins with. An unfinished one reaches to the line's end.
func escape(line string) int {
	if len(line) < 2 {
		return len(line)
	}
	switch line[1] {
	case '[': // CSI: parameters, then a letter
		for i := 2; i < len(line); i++ {
			if line[i] >= 0x40 && line[i] <= 0x7e {
				return i + 1
			}
		}
		return len(line)
	case ']', 'P', '_', '^', 'X': // a string, up to BEL or the next escape
		for i := 2; i < len(line); i++ {
			if line[i] == 0x07 {
				return i + 1
			}
			if line[i] == 0x1b {
				if i+1 < len(line) && line[i+1] == '\\' {
					return i + 2
				}
				return i
			}
		}
		return len(line)
	case '(', ')', '#': // character sets
		return min(3, len(line))
	}
	return 2
}

// indent is how many columns stand free before the text.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// width is how many columns a line takes.
func width(line string) int {
	n := 0
	for _, r := range line {
		n += columnsOf(r)
	}
	return n
}

// columnsOf is how many cells a character takes, as terminals count them: 2 for East Asian and pictures.
func columnsOf(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case r < 0x1100:
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// firstColumns is what stands in the first n columns of a line.
func firstColumns(line string, n int) string {
	for i, r := range line {
		if n -= columnsOf(r); n < 0 {
			return line[:i]
		}
	}
	return line
}

// isRule says whether a line is a rule from the left edge, of that character.
func isRule(line string, of rune) bool {
	return utf8.RuneCountInString(line) >= minRule && strings.Trim(line, string(of)) == ""
}

// minRule is the narrowest terminal that is understood.
const minRule = 12

// capped is at most n characters of s.
func capped(s string, n int) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// paragraph is the last run of non-blank lines in lines, and where it begins.
func paragraph(lines []string) (start int, para []string) {
	end := len(lines)
	for end > 0 && lines[end-1] == "" {
		end--
	}
	start = end
	for start > 0 && lines[start-1] != "" {
		start--
	}
	return start, lines[start:end]
}

// joined is a paragraph as one line, as it was before the terminal wrapped it.
func joined(para []string) string {
	parts := make([]string, len(para))
	for i, line := range para {
		parts[i] = strings.TrimSpace(line)
	}
	return strings.Join(parts, " ")
}
