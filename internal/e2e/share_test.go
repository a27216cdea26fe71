//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func TestTwoCommandersOfOneProjectShareItsWakesAndAreTold(t *testing.T) {
	forEachClient(t, func(t *testing.T, version string) {
		w := newProject(t, version)
		first, second := w.session(), w.session()
		const warning = "[warn] commanders share one wake queue - 2 commanders are live in this project (claude, claude)"
		if out, _ := w.tryVX("doctor"); !strings.Contains(out, warning) || !strings.Contains(out, "vx forum inbox") {
			t.Errorf("vx doctor does not warn of two commanders:\n%s", out)
		}
		var titles []string
		for i := range 6 {
			titles = append(titles, fmt.Sprintf("news number %d.", i))
			w.send(titles[i])
		}
		for _, title := range titles {
			w.delivered(title, 2)
		}
		for _, c := range []*client{first, second} {
			if n := len(c.awaits()); n != 1 {
				t.Errorf("%d awaits serve client %d, want 1", n, c.proc.pid)
			}
		}

		first.end("SIGKILL")
		w.awaiting(1)
		w.vx("wake", "send", "--title", "news for the one", "--wait")
		w.delivered("news for the one", 1)
		if out, _ := w.tryVX("doctor"); strings.Contains(out, "share one wake queue") {
			t.Errorf("vx doctor warns of one commander:\n%s", out)
		}
	})
}
