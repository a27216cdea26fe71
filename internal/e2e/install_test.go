//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// versions are the clients that docs/claude-code.md was measured on: one that sends its hooks no signal when it ends and
// names no pid of its own, and one that does both.
var versions = []string{"2.1.197", "2.1.332"}

// forEachClient runs the test once for each version, at the same time.
func forEachClient(t *testing.T, test func(t *testing.T, version string)) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

var installing sync.Mutex

// clientBinary returns the client's program, installed from npm into the cache where it is not there yet.
func clientBinary(t *testing.T, version string) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	root, err := cacheRoot()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, version)
	binary := filepath.Join(home, "node_modules", "@anthropic-ai", "claude-code-linux-x64", "claude")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	if err := installClient(version, home); err != nil {
		t.Fatal(err)
	}
	return binary
}

func cacheRoot() (string, error) {
	if dir := os.Getenv("VX_E2E_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	return filepath.Abs(filepath.Join("..", "..", ".cache", "claude"))
}

// installClient installs beside its final place and renames: a run that is killed in the middle leaves no half client.
func installClient(version, home string) error {
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(home), "installing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	npm := exec.Command("npm", "install", "--prefix", scratch, "--no-audit", "--no-fund", "--ignore-scripts",
		"@anthropic-ai/claude-code@"+version)
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install claude-code@%s: %w\n%s", version, err, out)
	}
	if err := os.Rename(scratch, home); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
