package wake

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/atomicfile"
)

// hand puts a wake and claims it for a client that holds it.
func hand(t *testing.T, q *Queue, to Recipient) *Delivery {
	t.Helper()
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	if d == nil {
		t.Fatal("nothing to claim")
	}
	if err := d.Note(to); err != nil {
		t.Fatal(err)
	}
	return d
}

// told is what a Pi session's file says of a message of the user.
func (tr transcript) told(text string) {
	tr.t.Helper()
	line, err := json.Marshal(map[string]any{"type": "message", "message": map[string]any{"role": "user", "content": text}})
	if err == nil {
		err = appendTo(tr.path, append(line, '\n'))
	}
	if err != nil {
		tr.t.Fatal(err)
	}
}

func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func TestAnAcceptedDeliveryIsOverWhateverTheTranscriptShows(t *testing.T) {
	q := open(t)
	q.Grace = 0
	tr := newTranscript(t)
	id, _ := client(t)
	d := hand(t, q, Recipient{Client: id, Harness: "pi", Transcript: tr.path})
	want(t, "while it is held", where(t, q), "claimed")
	if err := d.Accepted("acknowledged"); err != nil {
		t.Fatal(err)
	}
	want(t, "the wake", where(t, q), "gone")
	want(t, "last event", lastEvent(t, q), "delivered news acknowledged")
	if es := events(t, q); es[len(es)-2] != "emitted news" {
		t.Errorf("before it %q", es[len(es)-2])
	}
	for _, stage := range []string{".claimed", ".emitted"} {
		if left, err := atomicfile.Names(q.join(stage)); len(left) > 0 || err != nil {
			t.Errorf("%s holds %q, %v", stage, left, err)
		}
	}
}

// errStop takes the place of a step, and leaves the delivery as a crash there would.
var errStop = errors.New("a crash")

func stopAt(step Step) func(Step) error {
	return func(s Step) error {
		if s == step {
			return errStop
		}
		return nil
	}
}

func TestACrashWhileAcceptingIsEndedBySettle(t *testing.T) {
	for _, c := range []struct {
		at    Step
		event string
	}{
		{Accepting, "reaped news"}, // nothing is noted: the client's word died with the process that heard it
		{Accepted, "delivered news acknowledged"},
		{Settling, "delivered news acknowledged"},
	} {
		t.Run(string(c.at), func(t *testing.T) {
			q := open(t)
			q.Grace = 0
			tr := newTranscript(t) // which never shows it
			d := hand(t, q, Recipient{Harness: "pi", Transcript: tr.path})
			q.Before = stopAt(c.at)
			if err := d.Accepted("acknowledged"); !errors.Is(err, errStop) {
				t.Fatal(err)
			}
			q.Before = nil
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			where(t, q)
			want(t, "last event", lastEvent(t, q), c.event)
		})
	}
}

func TestAnAckThatCannotBeNotedIsStillNoReasonToTellItAgain(t *testing.T) {
	q := open(t)
	q.Grace = 0
	d := hand(t, q, Recipient{Harness: "opencode"})
	// The note goes: no other can be written.
	if err := os.Remove(filepath.Join(d.dir, "to.json")); err != nil {
		t.Fatal(err)
	}
	if err := d.Accepted("acknowledged"); err == nil {
		t.Error("no error says so")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, "the wake", where(t, q), "gone")
	want(t, "last event", lastEvent(t, q), "delivered news unproven")
}

func TestADeliveryInHandWhoseOwnerDiesIsJudgedByPisSession(t *testing.T) {
	for _, c := range []struct {
		name  string
		told  bool
		none  bool // Pi has made no file yet
		dead  bool
		want  string
		event string
	}{
		{name: "the message stands there", told: true, want: "gone", event: "delivered news turn started"},
		{name: "the message stands there, and Pi died", told: true, dead: true, want: "gone", event: "delivered news turn started"},
		{name: "it does not", want: "waiting", event: "reaped news"},
		{name: "it does not, and Pi died", dead: true, want: "waiting", event: "reaped news"},
		{name: "there is no file yet", none: true, want: "waiting", event: "reaped news"},
		{name: "there was no file, and now it stands there", none: true, told: true, want: "gone", event: "delivered news turn started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := open(t)
			q.Grace = 0
			tr := newTranscript(t)
			id, cmd := client(t)
			if c.none {
				if err := os.Remove(tr.path); err != nil {
					t.Fatal(err)
				}
			}
			d := hand(t, q, Recipient{Client: id, Harness: "pi", Transcript: tr.path})
			if c.told {
				tr.told(d.Text)
			}
			if c.dead {
				cmd.Process.Kill()
				cmd.Wait()
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			want(t, "the wake", where(t, q), c.want)
			want(t, "last event", lastEvent(t, q), c.event)
		})
	}
}

func TestWhatWasSentWithoutASignIsNeverPutBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd)
		want  string
		event string
	}{
		{"nothing shows it", nil, "bad", "quarantined"},
		{"the client died", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) {
			cmd.Process.Kill()
			cmd.Wait()
		}, "bad", "quarantined"},
		{"emitted, and nothing shows it", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) { emitted(t, d) }, "bad", "quarantined"},
		{"emitted, enqueued, and the client died", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) {
			emitted(t, d)
			tr.row("enqueue", "<task-notification>"+d.Text)
			cmd.Process.Kill()
			cmd.Wait()
		}, "bad", "quarantined"},
		{"the turn started", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) { tr.row("user", d.Text) }, "gone", "delivered news turn started"},
		{"emitted, and the turn started", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) {
			emitted(t, d)
			tr.row("user", d.Text)
		}, "gone", "delivered news turn started"},
		{"enqueued, and the client lives", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) {
			tr.row("enqueue", "<task-notification>"+d.Text)
		}, "claimed", "enqueued news"},
		{"it is young", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) { q.Grace = time.Hour }, "claimed", "claimed news"},
		{"accepted after all", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) {
			if err := d.Accepted("accepted"); err != nil {
				t.Fatal(err)
			}
		}, "gone", "delivered news accepted"},
		{"released by who knows that it did not go", func(t *testing.T, q *Queue, d *Delivery, tr transcript, cmd *exec.Cmd) {
			if err := d.Release(t.Context(), "refused"); err != nil {
				t.Fatal(err)
			}
		}, "waiting", "released news"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := open(t)
			q.Grace = 0
			tr := newTranscript(t)
			id, cmd := client(t)
			d := hand(t, q, Recipient{Client: id, Harness: "claude", Transcript: tr.path})
			if err := d.Sending(); err != nil {
				t.Fatal(err)
			}
			if c.do != nil {
				c.do(t, q, d, tr, cmd)
			}
			d.Close()
			want(t, "the wake", where(t, q), c.want)
			want(t, "last event", lastEvent(t, q), c.event)
		})
	}
}

func emitted(t *testing.T, d *Delivery) {
	t.Helper()
	if err := d.Emit(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatWasSentWithoutASignAndLeavesNoTraceIsKeptAndNotToldAgain(t *testing.T) {
	q := open(t)
	q.Grace = 0
	d := hand(t, q, Recipient{Harness: "opencode"})
	if err := d.Sending(); err != nil {
		t.Fatal(err)
	}
	d.Close()
	want(t, "the wake", where(t, q), "bad")
}

func TestBeforeItIsNotedThatItIsSentADeliveryGoesBack(t *testing.T) {
	q := open(t)
	q.Grace = 0
	d := hand(t, q, Recipient{Harness: "opencode"})
	q.Before = stopAt(Sending)
	if err := d.Sending(); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	q.Before = nil
	d.Close()
	want(t, "the wake", where(t, q), "waiting")
}

func TestAClientThatCanBeAskedIsGivenTimeForIt(t *testing.T) {
	for harness, want := range map[string]string{"opencode": "claimed", "claude": "bad"} {
		q := open(t)
		d := hand(t, q, Recipient{Harness: harness})
		if err := d.Sending(); err != nil {
			t.Fatal(err)
		}
		if err := d.renote(func(n *note) { n.Awake -= 30 * time.Second }); err != nil {
			t.Fatal(err)
		}
		d.Close()
		if got := where(t, q); got != want {
			t.Errorf("after half a minute what was sent to %s is %s, want %s", harness, got, want)
		}
		if got := lastEvent(t, q); got == "reaped news" {
			t.Errorf("what was sent to %s was put back", harness)
		}
	}
}

func TestWhatWasSentByOneWhoDiedIsTakenOverByWhoCanAsk(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, d *Delivery)
		want int
	}{
		{"its owner died", func(t *testing.T, d *Delivery) { d.Close() }, 1},
		{"its owner lives", func(t *testing.T, d *Delivery) {}, 0},
		{"it was accepted", func(t *testing.T, d *Delivery) { accept(t, d); d.Close() }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := open(t)
			d := hand(t, q, Recipient{Harness: "opencode", Session: "ses_1"})
			if err := d.Sending(); err != nil {
				t.Fatal(err)
			}
			c.do(t, d)
			if all, err := q.Orphans("pi"); len(all) != 0 || err != nil {
				t.Errorf("of another harness %d, %v", len(all), err)
			}
			all, err := q.Orphans("opencode")
			if err != nil || len(all) != c.want {
				t.Fatalf("%d, %v; want %d", len(all), err, c.want)
			}
			if c.want == 0 {
				return
			}
			o := all[0]
			if o.Token != d.Token || o.To().Session != "ses_1" || len(o.Wakes) != 1 {
				t.Errorf("got %+v", o)
			}
			if again, err := q.Orphans("opencode"); len(again) != 0 || err != nil {
				t.Errorf("taken over twice: %d, %v", len(again), err)
			}
			if err := o.Release(t.Context(), "not there"); err != nil {
				t.Fatal(err)
			}
			want(t, "the wake", where(t, q), "waiting")
		})
	}
}

// accept notes that the client has the text, and dies there.
func accept(t *testing.T, d *Delivery) {
	t.Helper()
	d.q.Before = stopAt(Accepted)
	if err := d.Accepted("acknowledged"); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	d.q.Before = nil
}

func TestWhatWasNotSentYetIsNobodysToTakeOver(t *testing.T) {
	q := open(t)
	q.Grace = 0
	d := hand(t, q, Recipient{Harness: "opencode"})
	d.Close()
	if all, err := q.Orphans("opencode"); len(all) != 0 || err != nil {
		t.Errorf("%d, %v", len(all), err)
	}
	want(t, "the wake", where(t, q), "waiting")
}
