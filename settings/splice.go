package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// A splice replaces a stretch of the body.
type splice struct {
	start, end int
	text       string
}

// apply makes the edited file. Splices may come in any order and do not overlap.
func (d *doc) apply(splices []splice) []byte {
	slices.SortFunc(splices, func(a, b splice) int { return cmp.Compare(a.start, b.start) })
	size := len(d.bom) + len(d.body)
	for _, s := range splices {
		size += len(s.text)
	}
	out := make([]byte, 0, size)
	out = append(out, d.bom...)
	at := 0
	for _, s := range splices {
		out = append(out, d.body[at:s.start]...)
		out = append(out, s.text...)
		at = s.end
	}
	return append(out, d.body[at:]...)
}

// insertion puts a new group at the end of the event's, or as much around it as is missing at the end of what is there.
func (d *doc) insertion() splice {
	st := d.style()
	switch {
	case d.blank:
		end := ""
		if d.bom+d.body == "" || strings.HasSuffix(d.body, "\n") {
			end = st.newline
		}
		return splice{0, len(d.body), st.render(d.event.newValue(string(d.event), "hooks"), "") + end}
	case d.hooksMember < 0:
		return d.appendTo(d.root, `"hooks":`+d.event.newValue(string(d.event)), st)
	case d.groupsMember < 0:
		return d.appendTo(d.hooks, `"`+string(d.event)+`":[`+d.event.newValue()+`]`, st)
	}
	return d.appendTo(d.groups, d.event.newValue(), st)
}

// appendTo adds an item, compact JSON, behind the last one of a box, on a line of its own if the last one has one.
func (d *doc) appendTo(b box, item string, st style) splice {
	if len(b.items) == 0 {
		if !st.lines {
			return splice{b.open + 1, b.close, st.render(item, "")}
		}
		outer := d.indent(b.open)
		inner := outer + st.unit
		return splice{b.open + 1, b.close, st.newline + inner + st.render(item, inner) + st.newline + outer}
	}
	last := b.items[len(b.items)-1]
	indent := d.indent(last.start)
	separator := "," + st.space
	if st.lines {
		separator = ", "
		if d.startsLine(last.start) {
			separator = "," + st.newline + indent
		}
	}
	return splice{last.end, last.end, separator + st.render(item, indent)}
}

// repair makes an entry of ours right in place: wrong values are replaced, missing ones added behind the last.
func (d *doc) repair(l leaf) []splice {
	var splices []splice
	var missing []string
	for i, w := range want() {
		v := l.fields[i]
		switch {
		case right(i, v):
		case v.Exists():
			splices = append(splices, splice{v.Index, v.Index + len(v.Raw), w.raw})
		default:
			missing = append(missing, `"`+w.name+`":`+w.raw)
		}
	}
	if len(missing) == 0 {
		return splices
	}
	st := d.style()
	last := l.members.items[len(l.members.items)-1]
	separator := "," + st.space
	if d.startsLine(last.start) {
		separator = "," + st.newline + d.indent(last.start)
	}
	var added strings.Builder
	for _, m := range missing {
		added.WriteString(separator + st.oneLine(m))
	}
	return append(splices, splice{last.end, last.end, added.String()})
}

// cut takes leaves out, and with them what that leaves empty: the group, the event, hooks. What was empty before stays.
func (d *doc) cut(leaves []leaf) []splice {
	if len(leaves) == 0 {
		return nil
	}
	gone := make(map[*group][]bool)
	for _, l := range leaves {
		if gone[l.group] == nil {
			gone[l.group] = make([]bool, len(l.group.hooks.items))
		}
		gone[l.group][l.index] = true
	}
	var splices []splice
	goneGroups := make([]bool, len(d.groups.items))
	for g, leaves := range gone {
		if g.only && all(leaves) {
			goneGroups[g.index] = true
		} else {
			splices = append(splices, g.hooks.without(leaves)...)
		}
	}
	if !all(goneGroups) {
		return append(splices, d.groups.without(goneGroups)...)
	}
	if len(d.hooks.items) > 1 {
		return d.hooks.without(only(d.groupsMember, len(d.hooks.items)))
	}
	return d.root.without(only(d.hooksMember, len(d.root.items)))
}

func all(flags []bool) bool { return !slices.Contains(flags, false) }

func only(i, of int) []bool {
	flags := make([]bool, of)
	flags[i] = true
	return flags
}

// without takes items out of a box, each with the comma and the white space before it, or behind it if it is the first.
// Taking out one by one, from the last to the first, comes to the same bytes.
func (b box) without(gone []bool) []splice {
	if all(gone) {
		return []splice{{b.open + 1, b.close, ""}}
	}
	var splices []splice
	for i := 0; i < len(gone); i++ {
		if !gone[i] {
			continue
		}
		first := i
		for i+1 < len(gone) && gone[i+1] {
			i++
		}
		if first == 0 {
			splices = append(splices, splice{b.items[0].start, b.items[i+1].start, ""})
		} else {
			splices = append(splices, splice{b.items[first-1].end, b.items[i].end, ""})
		}
	}
	return splices
}

// A style is how a file is laid out, as far as what we insert has to follow it.
type style struct {
	lines   bool   // more than one line, or nothing in it yet: what is inserted gets lines of its own
	newline string // "\n" or "\r\n"
	unit    string // one step of indentation
	space   string // behind a comma or colon on one line: " " or ""
}

func (d *doc) style() style {
	st := style{newline: "\n", unit: "  ", space: " ", lines: true}
	first := strings.IndexByte(d.body, '\n')
	if first > 0 && d.body[first-1] == '\r' {
		st.newline = "\r\n"
	}
	if d.blank || len(d.root.items) == 0 {
		return st
	}
	member := d.root.items[0]
	if d.startsLine(member.start) {
		st.unit = strings.TrimPrefix(d.indent(member.start), d.indent(d.root.open))
	}
	// A newline at the end alone makes no second line.
	st.lines = first >= 0 && first < len(d.body)-1
	if !st.lines {
		key := member.start + keyLength(d.body[member.start:])
		colon := key + strings.IndexByte(d.body[key:], ':')
		if d.body[colon+1] != ' ' {
			st.space = ""
		}
	}
	return st
}

// keyLength measures the string that s begins with.
func keyLength(s string) int { return len(gjson.Parse(s).Raw) }

// render lays out a compact value or member: on lines, each but the first behind indent, or on one.
func (st style) render(compact, indent string) string {
	if !st.lines {
		return st.oneLine(compact)
	}
	// json.Indent wants a value; a member becomes one with its key taken off.
	key, value := "", compact
	if compact[0] == '"' {
		key = compact[:keyLength(compact)] + ": "
		value = compact[keyLength(compact)+1:]
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(value), indent, st.unit); err != nil {
		panic("settings: indent: " + err.Error())
	}
	return key + strings.ReplaceAll(b.String(), "\n", st.newline)
}

// oneLine gives compact JSON the file's space behind colons and commas.
func (st style) oneLine(compact string) string {
	if st.space == "" {
		return compact
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		b.WriteByte(c)
		switch {
		case quoted && c == '\\':
			i++
			b.WriteByte(compact[i])
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// indent is the white space that the line of an offset begins with.
func (d *doc) indent(offset int) string {
	line := d.body[strings.LastIndexByte(d.body[:offset], '\n')+1 : offset]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// startsLine tells whether only white space stands before an offset on its line, and a line above it.
func (d *doc) startsLine(offset int) bool {
	start := strings.LastIndexByte(d.body[:offset], '\n')
	return start >= 0 && strings.Trim(d.body[start+1:offset], " \t\r") == ""
}
