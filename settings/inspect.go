package settings

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"
)

// A Report is what a settings file says about hooks.
type Report struct {
	Own      []Leaf    // our entries for the event; more than one is one too many
	Others   []string  // the user's hooks of the event: the command, or all of one that has none
	Problems []Problem // what makes the client drop hooks, in any event and whoever wrote it
	// DisableAllHooks is the file's own word on it: nil if it has none. A project's false beats a user's true.
	DisableAllHooks *bool
}

// A Leaf is an entry of ours.
type Leaf struct {
	Path         string // "hooks.Stop[0].hooks[1]"
	Line, Column int
	Command      string
	Wrong        []string // "timeout is missing, want 3600"; empty if the entry is right
}

// A Problem is something in a file that the client can read but will not take.
type Problem struct {
	Path         string
	Line, Column int
	Text         string // "timeout is a string, want a number"
	Drops        string // what the client then leaves out
	offset       int
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: %s (line %d, column %d)", p.Path, p.Text, p.Line, p.Column)
}

// Right tells whether the file holds one entry of ours for the event, with nothing wrong about it: what Add leaves as it is.
func (r *Report) Right() bool { return len(r.Own) == 1 && len(r.Own[0].Wrong) == 0 }

// What the client leaves out, as measured: a wrong type costs 2.1.197 every hook, later versions the entry.
const (
	dropsEntry = "the entry is dropped, and by Claude Code 2.1.197 every hook"
	dropsEvent = "the event's hooks are dropped"
	dropsFile  = "every hook of the file is dropped"
)

// Inspect reads b for an event. The report holds whatever could be made out, also beside an error, which is the [Refusal] that Add and
// Remove would give.
func Inspect(b []byte, e Event) (Report, error) {
	d, err := parse(b, e)
	if d == nil {
		return Report{}, err
	}
	r := Report{Others: d.others}
	at := cursor{body: d.body, line: 1, column: 1}
	for _, l := range d.own {
		line, column := at.move(l.span().start)
		r.Own = append(r.Own, Leaf{Path: e.leaf(l.group.index, l.index), Line: line, Column: column, Command: l.fields[commandField].Str, Wrong: l.wrong()})
	}
	if d.blank {
		return r, err
	}
	c := checker{report: &r}
	c.root(d.value)
	slices.SortStableFunc(r.Problems, func(a, b Problem) int { return cmp.Compare(a.offset, b.offset) })
	at = cursor{body: d.body, line: 1, column: 1}
	for i := range r.Problems {
		p := &r.Problems[i]
		p.Line, p.Column = at.move(p.offset)
	}
	return r, err
}

// A checker looks through every event for what the client's schema does not take.
type checker struct{ report *Report }

func (c *checker) root(root gjson.Result) {
	list(root, func(_ int, key, v gjson.Result) {
		switch {
		case key.Str == "disableAllHooks" && v.IsBool():
			off := v.Bool()
			c.report.DisableAllHooks = &off
		case key.Str == "disableAllHooks":
			c.note(v, key.Str, dropsFile, "%s, want true or false", kind(v))
		case key.Str == "hooks" && !v.IsObject():
			c.note(v, key.Str, dropsFile, "%s, want an object", kind(v))
		case key.Str == "hooks":
			list(v, func(_ int, event, groups gjson.Result) { c.event("hooks."+clip(event.Str), groups) })
		}
	})
}

func (c *checker) event(path string, groups gjson.Result) {
	if !groups.IsArray() {
		c.note(groups, path, dropsEvent, "%s, want an array", kind(groups))
		return
	}
	list(groups, func(i int, _, g gjson.Result) { c.group(fmt.Sprintf("%s[%d]", path, i), g) })
}

func (c *checker) group(path string, group gjson.Result) {
	if !group.IsObject() {
		c.note(group, path, dropsEntry, "%s, want an object", kind(group))
		return
	}
	found := false
	list(group, func(_ int, key, v gjson.Result) {
		switch {
		case key.Str == "matcher" && v.Type != gjson.String:
			c.note(v, path, dropsEntry, "matcher is %s, want a string", kind(v))
		case key.Str == "hooks" && !v.IsArray():
			found = true
			c.note(v, path, dropsEntry, "hooks is %s, want an array", kind(v))
		case key.Str == "hooks":
			found = true
			list(v, func(i int, _, l gjson.Result) { c.leaf(fmt.Sprintf("%s.hooks[%d]", path, i), l) })
		}
	})
	if !found {
		c.note(group, path, dropsEntry, "hooks is missing")
	}
}

// fieldKinds is what a hook's fields have to be, for those of which the type is known. It is no map, which would be made
// whenever the program starts.
var fieldKinds = [...]struct {
	name string
	fits func(gjson.Result) bool
	want string
}{
	{"type", isString, "a string"},
	{"command", isString, "a string"},
	{"prompt", isString, "a string"},
	{"url", isString, "a string"},
	{"if", isString, "a string"},
	{"shell", isString, "a string"},
	{"statusMessage", isString, "a string"},
	{"timeout", isNumber, "a number"},
	{"once", isBool, "true or false"},
	{"async", isBool, "true or false"},
	{"asyncRewake", isBool, "true or false"},
}

func isString(v gjson.Result) bool { return v.Type == gjson.String }
func isNumber(v gjson.Result) bool { return v.Type == gjson.Number }
func isBool(v gjson.Result) bool   { return v.IsBool() }

func (c *checker) leaf(path string, leaf gjson.Result) {
	if !leaf.IsObject() {
		c.note(leaf, path, dropsEntry, "%s, want an object", kind(leaf))
		return
	}
	var typ, command gjson.Result
	list(leaf, func(_ int, key, v gjson.Result) {
		switch key.Str {
		case "type":
			typ = v
		case "command":
			command = v
		}
		for _, f := range fieldKinds {
			if f.name == key.Str && !f.fits(v) {
				c.note(v, path, dropsEntry, "%s is %s, want %s", key.Str, kind(v), f.want)
			}
		}
	})
	switch {
	case !typ.Exists():
		c.note(leaf, path, dropsEntry, "type is missing")
	case typ.Str == "command" && !command.Exists():
		c.note(leaf, path, dropsEntry, "command is missing")
	}
}

func (c *checker) note(at gjson.Result, path, drops, format string, args ...any) {
	c.report.Problems = append(c.report.Problems, Problem{
		Path: path, Text: fmt.Sprintf(format, args...), Drops: drops, offset: at.Index,
	})
}
