package herdrtest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
)

func TestAConnectionIsGoodForOneRequest(t *testing.T) {
	srv := start(t, 20)
	got := raw(t, srv, `{"id":"a","method":"ping","params":{}}`+"\n"+`{"id":"b","method":"ping","params":{}}`)
	want(t, "lines", strings.Count(got, "\n"), 1)
	r := parse(t, got)
	want(t, "id", r.ID, "a")
	want(t, "protocol", r.at("protocol"), any(20.0))
	want(t, "version", r.at("version"), any("0.8.2"))
	want(t, "requests", len(srv.Requests("")), 1)
}

func TestEachProfileTellsItsProtocolAndRelease(t *testing.T) {
	for protocol, version := range map[int]string{17: "0.7.5", 19: "0.8.0", 20: "0.8.2", 22: "0.9.0"} {
		r := must(t, start(t, protocol), "ping", "{}")
		want(t, "version", r.at("version"), any(version))
		want(t, "protocol", r.at("protocol"), any(float64(protocol)))
	}
}

func TestARequestThatDoesNotParseLosesItsID(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 100})
	for name, line := range map[string]string{
		"no id":             `{"method":"ping","params":{}}`,
		"number for an id":  `{"id":1,"method":"ping","params":{}}`,
		"no params":         `{"id":"1","method":"agent.list"}`,
		"null params":       `{"id":"1","method":"agent.list","params":null}`,
		"missing field":     `{"id":"1","method":"agent.get","params":{}}`,
		"wrong type":        `{"id":"1","method":"agent.get","params":{"target":7}}`,
		"unknown source":    `{"id":"1","method":"pane.read","params":{"pane_id":"w1:p1","source":"recent-unwrapped"}}`,
		"unknown direction": `{"id":"1","method":"pane.split","params":{"direction":"left"}}`,
		"unknown event":     `{"id":"1","method":"events.subscribe","params":{"subscriptions":[{"type":"agent.done"}]}}`,
		"removed method":    `{"id":"1","method":"agent.send","params":{"target":"w1:p1","text":"x"}}`,
		"no JSON":           `ping`,
		"empty":             ``,
	} {
		r := parse(t, raw(t, srv, line))
		if r.ID != "" || r.code() != "invalid_request" {
			t.Errorf("%s: %+v, want an invalid_request without an id", name, r)
		}
	}
}

func TestUnknownFieldsOfARequestAreTolerated(t *testing.T) {
	r := parse(t, raw(t, start(t, 20), `{"id":"x","method":"ping","params":{"new":1},"more":[]}`))
	want(t, "error", r.code(), "")
}

func TestWhatTheFakeDoesNotModelSaysSo(t *testing.T) {
	refused(t, start(t, 20), "plugin.list", "{}", "not_implemented")
}

func TestARequestMayNotBeLongerThanAMebibyte(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{})
	long := `{"target":"` + p.ID + `","text":"` + strings.Repeat("x", 1<<20) + `"}`
	r := parse(t, raw(t, srv, request("agent.prompt", long)))
	if r.ID != "" || r.code() != "invalid_request" {
		t.Errorf("a long request: %+v, want invalid_request without an id", r)
	}
	r = ask(t, srv, "agent.prompt", `{"target":"`+p.ID+`","text":"`+strings.Repeat("x", 1<<20-200)+`"}`)
	want(t, "error of one just below", r.code(), "")
}

func TestALineInTwoWritesCostsATick(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{Speed: 1})
	c := dial(t, srv)
	line := request("ping", "{}") + "\n"
	began := time.Now()
	if _, err := c.Write([]byte(line[:10])); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
	c.Write([]byte(line[10:]))
	if r := parse(t, c.line()); r.Error != nil {
		t.Fatal(r.Error)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("it took %v, want 100ms or more", took)
	}
}

func TestARequestThatDoesNotArriveIsGivenUp(t *testing.T) {
	c := dial(t, start(t, 20))
	c.Write([]byte(`{"id":`))
	want(t, "error", parse(t, c.line()).code(), "invalid_request")
}

func TestTheSocketIsTheUsersAlone(t *testing.T) {
	srv := start(t, 20)
	info, err := os.Stat(srv.Socket)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "mode", info.Mode().Perm(), 0o600)
	if len(srv.Socket) > 100 {
		t.Errorf("the path %s is %d bytes, want 100 at most", srv.Socket, len(srv.Socket))
	}
}

func TestTheTranscriptHasEveryLine(t *testing.T) {
	var b bytes.Buffer
	srv := herdrtest.New(t, herdrtest.Options{Transcript: &b})
	raw(t, srv, request("ping", "{}"))
	raw(t, srv, request("agent.get", `{"target":"nobody"}`))
	srv.Stop()
	var kinds []string
	for line := range strings.Lines(b.String()) {
		kind, text, _ := strings.Cut(line, " ")
		if !json.Valid([]byte(text)) {
			t.Errorf("the transcript has %q, want JSON", text)
		}
		kinds = append(kinds, kind)
	}
	want(t, "kinds", strings.Join(kinds, " "), "request success_response request error_response")
}

func TestALineThatIsNotInTheSchemaFailsTheTest(t *testing.T) {
	rec := &recorder{TB: t}
	srv := start(rec, 20)
	raw(t, srv, `{"id":"1","method":"agent.send","params":{"target":"w1:p1","text":"x"}}`)
	if said := rec.complaints(); len(said) != 1 || !strings.Contains(said[0], "agent.send") {
		t.Errorf("complaints: %q, want one about agent.send", said)
	}
}
