//go:build e2e

package pi

import (
	"testing"

	"vx/internal/e2e/clients"
)

// forEachPi runs a test on every release.
func forEachPi(t *testing.T, test func(t *testing.T, w *world)) {
	for _, r := range []clients.Pi{clients.PiToday, clients.PiOld} {
		t.Run(r.Version, func(t *testing.T) { test(t, newWorld(t, r)) })
	}
}
