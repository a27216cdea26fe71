//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"vx/internal/e2e/clients"
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

// clientBinary is the client's program.
func clientBinary(t *testing.T, version string) string {
	t.Helper()
	return filepath.Join(clients.Installed(t, "@anthropic-ai/claude-code", version), "@anthropic-ai", "claude-code-linux-x64", "claude")
}
