package status

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

func project(t *testing.T) *state.Project {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	d, err := state.OpenAt(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return d.Project(t.TempDir())
}

func put(t *testing.T, p *state.Project, title string) {
	t.Helper()
	if _, err := wake.Open(p).Put(t.Context(), wake.Wake{Title: title}); err != nil {
		t.Fatal(err)
	}
}

// deliver delivers what waits to a client without a transcript.
func deliver(t *testing.T, p *state.Project) {
	t.Helper()
	d, err := wake.Open(p).Claim(t.Context())
	if err != nil || d == nil {
		t.Fatal(d, err)
	}
	if err := errors.Join(d.Note(wake.Recipient{Harness: "claude", Session: "s1", Client: proc.Self()}), d.Emit(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestOfAProjectWithoutStateThereIsNothingToTellAndNothingIsMade(t *testing.T) {
	p := project(t)
	want(t, "report", Of(t.Context(), p, false), Nothing(p.Root))
	if _, err := os.Stat(p.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("its directory was made")
	}
}

func TestAReportTellsWhatWaitsAndWhatWasDelivered(t *testing.T) {
	p := project(t)
	put(t, p, "first")
	deliver(t, p)
	for i := range 8 {
		put(t, p, fmt.Sprint("next ", i))
	}
	r := Of(t.Context(), p, false)
	if !r.Known || r.Gone || len(r.Trouble) > 0 || r.OnTheWay != 0 {
		t.Errorf("%+v", r)
	}
	if r.Waiting != 8 || len(r.Next) != mostNext || r.Next[0].Title != "next 0" {
		t.Errorf("%d wait, the first of %d is %q", r.Waiting, len(r.Next), r.Next[0].Title)
	}
	if len(r.Last) != 1 {
		t.Fatalf("delivered: %+v", r.Last)
	}
	d := r.Last[0]
	if d.Title != "first" || d.Harness != "claude" || d.Session != "s1" || d.Client != os.Getpid() || d.Millis <= 0 || d.Receipt != "unproven" {
		t.Errorf("delivered: %+v", d)
	}
	if err := os.WriteFile(filepath.Join(wake.Open(p).Dir(), ".bad", "x.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := Of(t.Context(), p, false); r.Bad != 1 {
		t.Errorf("%d in quarantine, want 1", r.Bad)
	}
	if err := os.RemoveAll(p.Root); err != nil {
		t.Fatal(err)
	}
	if !Of(t.Context(), p, false).Gone {
		t.Error("a project whose path is gone is not called so")
	}
}

func TestAReportTellsWhoWaitsOrSinceWhenNobodyDoes(t *testing.T) {
	p := project(t)
	put(t, p, "a")
	want(t, "before any", Of(t.Context(), p, false).NoAwait(time.Now()), "no await, 1 wake waits; delivered at the end of the next turn")
	record := awaiter.Record{Process: proc.Self(), Project: p.Root, Harness: "claude", Session: "s1", Pane: "p1", Since: time.Now().UTC().Round(0)}
	a, err := awaiter.Register(p.State(), p, record)
	if err != nil {
		t.Fatal(err)
	}
	r := Of(t.Context(), p, false)
	want(t, "awaits", r.Awaits, []awaiter.Record{record})
	if !r.NoAwaitSince.IsZero() {
		t.Error("no await since, while one waits")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	r = Of(t.Context(), p, false)
	if len(r.Awaits) != 0 || time.Since(r.NoAwaitSince) > time.Minute {
		t.Errorf("afterwards: %v, %v", r.Awaits, r.NoAwaitSince)
	}
	at := time.Date(2026, 3, 4, 14, 2, 59, 0, time.Local)
	r.NoAwaitSince, r.Waiting = at, 0
	want(t, "the same day", r.NoAwait(at.Add(time.Hour)), "no await since 14:02")
	want(t, "the day after", r.NoAwait(at.Add(24*time.Hour)), "no await since 2026-03-04 14:02")
	r.Waiting = 2
	want(t, "with wakes", r.NoAwait(at), "no await since 14:02, 2 wakes wait; delivered at the end of the next turn")
}

func TestAReportTellsWhoIsToBeWokenAndWhetherItWaits(t *testing.T) {
	p := project(t)
	since := time.Date(2026, 3, 4, 14, 2, 0, 0, time.UTC)
	e := commander.Entry{
		Harness: "opencode", Session: "ses_1", Process: proc.Self(), Pane: "w1:p2", Since: since,
		Server: &commander.Server{URL: "http://127.0.0.1:4096"},
	}
	if err := commander.Register(p, e); err != nil {
		t.Fatal(err)
	}
	put(t, p, "a")
	is := func(want commander.Entry) {
		t.Helper()
		r := Of(t.Context(), p, false)
		if diff := cmp.Diff([]commander.Entry{want}, r.Commanders, cmpopts.IgnoreUnexported(commander.Entry{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	is(e)
	want(t, "nobody waits", Of(t.Context(), p, false).NoAwait(time.Now()), "no await, 1 wake waits; the sentinel delivers to opencode")
	a, err := awaiter.Register(p.State(), p, awaiter.Record{Process: proc.Self(), Project: p.Root, Client: proc.Self(), Harness: "opencode", Since: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	e.Waits = true
	is(e)
	if err := os.WriteFile(p.Join("commanders", fmt.Sprintf("%d-%d.json", e.Process.PID, e.Process.Start)), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := Of(t.Context(), p, false); len(r.Trouble) != 1 || len(r.Commanders) != 1 {
		t.Errorf("one that cannot be read: %v, %+v", r.Trouble, r.Commanders)
	}
}

func TestAReportTellsOfAMuteThatLastsStill(t *testing.T) {
	p := project(t)
	put(t, p, "a")
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, c := range []struct{ set, want time.Time }{{until, until}, {until.Add(-2 * time.Hour), time.Time{}}} {
		if err := p.Update(func(config *state.Config) { config.MutedUntil = c.set }); err != nil {
			t.Fatal(err)
		}
		want(t, "muted until", Of(t.Context(), p, false).MutedUntil.UTC(), c.want)
	}
}

func TestAReportTellsWhoIsWokenSlowly(t *testing.T) {
	p := project(t)
	put(t, p, "a")
	self := proc.Self()
	path := p.Join("clients", fmt.Sprintf("%d-%d.json", self.PID, self.Start))
	pace := fmt.Sprintf(`{"client":{"pid":%d,"start":%d},"boot":%q,"delivered_ns":[%d],"doubled":1}`, self.PID, self.Start, proc.BootID(), proc.SinceBoot())
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(pace), 0o600)); err != nil {
		t.Fatal(err)
	}
	r := Of(t.Context(), p, false)
	if len(r.Slowed) != 1 || r.Slowed[0].Client != self || r.Slowed[0].Interval != "30s" || time.Until(r.Slowed[0].Next) <= 0 {
		t.Errorf("%+v, %v", r.Slowed, r.Trouble)
	}
}

func TestAReportTellsWhoseTurnsFail(t *testing.T) {
	p := project(t)
	put(t, p, "a")
	config, self := t.TempDir(), proc.Self()
	t.Setenv("CLAUDE_CONFIG_DIR", config)
	now := time.Now().UTC().Format(time.RFC3339Nano)
	failed := `{"type":"user","message":{"role":"user","content":"go on"}}` + "\n" +
		`{"type":"assistant","isApiErrorMessage":true,"timestamp":"` + now + `","message":{"role":"assistant","content":[]}}` + "\n"
	session := fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":"s1","cwd":"/","version":"2.1.332","kind":"interactive","entrypoint":"cli","status":"idle"}`, self.PID, self.Start)
	for path, data := range map[string]string{fmt.Sprintf("sessions/%d.json", self.PID): session, "projects/p/s1.jsonl": failed + failed} {
		path = filepath.Join(config, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(data), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := commander.Register(p, commander.Entry{Harness: "claude", Session: "s1", Process: self}); err != nil {
		t.Fatal(err)
	}
	r := Of(t.Context(), p, false)
	if len(r.Failing) != 1 || r.Failing[0].Client != self || r.Failing[0].Turns != 2 {
		t.Fatalf("%+v, %v", r.Failing, r.Trouble)
	}
	if wait := time.Until(r.Failing[0].Next); wait < time.Minute || wait > 2*time.Minute {
		t.Errorf("they wait for %s, want two minutes since the failure", wait)
	}
}

func TestWhatCannotBeReadIsTold(t *testing.T) {
	p := project(t)
	put(t, p, "a")
	if err := os.WriteFile(p.Join("project.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := Of(t.Context(), p, false); len(r.Trouble) != 1 || r.Waiting != 1 {
		t.Errorf("%+v", r)
	}
}

func TestADeliverysReceiptIsTheLastWordOnIt(t *testing.T) {
	event := func(event, id, proof string) wake.Event { return wake.Event{Event: event, ID: id, Proof: proof} }
	for name, c := range map[string]struct {
		events []wake.Event
		want   []string
	}{
		"nothing yet":     {[]wake.Event{event("put", "a", ""), event("claimed", "a", "")}, []string{}},
		"outstanding":     {[]wake.Event{event("emitted", "a", "")}, []string{"a outstanding"}},
		"in the client":   {[]wake.Event{event("emitted", "a", ""), event("enqueued", "a", "")}, []string{"a enqueued"}},
		"proven":          {[]wake.Event{event("emitted", "a", ""), event("enqueued", "a", ""), event("delivered", "a", "turn started")}, []string{"a turn started"}},
		"another between": {[]wake.Event{event("emitted", "a", ""), event("emitted", "b", ""), event("delivered", "a", "turn failed")}, []string{"a turn failed", "b outstanding"}},
		"the second time": {[]wake.Event{event("emitted", "a", ""), event("put_back", "a", ""), event("claimed", "a", ""), event("emitted", "a", ""), event("delivered", "a", "unproven")}, []string{"a put back", "a unproven"}},
		"the latest":      {[]wake.Event{event("emitted", "1", ""), event("emitted", "2", ""), event("emitted", "3", ""), event("emitted", "4", ""), event("emitted", "5", ""), event("emitted", "6", ""), event("delivered", "1", "unproven")}, []string{"2 outstanding", "3 outstanding", "4 outstanding", "5 outstanding", "6 outstanding"}},
	} {
		got := []string{}
		for _, d := range latest(c.events) {
			got = append(got, d.ID+" "+d.Receipt)
		}
		want(t, name, got, c.want)
	}
}
