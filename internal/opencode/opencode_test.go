package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAPromptTakesTheRouteOfTheVersion(t *testing.T) {
	for version, route := range map[string]string{
		"1.18.33": "POST /session/" + ses + "/prompt_async",
		"2.0.17":  "POST /api/session/" + ses + "/prompt",
	} {
		t.Run(version, func(t *testing.T) {
			f := start(t, version)
			if err := f.client(t).Prompt(t.Context(), ses, "news <b> 77"); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(f.said, []string{"news <b> 77"}) || !slices.Equal(f.posts(), []string{route}) {
				t.Errorf("it was told %q by %q, want the text by %q alone", f.said, f.posts(), route)
			}
		})
	}
}

// What 1.x is not told the agent of, its default agent does.
func TestAPromptIsForTheAgentThatThePersonChose(t *testing.T) {
	f := start(t, "1.18.33")
	for mode, want := range map[string]string{
		``: `{"parts":[{"text":"news","type":"text"}]}`,
		`"agent":"plan","model":{"id":"m-1","providerID":"mock","variant":"high"},`:    `{"agent":"plan","model":{"modelID":"m-1","providerID":"mock"},"parts":[{"text":"news","type":"text"}],"variant":"high"}`,
		`"agent":"plan","model":{"id":"m-1","providerID":"mock","variant":"default"},`: `{"agent":"plan","model":{"modelID":"m-1","providerID":"mock"},"parts":[{"text":"news","type":"text"}]}`,
	} {
		f.mode = mode
		if err := f.client(t).Prompt(t.Context(), ses, "news"); err != nil || f.body != want {
			t.Errorf("%s: posted %s (%v), want %s", mode, f.body, err, want)
		}
	}
}

func TestOnlyAPlainAcceptanceIsSuccess(t *testing.T) {
	for _, test := range []struct {
		version string
		status  int
		body    string
		want    error
	}{
		{"1.18.33", 200, `<html></html>`, ErrUnclear},
		{"1.18.33", 201, ``, ErrUnclear},
		{"1.18.33", 202, ``, ErrUnclear},
		{"1.18.33", 302, ``, ErrNotSent},
		{"1.18.33", 400, `{"name":"BadRequest"}`, ErrNotSent},
		{"1.18.33", 401, ``, ErrNotSent},
		{"1.18.33", 404, ``, ErrNotSent},
		{"1.18.33", 408, ``, ErrUnclear},
		{"1.18.33", 303, ``, ErrUnclear},
		{"1.18.33", 499, ``, ErrUnclear},
		{"1.18.33", 500, ``, ErrUnclear},
		{"1.18.33", 502, ``, ErrUnclear},
		{"2.0.17", 200, `{"data":{"id":"msg_1"}}`, nil},
		{"2.0.17", 200, `<html></html>`, ErrUnclear},
		{"2.0.17", 200, `{}`, ErrUnclear},
		{"2.0.17", 204, ``, ErrUnclear},
		{"2.0.17", 409, `{"_tag":"ConflictError"}`, ErrNotSent},
		{"2.0.17", 503, ``, ErrUnclear},
	} {
		t.Run(fmt.Sprint(test.version, " ", test.status, " ", test.body), func(t *testing.T) {
			f := start(t, test.version)
			f.instead = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", f.URL+"/elsewhere")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}
			err := f.client(t).Prompt(t.Context(), ses, "news")
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if errors.Is(err, ErrUnclear) != errors.Is(err, ErrAnswered) {
				t.Errorf("of an answer: %v", err)
			}
			if len(f.posts()) != 1 {
				t.Errorf("asked %q, want one prompt", f.asked)
			}
		})
	}
}

func TestWhatNeverReachedTheServerIsNotSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	c, err := New(Server{URL: "http://" + listener.Addr().String(), Version: "1.18.33"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prompt(t.Context(), ses, "news"); !errors.Is(err, ErrNotSent) {
		t.Errorf("refused connection: %v, want %v", err, ErrNotSent)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := start(t, "1.18.33").client(t).Prompt(ended, ses, "news"); !errors.Is(err, ErrNotSent) {
		t.Errorf("too late: %v, want %v", err, ErrNotSent)
	}
}

func TestARequestWithoutAnAnswerIsUnclear(t *testing.T) {
	t.Run("reset", func(t *testing.T) {
		f := start(t, "1.18.33")
		f.instead = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		if err := f.client(t).Prompt(t.Context(), ses, "news"); !errors.Is(err, ErrUnclear) || errors.Is(err, ErrAnswered) {
			t.Errorf("%v, want %v", err, ErrUnclear)
		}
		if len(f.posts()) != 1 {
			t.Errorf("asked %q, want one prompt", f.asked)
		}
	})
	t.Run("silence", func(t *testing.T) {
		f := start(t, "1.18.33")
		gone := make(chan struct{})
		t.Cleanup(func() { close(gone) })
		f.instead = func(http.ResponseWriter, *http.Request) { <-gone }
		c := f.client(t)
		c.limit = 200 * time.Millisecond
		if err := c.Prompt(t.Context(), ses, "news"); !errors.Is(err, ErrUnclear) || errors.Is(err, ErrAnswered) {
			t.Errorf("%v, want %v", err, ErrUnclear)
		}
	})
}

func TestAWrongPasswordOrSessionIsNotSent(t *testing.T) {
	for _, version := range []string{"1.18.33", "2.0.17"} {
		f := start(t, version)
		stranger, err := New(Server{URL: f.URL, Version: version, Password: "another"})
		if err != nil {
			t.Fatal(err)
		}
		if err := stranger.Prompt(t.Context(), ses, "news"); !errors.Is(err, ErrNotSent) || strings.Contains(err.Error(), "another") {
			t.Errorf("%s: wrong password: %v", version, err)
		}
		for _, id := range []string{"ses_unknown", "", "bogus", "ses_1/../../x", "ses_?x", "status"} {
			if err := f.client(t).Prompt(t.Context(), id, "news"); !errors.Is(err, ErrNotSent) {
				t.Errorf("%s: session %q: %v, want %v", version, id, err, ErrNotSent)
			}
		}
		if len(f.said) > 0 {
			t.Errorf("%s: it was told %q", version, f.said)
		}
	}
}

func TestOnlyThisMachineAndKnownVersionsAreSpokenTo(t *testing.T) {
	for _, s := range []Server{
		{URL: "http://192.0.2.1:4096", Version: "1.18.33"},
		{URL: "http://example.com", Version: "1.18.33"},
		{URL: "https://127.0.0.1:4096", Version: "1.18.33"},
		{URL: "http://[::1%25a%0d%0aX:%20y]:4096", Version: "1.18.33"},
		{URL: "http://127.0.0.1:99999", Version: "1.18.33"},
		{URL: "http://localhost.example.com:4096", Version: "1.18.33"},
		{URL: "file:///etc/passwd", Version: "1.18.33"},
		{URL: "http://user:secret@127.0.0.1:1", Version: "1.18.33"},
		{URL: "", Version: "1.18.33"},
		{URL: "http://127.0.0.1:4096", Version: ""},
		{URL: "http://127.0.0.1:4096", Version: "3.0.0"},
		{URL: "http://127.0.0.1:4096", Version: "local"},
	} {
		if _, err := New(s); !errors.Is(err, ErrNotSent) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %v", s, err, ErrNotSent)
		}
	}
	for _, s := range []Server{
		{URL: "http://localhost:4096/", Version: "v1.2"},
		{URL: "http://[::1]:4096", Version: "1.18.33"},
		{URL: "http://[::ffff:127.0.0.1]", Version: "2.0.0"},
	} {
		if _, err := New(s); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestASessionIsBusyWhileItsTurnRuns(t *testing.T) {
	for _, version := range []string{"1.18.33", "2.0.17"} {
		f := start(t, version)
		for _, want := range []bool{false, true} {
			f.busy = want
			if got, err := f.client(t).Busy(t.Context(), ses); err != nil || got != want {
				t.Errorf("%s: busy is %v (%v), want %v", version, got, err, want)
			}
		}
		if got, err := f.client(t).Busy(t.Context(), "ses_other"); err != nil || got {
			t.Errorf("%s: another session is busy: %v (%v)", version, got, err)
		}
	}
}

func TestATokenIsLookedForInWhatTheUserSaid(t *testing.T) {
	for _, version := range []string{"1.18.33", "2.0.17"} {
		f := start(t, version)
		c := f.client(t)
		f.said = []string{"first", "news with token1234 in it"}
		for token, want := range map[string]bool{"token1234": true, "token9": false, "quoted": false} {
			if got, err := c.Holds(t.Context(), ses, token); err != nil || got != want {
				t.Errorf("%s: %q is there: %v (%v), want %v", version, token, got, err, want)
			}
		}
		if _, err := c.Holds(t.Context(), ses, ""); err == nil {
			t.Errorf("%s: the empty token is found everywhere", version)
		}
		if _, err := c.Holds(t.Context(), "ses_unknown", "token1234"); err == nil {
			t.Errorf("%s: an unknown session has no error", version)
		}
	}
}

func TestAServerIsTheSessionsByItsDirectory(t *testing.T) {
	for _, version := range []string{"1.18.33", "2.0.17"} {
		f := start(t, version)
		c := f.client(t)
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(f.directory, link); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{f.directory, link} {
			if err := c.Check(t.Context(), ses, dir); err != nil {
				t.Errorf("%s: %v", version, err)
			}
		}
		for _, dir := range []string{t.TempDir(), "", filepath.Dir(f.directory)} {
			if err := c.Check(t.Context(), ses, dir); err == nil {
				t.Errorf("%s: it has the session in %q", version, dir)
			}
		}
		if err := c.Check(t.Context(), "ses_unknown", f.directory); err == nil {
			t.Errorf("%s: an unknown session is there", version)
		}
	}
}

func TestAnAnswerIsReadToABound(t *testing.T) {
	f := start(t, "1.18.33")
	f.said = []string{strings.Repeat("x", most)}
	if _, err := f.client(t).Holds(t.Context(), ses, "token"); !errors.Is(err, errTooLong) {
		t.Errorf("%v, want %v", err, errTooLong)
	}
}

// record writes service.json into a state directory of the test's own.
func record(t *testing.T, v any) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "opencode", "service.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheServiceIsFoundAndTold(t *testing.T) {
	f := start(t, "2.0.17")
	record(t, object{"id": "x", "version": "2.0.16", "url": f.URL, "pid": os.Getpid(), "password": password})
	s, err := Service(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Version != "2.0.17" {
		t.Errorf("version %q, want what answers", s.Version)
	}
	c, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prompt(t.Context(), ses, "news"); err != nil || len(f.said) != 1 {
		t.Errorf("%v; it was told %q", err, f.said)
	}
}

func TestARecordWithoutItsServiceIsNone(t *testing.T) {
	f := start(t, "2.0.17")
	record(t, object{"version": "2.0.17", "url": f.URL, "pid": os.Getpid() + 1, "password": password})
	if _, err := Service(t.Context()); !errors.Is(err, ErrNoService) {
		t.Errorf("another process answers: %v, want %v", err, ErrNoService)
	}
	record(t, object{"version": "2.0.17", "url": "http://127.0.0.1:1", "pid": os.Getpid()})
	if _, err := Service(t.Context()); !errors.Is(err, ErrNoService) {
		t.Errorf("nobody answers: %v, want %v", err, ErrNoService)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if _, err := Service(t.Context()); !errors.Is(err, ErrNoService) {
		t.Errorf("no record: %v, want %v", err, ErrNoService)
	}
	record(t, object{"version": "2.0.17", "url": "http://192.0.2.1:1", "pid": os.Getpid()})
	if _, err := Service(t.Context()); err == nil {
		t.Error("a record leads to another machine")
	}
}

func TestARecordThatOthersMayWriteIsNotBelieved(t *testing.T) {
	f := start(t, "2.0.17")
	path := record(t, object{"version": "2.0.17", "url": f.URL, "pid": os.Getpid(), "password": password})
	if err := os.Chmod(path, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := Service(t.Context()); err == nil {
		t.Error("it is believed")
	}
	if len(f.asked) > 0 {
		t.Errorf("it was asked %q", f.asked)
	}
}
