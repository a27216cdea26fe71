package install

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/state"
	"vx/settings"
)

// A Touched is a file or folder that was changed, or made, or removed.
type Touched struct {
	Path string // absolute
	How  string // "made", "changed", "removed"
}

// An applier carries a plan out.
type applier struct {
	dir     *state.Dir
	root    string
	touched []Touched
}

// note lists what was touched, each path once.
func (a *applier) note(how, path string) {
	for _, t := range a.touched {
		if t.Path == path {
			return
		}
	}
	a.touched = append(a.touched, Touched{path, how})
}

// Apply carries the plan out, and returns what was touched, also when it could not go through to the end. A file that
// another program changes meanwhile keeps that change: the edit is made again on what is there then. Dir may be nil for an
// uninstall where there is no state directory.
func (p *Plan) Apply(ctx context.Context, dir *state.Dir) ([]Touched, error) {
	a := &applier{dir: dir, root: p.root}
	err := a.apply(ctx, p)
	return a.touched, err
}

func (a *applier) apply(ctx context.Context, p *Plan) error {
	if p.Await != "" || p.Nudge != "" || p.Remember {
		if err := a.ensureProject(); err != nil {
			return err
		}
	}
	if p.Await != "" || p.Nudge != "" {
		if err := a.configure(p); err != nil {
			return err
		}
	}
	for _, e := range p.Edits {
		if e.Scope != User && e.actions.stop != remove {
			if err := a.ensureProject(); err != nil {
				return err
			}
		}
		if err := a.edit(ctx, e.File, e.actions); err != nil {
			return err
		}
	}
	for _, x := range p.Extensions {
		if err := a.extension(x); err != nil {
			return x.error(err)
		}
	}
	return nil
}

// ensureProject makes the project's part of the state directory, where the undo is kept.
func (a *applier) ensureProject() error {
	project := a.dir.Project(a.root)
	_, err := os.Lstat(project.Dir)
	if ensured := project.Ensure(); ensured != nil {
		return ensured
	}
	if err != nil {
		a.note("made", project.Dir)
	}
	return nil
}

// configure notes this machine's choices.
func (a *applier) configure(p *Plan) error {
	project := a.dir.Project(a.root)
	err := project.Update(func(c *state.Config) {
		switch p.Await {
		case "always":
			c.Await = p.Await
		case "herdr": // what holds without a choice
			c.Await = ""
		}
		if p.Nudge != "" {
			c.Nudge = p.Nudge == "on"
		}
	})
	if err != nil {
		return err
	}
	a.note("changed", project.Join("project.json"))
	return nil
}

// How long an edit is tried again, because another program keeps changing the file.
const (
	patience = 5 * time.Second
	pause    = 5 * time.Millisecond
)

// edit makes the edit on what is in the file now, and again as long as somebody else changes it in the middle. Of several
// vx that edit one file at once, one works at a time, so that the record is of the edit that was made.
func (a *applier) edit(ctx context.Context, f File, actions actions) error {
	unlock, err := a.lock(ctx, f)
	if err != nil {
		return f.error(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		e, err := planEdit(a.dir, a.root, f, actions)
		if err != nil || e == nil {
			return err
		}
		err = a.try(e)
		if !errors.Is(err, atomicfile.ErrChanged) {
			return f.error(err)
		}
		select {
		case <-ctx.Done():
			return f.error(err)
		case <-time.After(pause):
		}
	}
}

// lock is held beside the record. Where the state directory has nothing of the project there is no record, and uninstall
// makes none.
func (a *applier) lock(ctx context.Context, f File) (unlock func() error, err error) {
	path := recordPath(a.dir, a.root, f)
	if _, err := os.Stat(filepath.Dir(path)); path == "" || errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 6*patience)
	defer cancel()
	l, err := lock.Wait(ctx, path+".lock")
	if err != nil {
		return nil, err
	}
	return l.Unlock, nil
}

// try makes an edit once. The error is ErrChanged if the file is not what the edit was planned for any more.
func (a *applier) try(e *Edit) error {
	switch {
	case e.Removes:
		return a.removeFile(e)
	case e.Makes:
		return a.makeFile(e)
	}
	if r, changed := e.record(); changed {
		if err := a.keep(r, e.File); err != nil {
			return err
		}
	}
	err := atomicfile.Replace(e.Path, e.Old, e.New, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return changed(err)
	}
	if err == nil {
		err = e.verify()
	}
	if err != nil {
		return err
	}
	a.note("changed", e.Path)
	return a.forget(e)
}

// record is what uninstall will want to know of an edit of a file that is there.
func (e *Edit) record() (r record, changed bool) {
	r = e.made
	if e.undos.stop != nil {
		r = record{Path: e.Path, Undo: e.undos.stop}
	}
	if e.undos.failure != nil {
		r.Path, r.Failure = e.Path, e.undos.failure
	}
	return r, e.undos != undos{}
}

// changed marks an error as the doing of another program.
func changed(err error) error { return fmt.Errorf("%w: %w", atomicfile.ErrChanged, err) }

// makeFile makes the file, and its folder if that is missing, which does not stay behind without the file.
func (a *applier) makeFile(e *Edit) (err error) {
	folder := filepath.Dir(e.Path)
	made := record{Path: e.Path, Made: true, MadeDir: a.makesDir(e.File), Undo: e.undos.stop, Failure: e.undos.failure}
	if err := a.keep(made, e.File); err != nil {
		return err
	}
	madeDir := false
	switch err := os.Mkdir(folder, 0o777); {
	case err == nil:
		madeDir = true
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	fi, err := os.Stat(folder)
	if err == nil {
		// As open to others as its folder is.
		err = atomicfile.Create(e.Path, e.New, fi.Mode().Perm()&0o666)
	}
	if err != nil {
		if made.MadeDir {
			syscall.Rmdir(folder)
		}
		if errors.Is(err, fs.ErrExist) {
			return changed(err)
		}
		return err
	}
	if err := e.verify(); err != nil {
		return err
	}
	if madeDir {
		a.note("made", folder)
	}
	a.note("made", e.Path)
	return nil
}

// makesDir tells whether a file's folder is to be removed with it: it is not there yet, or an init made it, for this file
// (and was killed then) or for the one beside it. Whichever of the two goes last takes the folder with it.
func (a *applier) makesDir(f File) bool {
	folder := filepath.Dir(f.Path)
	if _, err := os.Lstat(folder); err != nil {
		return true
	}
	all, _ := scopes(a.root)
	return slices.ContainsFunc(all, func(other File) bool {
		before := readRecord(recordPath(a.dir, a.root, other), other)
		return filepath.Dir(other.Path) == folder && before.Made && before.MadeDir
	})
}

// removeFile removes a file that init made and that says nothing without our entry.
func (a *applier) removeFile(e *Edit) error {
	if err := a.takeAway(e); err != nil {
		return err
	}
	if folder := filepath.Dir(e.Path); e.made.MadeDir {
		// Not if anything else is in it, or if it is a symlink by now.
		if syscall.Rmdir(folder) == nil {
			a.note("removed", folder)
		}
	}
	return a.forget(e)
}

// takeAway removes a file that is as it was read. It is moved aside first and looked at: what somebody wrote to it
// meanwhile goes back in its place.
func (a *applier) takeAway(e *Edit) error {
	aside := filepath.Join(filepath.Dir(e.Path), "."+filepath.Base(e.Path)+"."+randomName())
	if err := atomicfile.RenameNew(e.Path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return changed(err)
		}
		return err
	}
	data, err := os.ReadFile(aside)
	if err != nil || string(data) != string(e.Old) {
		if back := atomicfile.RenameNew(aside, e.Path); back != nil {
			return fmt.Errorf("what it held is in %s: %w", aside, errors.Join(err, back))
		}
		return changed(errors.Join(errors.New("not as it was read"), err))
	}
	if err := os.Remove(aside); err != nil {
		return err
	}
	a.note("removed", e.Path)
	return nil
}

func randomName() string {
	var b [4]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// verify reads the file once more. Another program's write that took ours out again is a change like any other.
func (e *Edit) verify() error {
	now, _, err := e.read()
	if err != nil {
		return err
	}
	return errors.Join(e.actions.stop.verify(now, settings.Stop), e.actions.failure.verify(now, settings.StopFailure))
}

func (a action) verify(b []byte, e settings.Event) error {
	if a == leave || a == mend && !isIn(b, e) {
		return nil
	}
	r, err := settings.Inspect(b, e)
	switch {
	case err != nil:
		return changed(err)
	case a == remove && len(r.Own) > 0, a != remove && !r.Right():
		return changed(errors.New("written over"))
	}
	return nil
}

// keep writes the record that uninstall will want, before the file that it belongs to.
func (a *applier) keep(r record, f File) error {
	path := recordPath(a.dir, a.root, f)
	how := "changed"
	if _, err := os.Lstat(path); err != nil {
		how = "made"
	}
	if err := r.write(path); err != nil {
		return err
	}
	a.note(how, path)
	return nil
}

// forget removes the record after an uninstall.
func (a *applier) forget(e *Edit) error {
	if e.actions.stop != remove {
		return nil
	}
	path := recordPath(a.dir, a.root, e.File)
	removed, err := drop(path)
	if removed {
		a.note("removed", path)
	}
	return err
}
