package claude

import (
	"os"
	"path/filepath"

	"github.com/tidwall/gjson"
)

// maxGlobal bounds the client's own record: it keeps prompts and caches in it, a few MB at most.
const maxGlobal = 64 << 20

// Trusted reports what the client's own record (.claude.json) says of a project folder; known is false when it cannot
// be read or says nothing. Trust in a folder above counts in some versions and not in others: that is not known either.
func Trusted(project string) (trusted, known bool) {
	data, err := readGlobal()
	if err != nil || !gjson.ValidBytes(data) {
		return false, false
	}
	above := false
	// Not by a gjson path: a folder's name may hold dots and wildcards.
	gjson.GetBytes(data, "projects").ForEach(func(folder, entry gjson.Result) bool {
		accepted := entry.Get("hasTrustDialogAccepted")
		if !accepted.IsBool() {
			return true
		}
		switch at := filepath.Clean(folder.String()); {
		case same(at, project):
			trusted, known = trusted || accepted.Bool(), true
		case accepted.Bool() && isAbove(at, project):
			above = true
		}
		return true
	})
	if above && !trusted {
		return false, false
	}
	return trusted, known
}

// readGlobal reads $C/.config.json, where an old version left one, else .claude.json, which stands in the configuration
// directory only if that was set.
func readGlobal() ([]byte, error) {
	dir, err := ConfigDir()
	if err != nil {
		return nil, err
	}
	if data, err := readSmall(filepath.Join(dir, ".config.json"), maxGlobal); err == nil && len(data) > 0 {
		return data, nil
	}
	if os.Getenv("CLAUDE_CONFIG_DIR") == "" {
		dir = filepath.Dir(dir)
	}
	return readSmall(filepath.Join(dir, ".claude.json"), maxGlobal)
}

// same reports whether a folder of the record is the project, under links above it too.
func same(folder, project string) bool {
	if folder == project {
		return true
	}
	if filepath.Base(folder) != filepath.Base(project) {
		return false
	}
	return resolved(folder) == resolved(project)
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func isAbove(folder, project string) bool {
	for at := project; ; at = filepath.Dir(at) {
		if at == folder {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}
