package settings

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// A span is a stretch of the body, in bytes.
type span struct{ start, end int }

// A box is an object or array as a splice sees it: its brackets, and where its items stand (a member with its key).
type box struct {
	open, close int
	items       []span
}

// A group is an element of the event's array with an entry of ours in it.
type group struct {
	index int
	hooks box
	only  bool // there is nothing in it but hooks
}

// A leaf is an entry of ours: an element of a group's hooks.
type leaf struct {
	group   *group
	index   int
	value   gjson.Result
	members box
	fields  [fieldCount]gjson.Result // as want has them; not existing where missing
}

// A doc is a settings file, taken apart as far as one event's hooks. Offsets count from behind the byte order mark.
type doc struct {
	event Event
	bom   string
	body  string
	blank bool // nothing but white space, which the client takes for an empty object
	value gjson.Result

	root, hooks, groups       box
	hooksMember, groupsMember int // index of the member that holds it, -1 if there is none
	own                       []leaf
	others                    []string // the user's hooks of the event: the command, or all of one that has none
}

const byteOrderMark = "\xef\xbb\xbf"

// parse takes b apart, or says why it cannot be sure what is ours in it: this is all that gjson would take on trust. With
// the error comes the doc as far as it got, if the file is JSON at all.
func parse(b []byte, e Event) (*doc, error) {
	d := newDoc(b, e)
	if !d.blank {
		if r := checkJSON(b[len(d.bom):], d.body); r != nil {
			return nil, r
		}
	}
	return d, d.read()
}

func newDoc(b []byte, e Event) *doc {
	d := &doc{event: e, hooksMember: -1, groupsMember: -1}
	body, marked := bytes.CutPrefix(b, []byte(byteOrderMark))
	if marked {
		d.bom = byteOrderMark
	}
	d.body = string(body)
	d.blank = strings.Trim(d.body, " \t\r\n") == ""
	return d
}

// read goes down to the event's hooks in a body that is blank or valid JSON.
func (d *doc) read() error {
	if d.blank {
		return nil
	}
	d.value = gjson.Parse(d.body)
	// gjson leaves what follows the value in its Raw.
	d.value.Raw = strings.TrimRight(d.value.Raw, " \t\r\n")
	if !d.value.IsObject() {
		return refuse(d.body, d.value.Index, "the file holds %s, want an object", kind(d.value))
	}
	hooks, err := d.member(&d.root, &d.hooksMember, d.value, "hooks", "hooks")
	if err != nil || d.hooksMember < 0 {
		return err
	}
	if !hooks.IsObject() {
		return refuse(d.body, hooks.Index, "hooks is %s, want an object", kind(hooks))
	}
	groups, err := d.member(&d.hooks, &d.groupsMember, hooks, string(d.event), d.event.path())
	if err != nil || d.groupsMember < 0 {
		return err
	}
	if !groups.IsArray() {
		return refuse(d.body, groups.Index, "%s is %s, want an array", d.event.path(), kind(groups))
	}
	return d.readGroups(groups)
}

// member lists an object's members into b and returns the one of that name, whose index goes to at.
func (d *doc) member(b *box, at *int, object gjson.Result, name, path string) (found gjson.Result, err error) {
	*at = -1
	*b = list(object, func(i int, key, value gjson.Result) {
		switch {
		case key.Str != name:
		case *at >= 0:
			err = d.twice(key, path)
		default:
			*at, found = i, value
		}
	})
	return found, err
}

// twice refuses a key that stands twice where we look: the client takes the last, an editor may take the first.
func (d *doc) twice(key gjson.Result, path string) error {
	return refuse(d.body, key.Index, "%s is there twice", path)
}

func (d *doc) readGroups(groups gjson.Result) (err error) {
	d.groups = list(groups, func(i int, _, value gjson.Result) {
		if err == nil {
			err = d.readGroup(i, value)
		}
	})
	return err
}

func (d *doc) readGroup(index int, value gjson.Result) (err error) {
	if !value.IsObject() {
		return refuse(d.body, value.Index, "%s[%d] is %s, want an object", d.event.path(), index, kind(value))
	}
	only := true
	var hooks gjson.Result
	value.ForEach(func(key, v gjson.Result) bool {
		switch {
		case key.Str == "hooks" && hooks.Exists():
			err = d.twice(key, fmt.Sprintf("%s[%d].hooks", d.event.path(), index))
		case key.Str == "hooks":
			hooks = v
		case key.Str == "matcher" && v.Raw == `""`: // the client's own menu writes it; it says nothing
		default:
			only = false
		}
		return true
	})
	if err != nil || !hooks.Exists() {
		return err
	}
	if !hooks.IsArray() {
		return refuse(d.body, hooks.Index, "%s[%d].hooks is %s, want an array", d.event.path(), index, kind(hooks))
	}
	before, i := len(d.own), 0
	hooks.ForEach(func(_, v gjson.Result) bool {
		err = d.readLeaf(index, i, v)
		i++
		return err == nil
	})
	if len(d.own) > before {
		g := &group{index: index, only: only, hooks: list(hooks, func(int, gjson.Result, gjson.Result) {})}
		for i := range d.own[before:] {
			d.own[before+i].group = g
		}
	}
	return err
}

func (d *doc) readLeaf(group, index int, value gjson.Result) error {
	if !value.IsObject() {
		return refuse(d.body, value.Index, "%s is %s, want an object", d.event.leaf(group, index), kind(value))
	}
	var command, second gjson.Result
	value.ForEach(func(key, v gjson.Result) bool {
		switch {
		case key.Str != "command":
		case command.Exists():
			second = key
		default:
			command = v
		}
		return true
	})
	switch {
	case second.Exists():
		return d.twice(second, d.event.leaf(group, index)+".command")
	case !command.Exists():
		d.others = append(d.others, clip(value.Raw))
		return nil
	case command.Type != gjson.String:
		return refuse(d.body, command.Index, "%s.command is %s, want a string", d.event.leaf(group, index), kind(command))
	case !isOwn(command.Str):
		d.others = append(d.others, command.Str)
		return nil
	}
	return d.readOwn(group, index, value)
}

// readOwn notes an entry of ours, with the fields that may have to be mended.
func (d *doc) readOwn(group, index int, value gjson.Result) (err error) {
	l := leaf{index: index, value: value}
	l.members = list(value, func(_ int, key, v gjson.Result) {
		f := fieldIndex(key.Str)
		switch {
		case f < 0:
		case l.fields[f].Exists():
			err = d.twice(key, d.event.leaf(group, index)+"."+key.Str)
		default:
			l.fields[f] = v
		}
	})
	d.own = append(d.own, l)
	return err
}

func (e Event) path() string { return "hooks." + string(e) }

func (e Event) leaf(group, index int) string {
	return fmt.Sprintf("%s[%d].hooks[%d]", e.path(), group, index)
}

func (l *leaf) span() span { return extent(l.value) }

// list walks the items of an object or array, in one pass over it.
func list(value gjson.Result, visit func(i int, key, value gjson.Result)) box {
	b := box{open: value.Index, close: value.Index + len(value.Raw) - 1}
	value.ForEach(func(k, v gjson.Result) bool {
		s := extent(v)
		if k.Type == gjson.String {
			s.start = k.Index
		}
		b.items = append(b.items, s)
		visit(len(b.items)-1, k, v)
		return true
	})
	return b
}

func extent(v gjson.Result) span { return span{v.Index, v.Index + len(v.Raw)} }

// kind names a value's type for a message.
func kind(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "an array"
	case v.Type == gjson.String:
		return "a string"
	case v.Type == gjson.Number:
		return "a number"
	case v.Type == gjson.Null:
		return "null"
	}
	return "a boolean"
}
