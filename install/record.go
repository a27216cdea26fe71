package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"vx/internal/atomicfile"
	"vx/internal/state"
	"vx/settings"
)

// A record is what an uninstall has to know of the init before it. It is kept in the state directory, one file a scope, and one an
// extension.
type record struct {
	Path    string         `json:"path"`
	Made    bool           `json:"made"`     // the file was made by init
	MadeDir bool           `json:"made_dir"` // and the folder that it is in
	Undo    *settings.Undo `json:"undo"`
	Failure *settings.Undo `json:"failure_undo,omitempty"` // of the entry for failed turns
	Folders []string       `json:"folders,omitempty"`      // that were made for an extension, from the top down
}

// recordPath is where a file's record is kept; "" without a state directory, or a project in it.
func recordPath(dir *state.Dir, root string, f File) string {
	switch {
	case dir == nil:
		return ""
	case f.Scope == User:
		return dir.Join("install-user.json")
	case f.Scope == Local:
		return dir.Project(root).Join("install-local.json")
	}
	return dir.Project(root).Join("install.json")
}

// readRecord returns the record of a file, empty if there is none. One that cannot be read, or is another file's (a
// CLAUDE_CONFIG_DIR that has moved), is none: the uninstall then takes out what is plainly ours.
func readRecord(path string, f File) record {
	var r record
	// A FIFO would be waited for, and a device read for ever.
	if !isPlain(path) {
		return record{}
	}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &r) != nil || r.Path != f.Path {
		return record{}
	}
	return r
}

func (r record) write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = atomicfile.Write(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("undo: %w", err)
	}
	return nil
}

// drop removes a record that has done its service; removed is false if there was none.
func drop(path string) (removed bool, err error) {
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("undo: %w", err)
	}
	return true, nil
}
