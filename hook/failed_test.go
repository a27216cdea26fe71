package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// failing writes a transcript whose last turns ended in an API error, the last of them so long ago.
func failing(t *testing.T, n int, ago time.Duration) string {
	t.Helper()
	var rows strings.Builder
	for range n {
		fmt.Fprintf(&rows, `{"type":"user","message":{"role":"user","content":"go on"}}
{"type":"assistant","timestamp":%q,"message":{"content":[{"type":"text","text":"API Error: 529"}]},"isApiErrorMessage":true}
`, time.Now().Add(-ago).UTC().Format(time.RFC3339Nano))
	}
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	if err := os.WriteFile(path, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func hooked(event, transcript string) string {
	return fmt.Sprintf(`{"session_id":"s1","hook_event_name":%q,"transcript_path":%q,"stop_hook_active":false}`+"\n", event, transcript)
}

func TestAWakeIsNotBurntOnAServiceThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		n     int
		ago   time.Duration
		event string
		waits bool
	}{
		"one turn failed just now":             {1, 0, "Stop", true},
		"one turn failed two minutes ago":      {1, 2 * time.Minute, "Stop", false},
		"two turns failed, one minute ago":     {2, time.Minute, "Stop", true},
		"five turns failed, eight minutes ago": {5, 8 * time.Minute, "Stop", true},
		"five turns failed, an hour ago":       {5, time.Hour, "Stop", false},
		"the failed turn is not written yet":   {0, 0, "StopFailure", true},
		"no turn failed":                       {0, 0, "Stop", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("news")
			a := w.start("await", hooked(c.event, failing(t, c.n, c.ago)))
			if !c.waits {
				delivers(t, a.wait(), "news")
				return
			}
			e := w.waitFor(1)[0]
			eventually(t, "the bell is answered", func() bool { return !w.ringing(e) })
			eventually(t, "the log says why", func() bool { return strings.Contains(w.log(), "after a failed turn") })
			w.holds(1, 0, 0)
			w.terminate()
			quiet(t, a.wait())
		})
	}
}
