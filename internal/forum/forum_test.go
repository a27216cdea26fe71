package forum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vx/internal/atomicfile"
	"vx/internal/wake"
)

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestMessagesOfASessionAreToldInOneLine(t *testing.T) {
	b := open(t)
	post(t, b, Message{Session: "s-1", File: "notes.md", Text: "first"})
	post(t, b, Message{Session: "s-1", File: "notes.md", Text: "second"})
	post(t, b, Message{Session: "s-2", File: "plan.md", Ended: true})
	post(t, b, Message{Session: "s-2", File: "plan.md", Text: "a late one"})
	got := told(t, b)
	slices.Sort(got)
	want(t, "told", got, []string{
		"forum session notes.md: 2 new messages (ended: false). Run vx forum inbox",
		"forum session plan.md: 2 new messages (ended: true). Run vx forum inbox",
	})
	if got := told(t, b); len(got) > 0 || len(waiting(t, b)) != 4 {
		t.Errorf("told again: %q; %d wait", got, len(waiting(t, b)))
	}
}

func TestAPostIsAMessageAndAWakeOfItsSession(t *testing.T) {
	b := open(t)
	m := post(t, b, Message{ID: "Card 7/a", Session: "s-1", File: "notes.md", Text: "less, please"})
	all := waiting(t, b)
	if len(all) != 1 || all[0].ID != "Card 7/a" || all[0].Text != "less, please" || !all[0].Posted.Equal(m.Posted) || all[0].WakeID == "" {
		t.Errorf("waiting %+v", all)
	}
	fi, err := os.Stat(b.join(nameOf("Card 7/a")))
	if err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	l, err := wake.Open(b.Project).List(0)
	if err != nil || len(l.Waiting) != 1 || l.Waiting[0].ID != all[0].WakeID || l.Waiting[0].Key != "s-1" {
		t.Errorf("the queue holds %+v, %v", l.Waiting, err)
	}
	if _, err := os.Stat(b.Project.Join("wakes", "forum", "s-1.json")); err != nil {
		t.Error(err)
	}
}

func TestWhatIsPostedTwiceIsThereOnceAndRingsOnce(t *testing.T) {
	b := open(t)
	again := func(when string) {
		t.Helper()
		m, fresh, err := b.Post(t.Context(), Message{ID: "m1", Session: "other", Text: "changed"})
		if err != nil || fresh || m.Text != "words" || m.Session != "s" {
			t.Errorf("%s: %+v, new %v, %v", when, m, fresh, err)
		}
	}
	post(t, b, Message{ID: "m1", Session: "s", Text: "words"})
	again("while its wake waits")
	want(t, "told", len(told(t, b)), 1)
	again("once it was told")
	want(t, "waiting", len(waiting(t, b)), 1)
	acknowledge(t, b, waiting(t, b), 1)
	again("once it was acknowledged")
	want(t, "waiting", len(waiting(t, b)), 0)
	want(t, "told again", told(t, b), nil)
}

func acknowledge(t *testing.T, b *Inbox, all []Message, wantN int) {
	t.Helper()
	if n, err := b.Acknowledge(t.Context(), all); n != wantN || err != nil {
		t.Errorf("acknowledged %d, want %d, %v", n, wantN, err)
	}
}

func TestAWakeIsCountedWhenItIsDelivered(t *testing.T) {
	b := open(t)
	first := post(t, b, Message{Session: "s", File: "notes.md", Text: "first"})
	second := post(t, b, Message{Session: "s", File: "notes.md", Text: "second", Ended: true})
	find := func(m Message) []Message {
		found, err := b.Find(waiting(t, b), []string{m.ID})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	acknowledge(t, b, find(second), 1)
	want(t, "told", told(t, b), []string{"forum session notes.md: 1 new message (ended: false). Run vx forum inbox"})
	post(t, b, Message{Session: "s", File: "notes.md", Text: "third"})
	acknowledge(t, b, find(first), 1)
	acknowledge(t, b, waiting(t, b), 1)
	want(t, "told once all are acknowledged", told(t, b), nil)
	events, err := wake.Open(b.Project).History(0)
	if err != nil || !slices.ContainsFunc(events, func(e wake.Event) bool { return e.Event == "dropped" && e.Why == "acknowledged" }) {
		t.Errorf("the history says %+v, %v", events, err)
	}
}

func TestWhatCannotBeReadIsToldAsItWas(t *testing.T) {
	b := open(t)
	m := post(t, b, Message{Session: "s", File: "notes.md", Text: "words"})
	if err := os.WriteFile(b.join(nameOf(m.ID)), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(b.join(nameOf(m.ID)), old, old); err != nil {
		t.Fatal(err)
	}
	if all, bad := b.Waiting(); len(all) != 0 || len(bad) != 1 {
		t.Errorf("waiting %+v, %v", all, bad)
	}
	want(t, "told", told(t, b), []string{"forum session notes.md: 1 new message (ended: false). Run vx forum inbox"})
	if _, fresh, err := b.Post(t.Context(), Message{ID: "other", Session: "s"}); !fresh || err != nil {
		t.Errorf("another one: %v, %v", fresh, err)
	}
}

func TestAWakeThatWasPutByHandIsNews(t *testing.T) {
	b := open(t)
	q := wake.Open(b.Project)
	for _, w := range []wake.Wake{{Kind: wake.KindForum, Title: "look"}, {Kind: wake.KindMessage, Key: "s", Title: "listen"}} {
		if _, err := q.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(told(t, b), "\n"); !strings.Contains(got, ": look") || !strings.Contains(got, ": listen") {
		t.Errorf("told %q", got)
	}
}

func TestOnlyWhatWasReadIsAcknowledged(t *testing.T) {
	b := open(t)
	drop(t, b, "a.json", `{"text":"one"}`)
	drop(t, b, "b.json", `{"text":"two"}`)
	drop(t, b, "c.json", `{"text":"three","mark":[1]}`)
	seen := waiting(t, b)
	drop(t, b, "a.json", `{"text":"another"}`)
	if err := os.Remove(b.join("b.json")); err != nil {
		t.Fatal(err)
	}
	recoverAll(t, b) // which writes into c.json
	acknowledge(t, b, seen, 1)
	if all := waiting(t, b); len(all) != 1 || all[0].Text != "another" {
		t.Errorf("waiting %+v", all)
	}
	data, err := os.ReadFile(b.join(acknowledged, "c.json"))
	if err != nil || !strings.HasPrefix(string(data), `{"text":"three","mark":[1]`) {
		t.Errorf("kept %q, %v", data, err)
	}
}

func TestAMessageThatAScriptDroppedIsRungForOnce(t *testing.T) {
	b := open(t)
	drop(t, b, "card-1.json", `{"text":"a \u003c b", "file":"notes.md","line":{"from":3}}`+"\n")
	drop(t, b, "card-2.json", `{"id":"elsewhere","session":"s","posted_at":"2026-01-02T03:04:05Z"}`)
	drop(t, b, "half.json", `{"text":`)
	drop(t, b, "number.json", `7`)
	drop(t, b, "readme.txt", `hello`)
	all := waiting(t, b)
	if len(all) != 2 || all[0].ID != "card-2" || all[1].ID != "card-1" || all[1].Session != "notes.md" {
		t.Fatalf("waiting %+v", all)
	}
	recoverAll(t, b)
	recoverAll(t, b)
	data, err := os.ReadFile(b.join("card-1.json"))
	if err != nil || !strings.HasPrefix(string(data), `{"text":"a \u003c b", "file":"notes.md","line":{"from":3},"wake_id":"`) {
		t.Errorf("its file is %q, %v", data, err)
	}
	got := told(t, b)
	slices.Sort(got)
	want(t, "told", got, []string{
		"forum session notes.md: 1 new message (ended: false). Run vx forum inbox",
		"forum session s: 1 new message (ended: false). Run vx forum inbox",
	})
	recoverAll(t, b)
	want(t, "told again", told(t, b), nil)
	if after := waiting(t, b); len(after) != 2 || !after[1].Posted.Equal(all[1].Posted) {
		t.Errorf("waiting then %+v", after)
	}
}

func TestTrapsInTheInboxAreNamedAndNotWalkedInto(t *testing.T) {
	b := open(t)
	post(t, b, Message{ID: "m1", Session: "s", Text: "words"})
	big, err := os.Create(b.join("big.json"))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(big.Truncate(maxBytes+1), big.Close(), syscall.Mkfifo(b.join("fifo.json"), 0o600),
		os.Symlink("m1.json", b.join("link.json")), os.Mkdir(b.join("dir.json"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	if all, bad := b.Waiting(); len(all) != 1 || len(bad) != 4 {
		t.Errorf("waiting %+v, %q", all, bad)
	}
	if err := Recover(t.Context(), b.Project); err == nil || !strings.Contains(err.Error(), "fifo.json") {
		t.Errorf("%v", err)
	}
	want(t, "told", len(told(t, b)), 1)
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	b := open(t)
	for _, m := range []Message{
		{ID: strings.Repeat("x", maxName+1), Session: "s"}, {Session: strings.Repeat("x", maxName+1)}, {Session: ""},
		{Session: "s", File: strings.Repeat("x", maxFile+1)}, {Session: "s", Text: strings.Repeat("x", MaxText+1)},
	} {
		if _, fresh, err := b.Post(t.Context(), m); err == nil || fresh {
			t.Errorf("%.40v was posted", m)
		}
	}
	m := post(t, b, Message{ID: strings.Repeat("\x01", maxName), Session: "s", Text: strings.Repeat("\x01", MaxText)})
	if all := waiting(t, b); len(all) != 1 || all[0].ID != m.ID || all[0].Text != m.Text {
		t.Errorf("the largest is not there whole: %d", len(all))
	}
}

func TestAMessageIsFoundByTheBeginningOfItsID(t *testing.T) {
	b := open(t)
	for _, id := range []string{"card-1", "card-10", "note"} {
		post(t, b, Message{ID: id, Session: "s", Text: id})
	}
	all := waiting(t, b)
	for ids, want := range map[string]string{"card-1": "card-1", "card-10 no": "card-10 note", "n n": "note note"} {
		found, err := b.Find(all, strings.Fields(ids))
		var got []string
		for _, m := range found {
			got = append(got, m.ID)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: found %q, %v", ids, got, err)
		}
	}
	for _, id := range []string{"card", "x", "", "../../m"} {
		if _, err := b.Find(all, []string{id}); err == nil {
			t.Errorf("%q is found", id)
		}
	}
	acknowledge(t, b, all, 3)
	if found, err := b.Find(waiting(t, b), []string{"note"}); len(found) != 0 || err != nil {
		t.Errorf("one that was acknowledged: %v, %v", found, err)
	}
}

// before is what an inbox may hold of a session before another message comes.
var before = []string{"nothing", "one that waits to be told", "one that was told"}

func scene(t *testing.T, before string) *Inbox {
	b := open(t)
	if before != "nothing" {
		post(t, b, Message{Session: "s", File: "notes.md", Text: "earlier"})
	}
	if before == "one that was told" {
		want(t, "told before", len(told(t, b)), 1)
	}
	return b
}

// judge recovers and counts: what came is rung for once if it is there, and not at all if it is not.
func judge(t *testing.T, b *Inbox, before, what string) {
	t.Helper()
	what = before + ": " + what
	recoverAll(t, b)
	lines := []string{
		"forum session notes.md: 1 new message (ended: false). Run vx forum inbox",
		"forum session notes.md: 2 new messages (ended: false). Run vx forum inbox",
	}
	n := len(waiting(t, b))
	var wanted []string
	switch {
	case before != "nothing" && n == 0:
		t.Errorf("%s: the earlier message is gone", what)
	case n == 2, n == 1 && before != "one that was told":
		wanted = lines[n-1 : n]
	}
	want(t, what+": told", told(t, b), wanted)
	recoverAll(t, b)
	want(t, what+": told again", told(t, b), nil)
	asides, err := wake.Open(b.Project).Asides()
	if err != nil || len(asides) > 0 {
		t.Errorf("%s: %d are left beside the queue, %v", what, len(asides), err)
	}
}

func TestACrashAtAnyStepOfAPostLosesAndInventsNothing(t *testing.T) {
	for _, before := range before {
		for nth := 1; ; nth++ {
			b := scene(t, before)
			step := die(t, b, "post", nth)
			judge(t, b, before, fmt.Sprintf("died at step %d, %s", nth, step))
			if step == "" {
				if nth < 8 {
					t.Errorf("there were %d steps", nth-1)
				}
				break
			}
		}
	}
}

func TestACrashAtAnyStepOfTheRecoveryLosesAndInventsNothing(t *testing.T) {
	for _, before := range before {
		for _, dropped := range []bool{false, true} {
			for nth := 1; ; nth++ {
				b := scene(t, before)
				if dropped {
					drop(t, b, "card.json", `{"text":"by hand","session":"s","file":"notes.md"}`)
				} else {
					entering(t, b)
				}
				step := die(t, b, "recover", nth)
				kept := 1
				if before != "nothing" {
					kept++
				}
				want(t, "waiting", len(waiting(t, b)), kept)
				judge(t, b, before, fmt.Sprintf("dropped %v, died at step %d, %s", dropped, nth, step))
				if step == "" {
					break
				}
			}
		}
	}
}

// entering leaves a post as one that died right before its wake entered the queue.
func entering(t *testing.T, b *Inbox) {
	t.Helper()
	b.queue.Before = func(s wake.Step) error {
		if s == wake.Entering {
			return errors.New("died")
		}
		return nil
	}
	_, _, err := b.Post(t.Context(), Message{ID: "m1", Session: "s", File: "notes.md", Text: "more"})
	b.queue.Before = nil
	if err == nil {
		t.Fatal("it did not die")
	}
}

func TestAPostThatIsTriedAgainRings(t *testing.T) {
	b := open(t)
	entering(t, b)
	want(t, "told before", told(t, b), nil)
	if _, fresh, err := b.Post(t.Context(), Message{ID: "m1", Session: "s"}); fresh || err != nil {
		t.Errorf("new %v, %v", fresh, err)
	}
	want(t, "told", len(told(t, b)), 1)
}

// Others of the session may have been folded into it.
func TestTheWakeOfAnAcknowledgedMessageStillEnters(t *testing.T) {
	b := open(t)
	post(t, b, Message{Session: "s", File: "notes.md", Text: "earlier"})
	atomicfile.Before = func(step, path string) error {
		if step == "rename" && strings.Contains(path, filepath.Join("wakes", "forum")) {
			return errors.New("died")
		}
		return nil
	}
	_, _, err := b.Post(t.Context(), Message{ID: "m1", Session: "s", File: "notes.md", Text: "more"})
	atomicfile.Before = nil
	if err == nil {
		t.Fatal("it did not die")
	}
	want(t, "told before", told(t, b), nil)
	found, err := b.Find(waiting(t, b), []string{"m1"})
	if err != nil {
		t.Fatal(err)
	}
	acknowledge(t, b, found, 1)
	judge(t, b, "one that waits to be told", "acknowledged")
}

// What a failing disk does to a post: it is there and is told, or it is not and is not.
func TestAFailureOfAnyStepLosesAndInventsNothing(t *testing.T) {
	for _, before := range before {
		for nth, count := 1, 1; nth <= count; nth++ {
			b := scene(t, before)
			count = 0
			step := func(name string) error {
				if count++; count == nth {
					return &os.PathError{Op: name, Path: "x", Err: syscall.ENOSPC}
				}
				return nil
			}
			b.queue.Before = func(s wake.Step) error { return step(string(s)) }
			atomicfile.Before = func(s, _ string) error { return step(s) }
			_, _, err := b.Post(t.Context(), Message{ID: "m1", Session: "s", File: "notes.md", Text: "more"})
			b.queue.Before, atomicfile.Before = nil, nil
			judge(t, b, before, fmt.Sprintf("failed at step %d (%v)", nth, err))
			count++
		}
	}
}

func TestAnInboxInWhichNothingHappenedIsNotLookedThrough(t *testing.T) {
	b := open(t)
	var w Watch
	if w.Look(b.Project) {
		t.Error("without an inbox there is something to do")
	}
	recoverAll(t, b)
	if _, err := os.Stat(b.Dir()); err == nil {
		t.Error("looking made an inbox")
	}
	drop(t, b, "a.json", `{"text":"one"}`)
	for range 2 {
		if !w.Look(b.Project) {
			t.Error("what came a moment ago is not looked for")
		}
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(b.Dir(), long, long); err != nil {
		t.Fatal(err)
	}
	if !w.Look(b.Project) || w.Look(b.Project) {
		t.Error("an inbox that was left alone is looked through twice, or never")
	}
	drop(t, b, "b.json", `{"text":"two"}`)
	if !w.Look(b.Project) {
		t.Error("what came since is not looked for")
	}
}
