// Package clients has the real clients for tests, as npm has them, each version installed once into a cache: .cache/npm in
// the module's root, or the folder that VX_E2E_CACHE names.
package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

var installing sync.Mutex

// Installed returns the node_modules folder that has the package at the version.
func Installed(t *testing.T, module, version string) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	root, err := cache()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, path.Base(module)+"-"+version)
	dir := filepath.Join(home, "node_modules")
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := install(module+"@"+version, home); err != nil {
		t.Fatal(err)
	}
	return dir
}

func cache() (string, error) {
	if dir := os.Getenv("VX_E2E_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "npm"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no module at or above the working directory")
		}
	}
}

// install installs beside the final place and renames: a run that is killed in the middle leaves no half client.
func install(module, home string) error {
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(home), "installing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	npm := exec.Command("npm", "install", "--prefix", scratch, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", module)
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install %s: %w\n%s", module, err, out)
	}
	if err := os.Rename(scratch, home); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
