package install

import (
	"os"
	"path/filepath"
	"slices"
)

// Found are the harnesses beside Claude Code that are in use in a project, or by the user for a plan of scope user, and
// whose extension is not there.
func Found(root string, scope Scope) []Harness {
	var all []Harness
	for _, h := range extended {
		x, ok := ExtensionOf(root, scope, h)
		if !ok {
			continue
		}
		if standing, err := x.Look(); err != nil || standing != Missing {
			continue
		}
		if used(root, h) {
			all = append(all, h)
		}
	}
	return all
}

// used tells whether a harness has left something in the project, or for the user.
func used(root string, h Harness) bool {
	names, own := []string{".pi"}, ".pi/agent"
	if h == OpenCode {
		names, own = []string{".opencode", "opencode.json", "opencode.jsonc"}, ".config/opencode"
	}
	paths := []string{filepath.Join(home(), own)}
	for _, name := range names {
		if root != "" {
			paths = append(paths, filepath.Join(root, name))
		}
	}
	return slices.ContainsFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// AfterFailure tells whether our command is registered for turns that died of an API error in the file of a scope.
func AfterFailure(root string, scope Scope) bool {
	files, _ := Files(root)
	for _, f := range files {
		if f.Scope == scope {
			return len(f.AfterFailure()) > 0
		}
	}
	return false
}

// Loads says when a harness takes up an extension that was made or changed just now.
func (x Extension) Loads() []string {
	switch {
	case x.New == nil:
		return []string{x.Harness.Name() + " that runs goes on with it until its next start"}
	case x.Harness == Pi && x.base != "" && filepath.Base(filepath.Dir(filepath.Dir(x.Path))) == ".pi":
		return []string{
			"Pi loads it at its next start in this very folder, or after /reload there; it asks once whether the folder is to be trusted",
		}
	}
	return []string{x.Harness.Name() + " loads it at its next start"}
}
