//go:build e2e

package opencode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const version = "1.18.33"

var installing sync.Mutex

// program returns the path of OpenCode, installing it into the cache where it is not there.
func program(t *testing.T) string {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	root := filepath.Join("..", "..", "..", ".cache", "opencode")
	if dir := os.Getenv("VX_E2E_CACHE"); dir != "" {
		root = filepath.Join(dir, "opencode")
	}
	home, err := filepath.Abs(filepath.Join(root, "opencode-ai-"+version))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "node_modules", platform(), "bin", "opencode")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := install("opencode-ai@"+version, home); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// platform is the package that has the program for this machine; opencode-ai links to it by a script of its own.
func platform() string {
	if runtime.GOARCH != "amd64" {
		return "opencode-linux-" + runtime.GOARCH
	}
	if flags, err := os.ReadFile("/proc/cpuinfo"); err == nil && !strings.Contains(string(flags), "avx2") {
		return "opencode-linux-x64-baseline"
	}
	return "opencode-linux-x64"
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
