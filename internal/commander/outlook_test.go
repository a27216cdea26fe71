package commander

import "testing"

func TestTheOutlookGoesByWhoCanBeReached(t *testing.T) {
	const turn = "delivered at the end of the next turn"
	claude := Entry{Harness: "claude", Pane: "w1:p2", Socket: "/s", Terminal: "term_1"}
	for _, c := range []struct {
		waiting int
		live    []Entry
		nudges  bool
		want    string
	}{
		{1, nil, true, "1 wake waits; " + turn},
		{2, []Entry{claude}, false, "2 wakes wait; " + turn},
		{2, []Entry{claude}, true, "2 wakes wait; the sentinel types into pane w1:p2 once claude is idle there"},
		{2, []Entry{{Harness: "claude", Pane: "w1:p2"}}, true, "2 wakes wait; " + turn},
		{2, []Entry{claude, openCode("http://127.0.0.1:1", "1.18.33", "ses_1")}, true, "2 wakes wait; the sentinel delivers to opencode"},
		{2, []Entry{openCode("", "2.0.17", "ses_1")}, false, "2 wakes wait; the sentinel delivers to opencode"},
		{2, []Entry{claude, openCode("", "1.18.33", "ses_1")}, false, "2 wakes wait; " + turn},
		{2, []Entry{openCode("http://127.0.0.1:1", "1.18.33", "")}, false, "2 wakes wait; " + turn},
		{2, []Entry{{Harness: "opencode", Session: "ses_1"}}, false, "2 wakes wait; " + turn},
	} {
		if got := Outlook(c.waiting, c.live, c.nudges); got != c.want {
			t.Errorf("%d of %+v: %q, want %q", c.waiting, c.live, got, c.want)
		}
	}
}

func openCode(url, version, session string) Entry {
	return Entry{Harness: "opencode", Session: session, Server: &Server{URL: url, Version: version}}
}
