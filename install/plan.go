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
	Edits    []Edit
	Await    string   // the choice that project.json is to have, "always" or "herdr"; "" leaves it as it is
	Remember bool     // the project is to be made known, as it could not be found by its git root
	Notes    []string // what the user should know, whether or not the plan is applied

	root       string
	in, others []File // the files that were meant, and those that apply beside them
}

// An Edit is the change of one file.
type Edit struct {
	File
	Old, New []byte
	Makes    bool // there is no file yet
	MakesDir bool // nor the folder that it is to be in
	Removes  bool // there is to be none

	action action
	undo   *settings.Undo
	made   record // as init left it, if uninstall knows
}

// An action is what is done to a file's bytes.
type action int

const (
	add    action = iota // one right entry, whatever is there
	mend                 // the same, where there is an entry of ours
	remove               // no entry
)

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

// Init plans one right entry in the file of a scope. Dir is nil where there is no state directory yet; root is "" outside
// any project, where only the user's file can be meant. Await is "" or the choice that project.json is to have.
func Init(dir *state.Dir, root string, scope Scope, await string) (*Plan, error) {
	p, err := newPlan(dir, root, add, func(f File) bool { return f.Scope == scope })
	if err != nil {
		return nil, err
	}
	if scope != User {
		_, err := os.Lstat(filepath.Join(root, ".git"))
		p.Remember = err != nil && !known(dir, root)
	}
	return p, p.choose(dir, await)
}

// Upgrade plans to mend the entries that are there: in the file of a scope, or with none in the project's files.
func Upgrade(dir *state.Dir, root string, scope Scope, await string) (*Plan, error) {
	p, err := newPlan(dir, root, mend, meant(scope))
	if err == nil {
		err = p.choose(dir, await)
	}
	if err != nil || len(p.Edits) > 0 {
		return p, err
	}
	none := &NotInstalled{Fix: "vx init"}
	for _, f := range p.in {
		none.Files = append(none.Files, f.Shown)
		if f.registered() {
			return p, nil
		}
	}
	for _, f := range p.others {
		if f.registered() {
			none.Fix = "vx upgrade --scope " + string(f.Scope)
		}
	}
	return nil, none
}

// Uninstall plans to take our entries out of the file of a scope, or with none out of the project's files.
func Uninstall(dir *state.Dir, root string, scope Scope) (*Plan, error) {
	return newPlan(dir, root, remove, meant(scope))
}

// meant are the files of a scope. The user's is not only this project's, and so never meant without being named.
func meant(scope Scope) func(File) bool {
	return func(f File) bool { return f.Scope == scope || scope == "" && f.Scope != User }
}

func newPlan(dir *state.Dir, root string, a action, meant func(File) bool) (*Plan, error) {
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
func planEdit(dir *state.Dir, root string, f File, a action) (*Edit, error) {
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

func (f File) plan(data []byte, exists bool, a action, recordFile string) (*Edit, error) {
	if !exists && a != add {
		return nil, nil
	}
	e := &Edit{File: f, Old: data, Makes: !exists, action: a}
	var err error
	switch a {
	case remove:
		e.made = readRecord(recordFile, f)
		e.New, err = settings.Remove(data, e.made.Undo)
	case mend:
		var r settings.Report
		if r, err = settings.Inspect(data); err == nil && len(r.Own) == 0 {
			return nil, nil
		}
		fallthrough
	default:
		e.New, e.undo, err = settings.Add(data)
	}
	if err != nil {
		return nil, f.error(err)
	}
	if exists && bytes.Equal(e.New, data) {
		return nil, nil
	}
	e.Removes = a == remove && e.made.Made && settings.Empty(e.New) && isPlain(f.Path)
	if !exists {
		_, err := os.Stat(filepath.Dir(f.Path))
		e.MakesDir = err != nil
	}
	return e, nil
}

// isPlain tells whether init can have made what stands at path: it makes no symlinks.
func isPlain(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.Mode().IsRegular()
}

var errNoProject = errors.New("project: none is here")

// choose plans the choice, if it is not made already.
func (p *Plan) choose(dir *state.Dir, await string) error {
	if await == "" {
		return nil
	}
	if p.root == "" {
		return errNoProject
	}
	now := "herdr" // what holds without a choice
	if dir != nil {
		c, err := dir.Project(p.root).Config()
		if err != nil {
			return err
		}
		now = cmp.Or(c.Await, now)
	}
	if now != await {
		p.Await = await
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
	r, err := settings.Inspect(data)
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
func (p *Plan) Empty() bool { return len(p.Edits) == 0 && p.Await == "" && !p.Remember }

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
	if p.Remember {
		lines = append(lines, "remember "+fromHome(p.root)+" as a project on this machine")
	}
	if p.Await != "" {
		lines = append(lines, fmt.Sprintf("set await to %s for this project on this machine", p.Await))
	}
	return lines
}
