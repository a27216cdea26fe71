package commander

import "testing"

func TestTheOutlookGoesByWhoCanBeReached(t *testing.T) {
	const turn = "delivered at the end of the next turn"
	for _, c := range []struct {
		waiting int
		live    []Entry
		want    string
	}{
		{1, nil, "1 wake waits; " + turn},
		{2, []Entry{{Harness: "claude"}, {Harness: "opencode", Server: &Server{}}}, "2 wakes wait; " + turn},
		{2, []Entry{{Harness: "claude"}, {Harness: "opencode", Server: &Server{URL: "http://127.0.0.1:1"}}}, "2 wakes wait; the sentinel delivers to opencode"},
	} {
		if got := Outlook(c.waiting, c.live); got != c.want {
			t.Errorf("%d of %+v: %q, want %q", c.waiting, c.live, got, c.want)
		}
	}
}
