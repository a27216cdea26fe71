// Package settings edits Claude Code's settings files as bytes: it finds vx's entries under an event, adds or repairs
// one, and takes them out again. It knows what a right entry looks like, so that init, upgrade and doctor agree.
//
// It reads and writes no files, and knows nothing of the rest of a settings file: whatever is not an entry of ours stays
// byte for byte, with the file's own indentation, line ends and final newline. A file it does not understand is refused
// with a [Refusal]. As bytes go in and bytes come out, a crash in the middle leaves nothing behind.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Command is the registered command, to the letter. It looks for vx by itself because Claude Code's shell may never have
// read a profile, and it holds no absolute path of this machine because the file is committed and shared.
const Command = `sh -c 'for v in "$(command -v vx 2>/dev/null)" "$HOME/.local/bin/vx" /opt/homebrew/bin/vx /usr/local/bin/vx /home/linuxbrew/.linuxbrew/bin/vx; do [ -f "$v" ] && [ -x "$v" ] && exec "$v" sentinel await; done; echo "vx: not found, so the sentinel Stop hook cannot wake the commander. Install vx (brew or curl) or put its directory on PATH, then run: vx doctor" >&2; exit 0'`

// Timeout is the registered timeout, in seconds. Without one the client ends the hook after ten minutes.
const Timeout = 3600

// An Event is one of the client's for which our command is registered.
type Event string

const (
	Stop        Event = "Stop"        // a turn has ended
	StopFailure Event = "StopFailure" // a turn has died of an API error; a Stop does not follow
)

// Undo gives back the bytes that [Add] replaced when it put an entry where there was none.
type Undo struct {
	Inserted string `json:"inserted"` // what stands there now, with our entry in it
	Replaced string `json:"replaced"` // what stood there before: white space, if anything
}

// Add returns b with one right entry of ours for an event in it. Where there is none it adds one, in a group of its own behind the
// others, and says how to undo that. Where there is one it mends that in place, takes out any further one, and returns
// no Undo: what was there before is not worth giving back. A file that is right comes back as it is.
func Add(b []byte, e Event) ([]byte, *Undo, error) {
	d, err := parse(b, e)
	if err != nil {
		return nil, nil, err
	}
	if len(d.own) == 0 {
		s := d.insertion()
		out := d.apply([]splice{s})
		if err := verify(out, e, 1); err != nil {
			return nil, nil, err
		}
		return out, &Undo{Inserted: s.text, Replaced: d.body[s.start:s.end]}, nil
	}
	edits := d.cut(d.own[1:])
	edits = append(edits, d.repair(d.own[0])...)
	if len(edits) == 0 {
		return b, nil, nil
	}
	out := d.apply(edits)
	if err := verify(out, e, 1); err != nil {
		return nil, nil, err
	}
	return out, nil, nil
}

// Remove returns b without any entry of ours for an event. With the undo of an Add it gives back the very bytes from before, also when
// other parts of the file have changed since. Without one, or where the undo no longer fits, it takes out our entries and
// only what their removal left empty.
func Remove(b []byte, e Event, undo *Undo) ([]byte, error) {
	d, err := parse(b, e)
	if err != nil {
		return nil, err
	}
	if len(d.own) == 0 {
		return b, nil
	}
	if undo != nil {
		if out, ok := undo.revert(b, d); ok {
			return out, nil
		}
	}
	out := d.apply(d.cut(d.own))
	if err := verify(out, e, 0); err != nil {
		return nil, err
	}
	return out, nil
}

// revert puts back what the Add replaced, if all that it inserted stands around our only entry. Whatever comes out must be
// a settings file without an entry of ours: with a member added behind ours, taking ours out would leave a comma.
func (u *Undo) revert(b []byte, d *doc) ([]byte, bool) {
	if len(d.own) != 1 || strings.Trim(u.Replaced, " \t\r\n") != "" { // an Add replaces nothing else
		return nil, false
	}
	leaf := d.own[0].span()
	low := max(0, len(d.bom)+leaf.end-len(u.Inserted))
	high := min(len(b), len(d.bom)+leaf.start+len(u.Inserted))
	if low > high {
		return nil, false
	}
	i := bytes.Index(b[low:high], []byte(u.Inserted))
	if i < 0 {
		return nil, false
	}
	out := slices.Concat(b[:low+i], []byte(u.Replaced), b[low+i+len(u.Inserted):])
	return out, verify(out, d.event, 0) == nil
}

// Empty reports whether b is a settings file that says nothing: blank, or an empty object.
func Empty(b []byte) bool {
	d, err := parse(b, Stop)
	return err == nil && (d.blank || len(d.root.items) == 0)
}

// verify is the last look before bytes leave the package: they are JSON, and hold as many entries of ours for the event as
// they should, right ones. It is what makes a fault of the splices harmless.
func verify(out []byte, e Event, own int) error {
	d := newDoc(out, e)
	if !d.blank && !gjson.Valid(d.body) {
		return errors.New("edited settings: not JSON any more")
	}
	if err := d.read(); err != nil {
		return fmt.Errorf("edited settings: %w", err)
	}
	if len(d.own) != own {
		return fmt.Errorf("edited settings: %d entries of vx, want %d", len(d.own), own)
	}
	for _, l := range d.own {
		if wrong := l.wrong(); len(wrong) > 0 {
			return fmt.Errorf("edited settings: %s", wrong[0])
		}
	}
	return nil
}
