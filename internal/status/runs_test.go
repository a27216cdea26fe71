package status

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/loop"
)

func TestRunsAreShownWhileTheyAreActiveAndADayLonger(t *testing.T) {
	p := project(t)
	put(t, p, "a")
	const head, end = "Started: 2026-03-04T14:00:00Z\n---\n## 2026-03-04T14:00:01Z - iter 2\niteration=2\n", "completion_reason=ESCALATED\npromise=COMPLETE\n"
	original := func(id, progress string, ago time.Duration, more ...string) {
		t.Helper()
		dir, at := filepath.Join(p.Root, "scripts", "ralph", "runs", id), time.Now().Add(-ago)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range more {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, "progress.txt")
		if err := errors.Join(os.WriteFile(path, []byte(progress), 0o600), os.Chtimes(path, at, at), os.Chtimes(dir, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	original("active", head, time.Minute)
	original("ended", head+end, 23*time.Hour)
	original("long-ended", head+end, 25*time.Hour)
	original("silent", head, 2*time.Hour)
	original("long-silent", head, 25*time.Hour)
	original("long-paused", head, 25*time.Hour, "PAUSE")
	run, err := loop.Create(p, loop.Plan{Kind: "green", Title: "mend the till", Tree: p.Root, Limits: loop.Limits{Iterations: 8}})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Finish(loop.Failed, "")

	shown := func(all bool) (map[string]Run, int) {
		t.Helper()
		r := Of(t.Context(), p, all)
		for _, trouble := range r.Trouble {
			t.Error(trouble)
		}
		byID := map[string]Run{}
		for _, run := range r.Runs {
			byID[run.ID] = run
		}
		return byID, r.RunsOver
	}
	got, over := shown(false)
	for id, want := range map[string]loop.State{"active": loop.Running, "ended": loop.Ended, "silent": loop.Silent, "long-paused": loop.PauseAsked, run.ID: loop.Running} {
		if got[id].State != want {
			t.Errorf("%s is %q, want %q", id, got[id].State, want)
		}
	}
	for _, id := range []string{"long-ended", "long-silent"} {
		if _, ok := got[id]; ok {
			t.Errorf("%s is shown", id)
		}
	}
	if ended := got["ended"]; ended.Kind != "ralph.sh" || ended.Reason != loop.Escalated || ended.Iteration != 2 || time.Since(ended.Since) > 24*time.Hour {
		t.Errorf("one that has ended: %+v", ended)
	}
	if own := got[run.ID]; own.Kind != "green" || own.Title != "mend the till" || own.Limit != 8 || own.Dir != run.Dir || time.Since(own.Since) > time.Hour {
		t.Errorf("one of vx: %+v", own)
	}
	if all, none := shown(true); len(all) != 7 || none != 0 || len(all) != len(got)+over {
		t.Errorf("all are %d without %d; shown were %d without %d", len(all), none, len(got), over)
	}
}
