//go:build e2e

package opencode

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vx/internal/e2e/clients"
)

const version = "1.18.33"

// program is the path of OpenCode.
func program(t *testing.T) string {
	t.Helper()
	return filepath.Join(clients.Installed(t, "opencode-ai", version), platform(), "bin", "opencode")
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
