package install

import "vx/settings"

// Inspect reads the file for what it says of hooks; there is false if there is none. The error is why the file cannot be
// read or is not understood, and names it; the report then holds what could be made out.
func (f File) Inspect() (r settings.Report, there bool, err error) {
	data, there, err := f.read()
	if err != nil || !there {
		return r, there, err
	}
	r, err = settings.Inspect(data)
	return r, there, f.error(err)
}
