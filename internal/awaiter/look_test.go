package awaiter

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestLookNamesWhatTheDeadLeftAndRemovesNothing(t *testing.T) {
	dir := open(t)
	register(t, dir, "/p", 1)
	dead := start(t, "/p", "sentinel", "await")
	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	dead.Wait()
	before := left(t, dir)
	live, gone, err := Look(dir, dir.Project("/p"))
	if err != nil || len(live) != 1 || live[0].Process.PID != os.Getpid() {
		t.Errorf("live: %v, %v", live, err)
	}
	if len(gone) != 3 || slices.ContainsFunc(gone, func(s string) bool { return !strings.HasPrefix(s, dir.Awaiters()+"/") }) {
		t.Errorf("named: %q, want the dead one's record, bell and lock", gone)
	}
	if after := left(t, dir); !slices.Equal(before, after) {
		t.Errorf("left %q, had %q", after, before)
	}
}
