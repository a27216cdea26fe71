package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vx/internal/state"
	"vx/settings"
)

// A Plan is what a command would change. It is made without writing anything.
type Plan struct {
	Edits      []Edit      // of settings files
	Extensions []Extension // that are made, changed or removed
	Await      string      // the choice that project.json is to have, "always" or "herdr"; "" leaves it as it is
	Nudge      string      // the same, "on" or "off"
	Remember   bool        // the project is to be made known, as it could not be found by its git root
	Notes      []string    // what the user should know, whether or not the plan is applied

	root       string
	in, others []File      // the files that were meant, and those that apply beside them
	standing   []Extension // ours, of those that were meant, as they are now
}

// An Edit is the change of one file.
type Edit struct {
	File
	Old, New []byte
	Makes    bool // there is no file yet
	MakesDir bool // nor the folder that it is to be in
	Removes  bool // there is to be none

	actions actions
	undos   undos
	made    record // as init left it, if uninstall knows
}

// An action is what is done to an event's entries in a file's bytes.
type action int

const (
	leave  action = iota // as it is
	add                  // one right entry, whatever is there
	mend                 // the same, where there is an entry of ours
	remove               // no entry
)

// actions are those of the two events. What is done after a failed turn depends on the hook being there at all.
type actions struct{ stop, failure action }

// choose is what a choice of on or off makes of an action.
func (a actions) choose(afterFailure string) actions {
	switch afterFailure {
	case "on":
		a.failure = add
	case "off":
		a.failure = remove
	}
	return a
}

// undos give back what the additions of entries replaced; nil where none was added.
type undos struct{ stop, failure *settings.Undo }

// NotInstalled says that there is no hook to upgrade.
type NotInstalled struct {
	Files []string // that were looked through, as shown
	Fix   string   // the command that goes on from here
}

func (e *NotInstalled) Error() string {
	return "hook: not registered in " + strings.Join(e.Files, " or ")
}

// Hint is the command that goes on from here.
func (e *NotInstalled) Hint() string { return e.Fix }

// SameFile says that a scope's settings are those of a wider scope, which has to be named then.
type SameFile struct{ Narrow, Wide File }

func (e *SameFile) Error() string {
	return fmt.Sprintf("settings %s: the same file as %s, which applies more widely", e.Narrow.Shown, e.Wide.Shown)
}

// Hint is how to go on from here.
func (e *SameFile) Hint() string { return "if that is what you want: --scope " + string(e.Wide.Scope) }

// Choices are what a plan is asked for beside its place. What is not chosen stays as it is.
type Choices struct {
	Harnesses    []Harness // whose commanders are to be woken
	AfterFailure string    // "on", "off": wake also after a turn that died of an API error
	Await        string    // "always", "herdr": where sessions wait, on this machine
	Nudge        string    // "on", "off": on this machine, type into the pane of a commander whom no await serves
}

func (c Choices) includes(h Harness) bool { return slices.Contains(c.Harnesses, h) }

// Init plans one right entry in the file of a scope, for Claude Code, and the extensions of the other harnesses that are
// chosen; with none chosen it is Claude Code. Dir is nil where there is no state directory yet; root is "" outside any
// project, where only the user's files can be meant.
func Init(dir *state.Dir, root string, scope Scope, c Choices) (*Plan, error) {
	if len(c.Harnesses) == 0 {
		c.Harnesses = []Harness{Claude}
	}
	a := actions{stop: add, failure: mend}
	if !c.includes(Claude) {
		a = actions{}
	}
	p, err := newPlan(dir, root, a.choose(c.AfterFailure), func(f File) bool { return f.Scope == scope })
	if err != nil {
		return nil, err
	}
	if err := p.extend(dir, scope, func(h Harness) action {
		if c.includes(h) {
			return add
		}
		return mend
	}); err != nil {
		return nil, err
	}
	if scope != User {
		_, err := os.Lstat(filepath.Join(root, ".git"))
		p.Remember = err != nil && !known(dir, root)
	}
	return p, p.choose(dir, c)
}

// Upgrade plans to mend what is there: in the files of a scope, or with none in the project's.
func Upgrade(dir *state.Dir, root string, scope Scope, c Choices) (*Plan, error) {
	p, err := newPlan(dir, root, actions{stop: mend, failure: mend}.choose(c.AfterFailure), meant(scope))
	if err == nil {
		err = p.extend(dir, scope, func(Harness) action { return mend })
	}
	if err == nil {
		err = p.choose(dir, c)
	}
	if err != nil || len(p.Edits)+len(p.Extensions)+len(p.Registered())+len(p.standing) > 0 {
		return p, err
	}
	none := &NotInstalled{Fix: "vx init"}
	for _, f := range p.in {
		none.Files = append(none.Files, f.Shown)
	}
	for _, f := range p.others {
		if f.registered() {
			none.Fix = "vx upgrade --scope " + string(f.Scope)
		}
	}
	return nil, none
}

// Uninstall plans to take out what is ours: of the files of a scope, or with none of the project's.
func Uninstall(dir *state.Dir, root string, scope Scope) (*Plan, error) {
	p, err := newPlan(dir, root, actions{stop: remove, failure: remove}, meant(scope))
	if err == nil {
		err = p.extend(dir, scope, func(Harness) action { return remove })
	}
	return p, err
}

// meant are the files of a scope. The user's is not only this project's, and so never meant without being named.
func meant(scope Scope) func(File) bool {
	return func(f File) bool { return f.Scope == scope || scope == "" && f.Scope != User }
}

func newPlan(dir *state.Dir, root string, a actions, meant func(File) bool) (*Plan, error) {
	files, err := Files(root)
	if err != nil {
		return nil, err
	}
	p := &Plan{root: root}
	for _, f := range files {
		if meant(f) {
			p.in = append(p.in, f)
		} else {
			p.others = append(p.others, f)
		}
	}
	if len(p.in) == 0 {
		return nil, notThere(root, meant)
	}
	if a == (actions{}) {
		p.in, p.others = nil, nil // it is not about Claude Code
		return p, nil
	}
	for _, f := range p.in {
		e, err := planEdit(dir, root, f, a)
		if err != nil {
			return nil, err
		}
		if e != nil {
			p.Edits = append(p.Edits, *e)
			p.Notes = append(p.Notes, aboutLinks(f)...)
		}
	}
	p.Notes = append(p.Notes, p.aboutFiles(a)...)
	return p, nil
}

// notThere says why there is no file of the scope that is meant.
func notThere(root string, meant func(File) bool) error {
	all, err := scopes(root)
	if err != nil {
		return err
	}
	for i, f := range all {
		if j := wider(all, i); meant(f) && j >= 0 {
			return &SameFile{f, all[j]}
		}
	}
	return errNoProject
}

// planEdit plans the change of one file; nil if it is as it should be. What is empty or looks wrong may be somebody's in
// the middle of writing it: many programs empty a file and then fill it. It counts once it has stayed as it is.
func planEdit(dir *state.Dir, root string, f File, a actions) (*Edit, error) {
	for deadline := time.Now().Add(patience); ; {
		before := f.stamp()
		data, exists, err := f.read()
		if err != nil {
			return nil, err
		}
		e, err := f.plan(data, exists, a, recordPath(dir, root, f))
		if err == nil && (len(data) > 0 || !exists) {
			return e, nil
		}
		if time.Since(before) < fillTime {
			time.Sleep(fillTime)
		}
		if f.stamp().Equal(before) || time.Now().After(deadline) {
			return e, err
		}
	}
}

// fillTime is how long a program may take from emptying a file to filling it.
const fillTime = 50 * time.Millisecond

func (f File) plan(data []byte, exists bool, a actions, recordFile string) (*Edit, error) {
	if !exists && a.stop != add {
		return nil, nil
	}
	e := &Edit{File: f, Old: data, New: data, Makes: !exists, actions: a}
	e.made = readRecord(recordFile, f)
	if err := e.change(); err != nil {
		return nil, f.error(err)
	}
	if exists && bytes.Equal(e.New, data) {
		return nil, nil
	}
	e.Removes = a.stop == remove && e.made.Made && settings.Empty(e.New) && isPlain(f.Path)
	if !exists {
		_, err := os.Stat(filepath.Dir(f.Path))
		e.MakesDir = err != nil
	}
	return e, nil
}

// change makes the new bytes of the old. What is taken out goes in the other order than it came: the entry for failed
// turns may stand inside what the first one's undo knows.
func (e *Edit) change() (err error) {
	a := e.actions
	if a.stop == mend && !isIn(e.Old, settings.Stop) {
		return nil // nothing is registered here
	}
	if a.failure == remove {
		if e.New, _, err = remove.apply(e.New, settings.StopFailure, e.made.Failure); err != nil {
			return err
		}
	}
	e.New, e.undos.stop, err = a.stop.apply(e.New, settings.Stop, e.made.Undo)
	if err == nil && a.failure != remove {
		e.New, e.undos.failure, err = a.failure.apply(e.New, settings.StopFailure, nil)
	}
	return err
}

// apply does it to the entries for an event. An entry that was not there comes with its undo.
func (a action) apply(b []byte, e settings.Event, undo *settings.Undo) ([]byte, *settings.Undo, error) {
	switch {
	case a == remove:
		b, err := settings.Remove(b, e, undo)
		return b, nil, err
	case a == add, a == mend && isIn(b, e):
		return settings.Add(b, e)
	}
	return b, nil, nil
}

// isIn tells whether an entry of ours is there, or may be.
func isIn(b []byte, e settings.Event) bool {
	r, err := settings.Inspect(b, e)
	return len(r.Own) > 0 || err != nil && e == settings.Stop
}

// isPlain tells whether init can have made what stands at path: it makes no symlinks.
func isPlain(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

var errNoProject = errors.New("project: none is here")

// choose plans this machine's choices, if they are not made already.
func (p *Plan) choose(dir *state.Dir, c Choices) error {
	if c.Await == "" && c.Nudge == "" {
		return nil
	}
	if p.root == "" {
		return errNoProject
	}
	var now state.Config
	if dir != nil {
		var err error
		if now, err = dir.Project(p.root).Config(); err != nil {
			return err
		}
	}
	if cmp.Or(now.Await, "herdr") != c.Await { // what holds without a choice
		p.Await = c.Await
	}
	if c.Nudge != "" && now.Nudge != (c.Nudge == "on") {
		p.Nudge = c.Nudge
	}
	return nil
}

func known(dir *state.Dir, root string) bool {
	if dir == nil {
		return false
	}
	c, err := dir.Project(root).Config()
	return err == nil && c.Path != ""
}

// report reads a file for what there is to say about it.
func (f File) report() (settings.Report, error) {
	data, _, err := f.read()
	if err != nil {
		return settings.Report{}, err
	}
	r, err := settings.Inspect(data, settings.Stop)
	if err != nil {
		err = f.error(err)
	}
	return r, err
}

func (f File) registered() bool {
	r, _ := f.report()
	return len(r.Own) > 0
}

// Empty tells whether there is nothing to do.
func (p *Plan) Empty() bool {
	return len(p.Edits)+len(p.Extensions) == 0 && p.Await == "" && p.Nudge == "" && !p.Remember
}

// Registered are the files, of those that were meant, that hold our entry now, as shown.
func (p *Plan) Registered() []string {
	var shown []string
	for _, f := range p.in {
		if f.registered() {
			shown = append(shown, f.Shown)
		}
	}
	return shown
}

// Standing are the extensions, of the scope that was meant, that vx wrote, as shown.
func (p *Plan) Standing() []string {
	var shown []string
	for _, x := range p.standing {
		shown = append(shown, x.Shown)
	}
	return shown
}

// MakesDir tells whether a folder is to be made.
func (p *Plan) MakesDir() bool {
	return slices.ContainsFunc(p.Edits, func(e Edit) bool { return e.MakesDir })
}

// Summary is the plan in a line for each change.
func (p *Plan) Summary() []string {
	var lines []string
	for _, e := range p.Edits {
		verb := "change"
		switch {
		case e.MakesDir:
			verb = "make the folder and the file"
		case e.Makes:
			verb = "make"
		case e.Removes:
			verb = "remove"
		}
		lines = append(lines, verb+" "+e.Shown)
	}
	for _, x := range p.Extensions {
		lines = append(lines, x.summary())
	}
	if p.Remember {
		lines = append(lines, "remember "+fromHome(p.root)+" as a project on this machine")
	}
	if p.Await != "" {
		lines = append(lines, fmt.Sprintf("set await to %s for this project on this machine", p.Await))
	}
	if p.Nudge != "" {
		lines = append(lines, fmt.Sprintf("set nudge to %s for this project on this machine", p.Nudge))
	}
	return lines
}
