package herdr

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func listLine(agents ...string) []byte {
	return []byte(`{"id":"agent.list","result":{"type":"agent_list","agents":[` + strings.Join(agents, ",") + `]}}`)
}

func TestAListIsReadInWhateverFormItIsWritten(t *testing.T) {
	plain := Agent{PaneID: "w1:p1", Name: "a", Status: Idle, Seq: 3, HasSeq: true}
	for name, test := range map[string]struct {
		line string
		want []Agent
	}{
		"plain":        {`{"id":"agent.list","result":{"type":"agent_list","agents":[{"pane_id":"w1:p1","name":"a","agent_status":"idle","state_change_seq":3}]}}`, []Agent{plain}},
		"other orders": {`{"result":{"agents":[{"state_change_seq":3,"agent_status":"idle","name":"a","pane_id":"w1:p1"}],"type":"agent_list"},"id":"agent.list"}`, []Agent{plain}},
		"with blanks":  {" { \"id\" : \"agent.list\" ,\t\"result\" : { \"type\" : \"agent_list\", \"agents\" : [ { \"pane_id\" : \"w1:p1\" , \"name\" : \"a\", \"agent_status\":\"idle\" , \"state_change_seq\" : 3 } ] } } \r", []Agent{plain}},
		"unknown fields": {
			`{"v":[{"a":"]}"},-1.5e+3],"id":"agent.list","result":{"more":{"x":[]},"type":"agent_list","agents":[{"new":{"pane_id":"no","deep":[[{}],"\"}"]},"pane_id":"w1:p1","name":"a","agent_status":"idle","state_change_seq":3,"ok":null}],"next":false}}`,
			[]Agent{plain},
		},
		"nulls and other types": {
			`{"id":"agent.list","result":{"type":"agent_list","agents":[{"pane_id":"w1:p1","name":"a","agent_status":"idle","state_change_seq":3,"agent":null,"terminal_title":null,"agent_session":null,"cwd":7,"foreground_cwd":["x"],"launch_pending":"yes","interactive_ready":null}]}}`,
			[]Agent{plain},
		},
		"no seq, or none that is one": {
			`{"id":"agent.list","result":{"type":"agent_list","agents":[{"pane_id":"1"},{"pane_id":"2","state_change_seq":0},{"pane_id":"3","state_change_seq":-1},{"pane_id":"4","state_change_seq":null},{"pane_id":"5","state_change_seq":18446744073709551615}]}}`,
			[]Agent{{PaneID: "1"}, {PaneID: "2", HasSeq: true}, {PaneID: "3"}, {PaneID: "4"}, {PaneID: "5", Seq: 1<<64 - 1, HasSeq: true}},
		},
		"escapes": {
			`{"id":"agent.list","result":{"type":"agent_list","agents":[{"pane_id":"w1:p1","terminal_title":"a \"b\" \\ \u2733 \ud83d\ude00\n","cwd":"/c\\"}]}}`,
			[]Agent{{PaneID: "w1:p1", Title: "a \"b\" \\ ✳ 😀\n", CWD: `/c\`}},
		},
		"flags": {
			`{"id":"agent.list","result":{"type":"agent_list","agents":[{"pane_id":"w1:p1","launch_pending":true,"interactive_ready":true,"screen_detection_skipped":true},{"pane_id":"w1:p2","launch_pending":false}]}}`,
			[]Agent{{PaneID: "w1:p1", LaunchPending: true, InteractiveReady: true, ScreenDetectionSkipped: true}, {PaneID: "w1:p2"}},
		},
	} {
		var l listing
		for _, again := range []string{"", ", again"} {
			got, err := l.decode([]byte(test.line))
			if err != nil {
				t.Errorf("%s%s: %v", name, again, err)
			} else if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s%s: %s", name, again, diff)
			}
		}
	}
}

// A list that lacks agents would make them look gone: only a whole one is one.
func TestNoPartOfAListIsTakenForAList(t *testing.T) {
	line := fleet(3)
	var l listing
	if _, err := l.decode(line); err != nil {
		t.Fatal(err)
	}
	for i := range line {
		for _, l := range []*listing{{}, &l} {
			if got, err := l.decode(line[:i]); !errors.Is(err, ErrGarbage) {
				t.Fatalf("%s: %d agents, %v", line[:i], len(got), err)
			}
		}
	}
	for _, bad := range []string{
		string(line) + "}", string(line) + "{}", `{"id":"agent.list","result":{"type":"agent_list"}}`,
		`{"id":"agent.list","result":{"type":"agent_list","agents":null}}`, `{"id":"agent.list","result":{"type":"agent_list","agents":{}}}`,
		string(listLine(`{"name":"no pane"}`)), string(listLine(`7`)), string(listLine(`{"pane_id":"1"}`, ``)), string(listLine(``, `{"pane_id":"1"}`)),
	} {
		if got, err := new(listing).decode([]byte(bad)); !errors.Is(err, ErrGarbage) {
			t.Errorf("%s: %v, %v", bad, got, err)
		}
	}
}

// Agents that are as they were are not decoded again; that must never show.
func TestAListDoesNotDependOnTheOneBefore(t *testing.T) {
	a, b, c := `{"pane_id":"a","name":"x"}`, `{"pane_id":"b"}`, `{"pane_id":"c","agent_status":"idle"}`
	long := `{"pane_id":"b","cwd":"/` + strings.Repeat("x", 300) + `"}`
	a2, b2 := `{"pane_id":"a","name":"xy"}`, `{"pane_id":"b","new":1}`
	lists := [][]byte{
		listLine(), listLine(a), listLine(a, b, c), listLine(a, b), listLine(b, a, c), listLine(a2, b, c), listLine(a, b2, c),
		listLine(a, b, c, a), listLine(c), listLine(a, long), listLine(long, c), listLine(a, " "+b, c), bytes.ReplaceAll(listLine(a, b, c), []byte(","), []byte(" , ")),
	}
	for _, before := range lists {
		for _, now := range lists {
			var l listing
			first, err := l.decode(before)
			if err != nil {
				t.Fatal(err)
			}
			kept := append([]Agent(nil), first...)
			got, err := l.decode(now)
			if err != nil {
				t.Fatal(err)
			}
			want, err := new(listing).decode(now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]Agent{}, want...), append([]Agent{}, got...)); diff != "" {
				t.Errorf("%s after %s: %s", now, before, diff)
			}
			if diff := cmp.Diff(append([]Agent{}, kept...), append([]Agent{}, first...)); diff != "" {
				t.Errorf("%s changed what %s was read as: %s", now, before, diff)
			}
		}
	}
}

func TestAGarbledListLeavesTheLastOneKnown(t *testing.T) {
	var l listing
	line := fleet(5)
	want, err := l.decode(line)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.decode(line[:len(line)/2]); err == nil {
		t.Fatal("half a list was read")
	}
	got, err := l.decode(line)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOneClientMayListFromManyGoroutines(t *testing.T) {
	var l listing
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			line := listLine(fmt.Sprintf(`{"pane_id":"%d"}`, i%2), `{"pane_id":"x"}`)
			for range 200 {
				got, err := l.decode(line)
				if err != nil || len(got) != 2 || got[0].PaneID != fmt.Sprint(i%2) {
					t.Errorf("%v, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A list costs no more memory than its own text and the agents; an unchanged one costs none.
func TestAListAllocatesOncePerAgent(t *testing.T) {
	line := fleet(1000)
	if n := testing.AllocsPerRun(5, func() { new(listing).decode(line) }); n > 1100 {
		t.Errorf("a new list of 1000: %v allocations", n)
	}
	var l listing
	if n := testing.AllocsPerRun(5, func() { l.decode(line) }); n > 4 {
		t.Errorf("an unchanged list of 1000: %v allocations", n)
	}
}

func TestTheMemoryOfAnAnswerIsTheNextOnesUnlessSomebodyHasIt(t *testing.T) {
	var s spare
	one, other := s.lines(nil), s.lines(nil)
	if &one.buf[0] == &other.buf[0] {
		t.Fatal("two who read at once share their memory")
	}
	one.buf = make([]byte, 4*firstBuf)
	s.keep(one)
	s.keep(other) // smaller: it does not take the place of the larger one
	if next := s.lines(nil); &next.buf[0] != &one.buf[0] {
		t.Error("the memory of the largest answer is not used again")
	}
	one.buf = make([]byte, 2*keptBuf)
	s.keep(one)
	if next := s.lines(nil); len(next.buf) > keptBuf {
		t.Errorf("%d bytes are kept", len(next.buf))
	}
}

func FuzzList(f *testing.F) {
	f.Add(fleet(2), fleet(3))
	f.Add(listLine(`{"pane_id":"a"}`), listLine(`{"pane_id":"a","x":"\\"}`))
	f.Add([]byte(`{"id":"","error":{"code":"x","message":"y"}}`), listLine())
	f.Fuzz(func(t *testing.T, before, now []byte) {
		var l listing
		l.decode(before)
		got, err := l.decode(now)
		want, wantErr := new(listing).decode(now)
		if (err == nil) != (wantErr == nil) || len(got) != len(want) {
			t.Fatalf("%d agents, %v; alone %d, %v", len(got), err, len(want), wantErr)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%+v; alone %+v", got[i], want[i])
			}
		}
	})
}
