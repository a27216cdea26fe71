package install

import (
	"slices"

	"vx/settings"
)

// Inspect reads the file for what it says of hooks; there is false if there is none. The error is why the file cannot be
// read or is not understood, and names it; the report then holds what could be made out.
func (f File) Inspect() (r settings.Report, there bool, err error) {
	data, there, err := f.read()
	if err != nil || !there {
		return r, there, err
	}
	r, err = settings.Inspect(data, settings.Stop)
	return r, there, f.error(err)
}

// AfterFailure are our entries for a turn that died of an API error.
func (f File) AfterFailure() []settings.Leaf {
	data, _, err := f.read()
	if err != nil {
		return nil
	}
	r, _ := settings.Inspect(data, settings.StopFailure)
	return r.Own
}

// Registered tells whether a project's own settings, shared or local, hold our entry.
func Registered(root string) bool {
	files, _ := Files(root)
	return slices.ContainsFunc(files, func(f File) bool { return f.Scope != User && f.registered() })
}
