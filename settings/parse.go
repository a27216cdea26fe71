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

// A group is one element of hooks.Stop.
type group struct {
	hooks  box
	only   bool // there is nothing in it but hooks
	leaves int
}

// A leaf is one hook: an element of a group's hooks.
type leaf struct {
	group, index int
	value        gjson.Result
	command      string
	members      box
	fields       [len(want)]gjson.Result // as want has them; not existing where missing
}

// A doc is a settings file, taken apart as far as hooks.Stop. Offsets count from behind the byte order mark.
type doc struct {
	bom   string
	body  string
	blank bool // nothing but white space, which the client takes for an empty object

	root, hooks, stop       box
	hooksMember, stopMember int // index of the member that holds it, -1 if there is none
	groups                  []group
	leaves                  []leaf
	own                     []leaf // of leaves
}

const byteOrderMark = "\xef\xbb\xbf"

// parse takes b apart, or says why it cannot be sure what is ours in it: this is all that gjson would take on trust.
func parse(b []byte) (*doc, error) {
	d := &doc{hooksMember: -1, stopMember: -1}
	body := b
	if rest, ok := bytes.CutPrefix(b, []byte(byteOrderMark)); ok {
		d.bom, body = byteOrderMark, rest
	}
	d.body = string(body)
	if strings.Trim(d.body, " \t\r\n") == "" {
		d.blank = true
		return d, nil
	}
	if r := checkJSON(body); r != nil {
		return nil, r
	}
	root := gjson.Parse(d.body)
	// gjson leaves what follows the value in its Raw.
	root.Raw = strings.TrimRight(root.Raw, " \t\r\n")
	if !root.IsObject() {
		return nil, refuse(d.body, root.Index, "the file holds %s, want an object", kind(root))
	}
	hooks, err := d.member(&d.root, &d.hooksMember, root, "hooks", "hooks")
	if err != nil || d.hooksMember < 0 {
		return d, err
	}
	if !hooks.IsObject() {
		return nil, refuse(d.body, hooks.Index, "hooks is %s, want an object", kind(hooks))
	}
	stop, err := d.member(&d.hooks, &d.stopMember, hooks, "Stop", "hooks.Stop")
	if err != nil || d.stopMember < 0 {
		return d, err
	}
	if !stop.IsArray() {
		return nil, refuse(d.body, stop.Index, "hooks.Stop is %s, want an array", kind(stop))
	}
	return d, d.readStop(stop)
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

func (d *doc) readStop(stop gjson.Result) (err error) {
	d.stop = list(stop, func(i int, _, value gjson.Result) {
		if err == nil {
			err = d.readGroup(i, value)
		}
	})
	return err
}

func (d *doc) readGroup(index int, value gjson.Result) error {
	path := fmt.Sprintf("hooks.Stop[%d]", index)
	if !value.IsObject() {
		return refuse(d.body, value.Index, "%s is %s, want an object", path, kind(value))
	}
	g := group{only: true}
	var hooks gjson.Result
	var err error
	list(value, func(_ int, key, v gjson.Result) {
		switch {
		case key.Str == "hooks" && hooks.Exists():
			err = d.twice(key, path+".hooks")
		case key.Str == "hooks":
			hooks = v
		case key.Str == "matcher" && v.Raw == `""`: // the client's own menu writes it; it says nothing
		default:
			g.only = false
		}
	})
	if err != nil {
		return err
	}
	if hooks.Exists() {
		if !hooks.IsArray() {
			return refuse(d.body, hooks.Index, "%s.hooks is %s, want an array", path, kind(hooks))
		}
		g.hooks = list(hooks, func(i int, _, v gjson.Result) {
			if err == nil {
				err = d.readLeaf(index, i, v)
			}
		})
		g.leaves = len(g.hooks.items)
	}
	d.groups = append(d.groups, g)
	return err
}

func (d *doc) readLeaf(group, index int, value gjson.Result) error {
	l := leaf{group: group, index: index, value: value}
	if !value.IsObject() {
		return refuse(d.body, value.Index, "%s is %s, want an object", l.path(), kind(value))
	}
	var twice, command gjson.Result
	l.members = list(value, func(_ int, key, v gjson.Result) {
		f := fieldIndex(key.Str)
		switch {
		case f < 0:
		case l.fields[f].Exists():
			// A user's own entry may have other things twice; its command decides whether it is a user's.
			if f == commandField || !twice.Exists() {
				twice = key
			}
		default:
			l.fields[f] = v
		}
	})
	command = l.fields[commandField]
	if twice.Exists() && twice.Str == "command" {
		return d.twice(twice, l.path()+".command")
	}
	if command.Exists() && command.Type != gjson.String {
		return refuse(d.body, command.Index, "%s.command is %s, want a string", l.path(), kind(command))
	}
	l.command = command.Str
	d.leaves = append(d.leaves, l)
	if !command.Exists() || !Own(l.command) {
		return nil
	}
	if twice.Exists() {
		return d.twice(twice, l.path()+"."+twice.Str)
	}
	d.own = append(d.own, l)
	return nil
}

func (l *leaf) path() string { return fmt.Sprintf("hooks.Stop[%d].hooks[%d]", l.group, l.index) }

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
