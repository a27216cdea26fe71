//go:build e2e

package pi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// A release is one Pi.
type release struct {
	version string
	module  string // its name at npm
	main    string // what Node.js runs, in the module
}

var (
	today = release{"1.6.0", "@earendil-works/pi-coding-agent", "dist/bundle/cli.js"}
	// The last one under the old name: its contexts have no mode, and it does not say when a run has settled.
	old = release{"0.73.1", "@mariozechner/pi-coding-agent", "dist/cli.js"}
)

// nodeVersion is one that both run on; the newer Pi wants 22.19 at least.
const nodeVersion = "24.21.0"

// forEachPi runs a test on every release.
func forEachPi(t *testing.T, test func(t *testing.T, w *world)) {
	for _, r := range []release{today, old} {
		t.Run(r.version, func(t *testing.T) { test(t, newWorld(t, r)) })
	}
}

var installing sync.Mutex

// installed returns the folder of an npm package at a version, installing it into the cache where it is not there.
func installed(t *testing.T, module, version string) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	root := filepath.Join("..", "..", "..", ".cache", "pi")
	if dir := os.Getenv("VX_E2E_CACHE"); dir != "" {
		root = filepath.Join(dir, "pi")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, filepath.Base(module)+"-"+version)
	dir := filepath.Join(home, "node_modules", filepath.FromSlash(module))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := install(module, version, home); err != nil {
		t.Fatal(err)
	}
	return dir
}

// install installs beside the final place and renames: a run that is killed in the middle leaves no half client.
func install(module, version, home string) error {
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(home), "installing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	npm := exec.Command("npm", "install", "--prefix", scratch, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", module+"@"+version)
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install %s@%s: %w\n%s", module, version, err, out)
	}
	if err := os.Rename(scratch, home); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// command is what starts this Pi: Node.js and Pi's program.
func (r release) command(t *testing.T) []string {
	t.Helper()
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	node := installed(t, "node-linux-"+arch, nodeVersion)
	return []string{filepath.Join(node, "bin", "node"), filepath.Join(installed(t, r.module, r.version), filepath.FromSlash(r.main))}
}
