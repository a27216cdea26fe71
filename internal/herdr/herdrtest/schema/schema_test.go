package schema

import (
	"strings"
	"testing"
)

func TestEveryFixtureFitsTheSchema(t *testing.T) {
	n := 0
	for kind, line := range Fixtures() {
		n++
		if err := Validate(kind, line); err != nil {
			t.Errorf("%s %s: %v", kind, line, err)
		}
	}
	if n < 25 {
		t.Errorf("there are %d fixtures, want 25 or more", n)
	}
}

func TestWhatHerdrWouldNotSayDoesNotFitTheSchema(t *testing.T) {
	for _, bad := range []struct{ kind, line string }{
		{"request", `{"id":"1","method":"agent.send","params":{"target":"w1:p1","text":"x"}}`},
		{"request", `{"id":"1","method":"agent.list"}`},
		{"request", `{"id":1,"method":"ping","params":{}}`},
		{"request", `{"id":"1","method":"pane.read","params":{"pane_id":"w1:p1","source":"recent-unwrapped"}}`},
		{"success_response", `{"id":"1","result":{"type":"agent_list","agents":[{"pane_id":"w1:p1","agent_status":"running"}]}}`},
		{"success_response", `{"id":"1","result":{"type":"agents","agents":[]}}`},
		{"error_response", `{"id":"1","error":"gone"}`},
		{"event", `{"event":"pane.closed","data":{"type":"pane_closed","pane_id":"w1:p1","workspace_id":"w1"}}`},
		{"subscription_event", `{"event":"pane_agent_status_changed","data":{"pane_id":"w1:p1","workspace_id":"w1","agent_status":"idle"}}`},
		{"letter", `{}`},
		{"request", `{`},
	} {
		if Validate(bad.kind, []byte(bad.line)) == nil {
			t.Errorf("a %s may be %s, want an error", bad.kind, bad.line)
		}
	}
}

func TestWhatIsWrongIsSaidOfTheMethodThatIsMeant(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":"1","method":"agent.send","params":{}}`:                                          "at '/': no such method or type",
		`{"id":"1","method":"agent.get","params":{}}`:                                           "at '/params': missing property 'target'",
		`{"id":"1","method":"pane.read","params":{"pane_id":"w1:p1","source":"latest"}}`:        "at '/params/source': value must be one of",
		`{"id":"1","method":"events.subscribe","params":{"subscriptions":[{"type":"pane.x"}]}}`: "at '/params/subscriptions/0': no such method or type",
	} {
		err := Validate("request", []byte(line))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
