package wake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vx/internal/lock"
	"vx/internal/proc"
)

// transcript is a client's transcript that a test writes.
type transcript struct {
	t    *testing.T
	path string
}

func newTranscript(t *testing.T) transcript {
	tr := transcript{t, filepath.Join(t.TempDir(), "session-1.jsonl")}
	tr.row("user", "hello")
	return tr
}

func (tr transcript) row(kind, text string) {
	tr.t.Helper()
	row := map[string]any{"type": kind}
	switch kind {
	case "user":
		row["message"] = map[string]any{"role": "user", "content": text}
	case "assistant":
		row["message"] = map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}}
	case "error":
		row["type"], row["isApiErrorMessage"] = "assistant", true
		row["message"] = map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}}
	case "of tomorrow":
		row["text"] = text
	case "enqueue":
		row = map[string]any{"type": "queue-operation", "operation": "enqueue", "content": text}
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // as the client writes it
	if err := enc.Encode(row); err != nil {
		tr.t.Fatal(err)
	}
	f, err := os.OpenFile(tr.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tr.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(data.Bytes()); err != nil {
		tr.t.Fatal(err)
	}
}

// client is a process that stands for the recipient's.
func client(t *testing.T) (proc.ID, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	id, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id, cmd
}

// emit puts a wake and delivers it; the owner is gone afterwards.
func emit(t *testing.T, q *Queue, to Recipient) *Delivery {
	t.Helper()
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	if d == nil {
		t.Fatal("nothing to claim")
	}
	if err := errors.Join(d.Note(to), d.Emit(), d.Close()); err != nil {
		t.Fatal(err)
	}
	return d
}

// where tells what became of the only wake.
func where(t *testing.T, q *Queue) string {
	t.Helper()
	if err := q.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := list(t, q)
	switch n := fmt.Sprint(len(l.Waiting), len(l.Claimed), len(l.Emitted), len(l.Bad)); n {
	case "1 0 0 0":
		return "waiting"
	case "0 1 0 0":
		return "claimed"
	case "0 0 1 0":
		return "emitted"
	case "0 0 0 1":
		return "bad"
	case "0 0 0 0":
		return "gone"
	default:
		return n
	}
}

func lastEvent(t *testing.T, q *Queue) string {
	t.Helper()
	es := events(t, q)
	return es[len(es)-1]
}

func TestAReceiptEndsADelivery(t *testing.T) {
	type row struct{ kind, text string }
	tests := []struct {
		name   string
		rows   []row // TOKEN stands for the message's text
		before []row // written before the delivery
		dead   bool
		want   string
		event  string
	}{
		{name: "the turn started", rows: []row{{"enqueue", "TOKEN"}, {"user", "TOKEN"}}, want: "gone", event: "delivered news turn started"},
		{name: "the turn started and then the client died", rows: []row{{"enqueue", "TOKEN"}, {"user", "TOKEN"}}, dead: true, want: "gone", event: "delivered news turn started"},
		{name: "the turn failed", rows: []row{{"user", "TOKEN"}, {"error", "overloaded"}}, want: "gone", event: "delivered news turn failed"},
		{name: "only enqueued, the client lives", rows: []row{{"enqueue", "TOKEN"}}, want: "emitted", event: "enqueued news"},
		{name: "only enqueued, the client died", rows: []row{{"enqueue", "TOKEN"}}, dead: true, want: "waiting", event: "put_back news"},
		{name: "nothing, the client lives", want: "waiting", event: "put_back news"},
		{name: "nothing, the client died", dead: true, want: "waiting", event: "put_back news"},
		{name: "the id and the title stand there for other reasons", rows: []row{{"user", "ID news"}, {"assistant", "ID"}}, want: "waiting", event: "put_back news"},
		{name: "the model echoes the token, but the turn is another's", rows: []row{{"assistant", "TOKEN"}}, want: "waiting", event: "put_back news"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := open(t)
			q.Grace = 0
			tr := newTranscript(t)
			id, cmd := client(t)
			d := emit(t, q, Recipient{Client: id, Harness: "claude", Transcript: tr.path})
			for _, r := range tt.rows {
				text := strings.ReplaceAll(r.text, "TOKEN", "<task-notification>"+d.Text)
				tr.row(r.kind, strings.ReplaceAll(text, "ID", d.Wakes[0].ID))
			}
			if tt.dead {
				cmd.Process.Kill()
				cmd.Wait()
			}
			want(t, "the wake", where(t, q), tt.want)
			want(t, "last event", lastEvent(t, q), tt.event)
		})
	}
}

func TestATokenBeforeTheNotedSizeProvesNothing(t *testing.T) {
	q := open(t)
	q.Grace = 0
	tr := newTranscript(t)
	id, _ := client(t)
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	tr.row("user", d.Text)
	if err := errors.Join(d.Note(Recipient{Client: id, Transcript: tr.path}), d.Emit(), d.Close()); err != nil {
		t.Fatal(err)
	}
	want(t, "the wake", where(t, q), "waiting")
}

func TestAfterClearTheReceiptIsFoundInTheNewTranscript(t *testing.T) {
	q := open(t)
	q.Grace = 0
	tr := newTranscript(t)
	id, _ := client(t)
	d := emit(t, q, Recipient{Client: id, Transcript: tr.path})
	next := transcript{t, filepath.Join(filepath.Dir(tr.path), "session-2.jsonl")}
	next.row("user", d.Text)
	want(t, "the wake", where(t, q), "gone")
}

func TestATranscriptThatCannotBeReadCostsNoSecondDelivery(t *testing.T) {
	damage := map[string]func(path string) error{
		"missing": os.Remove,
		"rotated": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a directory": func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			q := open(t)
			q.Grace = 0
			tr := newTranscript(t)
			id, _ := client(t)
			emit(t, q, Recipient{Client: id, Transcript: tr.path})
			if err := do(tr.path); err != nil {
				t.Fatal(err)
			}
			want(t, "the wake", where(t, q), "gone")
			want(t, "last event", lastEvent(t, q), "delivered news unproven")
		})
	}
}

func TestATranscriptThatComesLateStillProvesTheDelivery(t *testing.T) {
	q := open(t)
	tr := newTranscript(t)
	id, _ := client(t)
	if err := os.Remove(tr.path); err != nil {
		t.Fatal(err)
	}
	d := emit(t, q, Recipient{Client: id, Transcript: tr.path})
	n, err := readNote(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	n.Awake -= 2 * q.Grace
	if err := rewriteNote(d.dir, *n); err != nil {
		t.Fatal(err)
	}
	want(t, "the wake without a transcript", where(t, q), "emitted")
	tr.row("user", "<task-notification>"+d.Text)
	want(t, "the wake", where(t, q), "gone")
	want(t, "last event", lastEvent(t, q), "delivered news turn started")
}

func TestWithoutATranscriptADeliveryIsUnprovenAndGone(t *testing.T) {
	q := open(t)
	emit(t, q, Recipient{Harness: "pi"})
	want(t, "the wake", where(t, q), "gone")
	want(t, "last event", lastEvent(t, q), "delivered news unproven")
}

func TestAbsenceIsNotJudged(t *testing.T) {
	tests := map[string]func(t *testing.T, q *Queue, d *Delivery, cmd *exec.Cmd){
		"before the grace has passed": func(t *testing.T, q *Queue, d *Delivery, cmd *exec.Cmd) { q.Grace = time.Hour },
		"while the client is stopped": func(t *testing.T, q *Queue, d *Delivery, cmd *exec.Cmd) {
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			for id, _ := proc.Find(cmd.Process.Pid); id.Status() != proc.Stopped; {
				time.Sleep(time.Millisecond)
			}
		},
	}
	for name, set := range tests {
		t.Run(name, func(t *testing.T) {
			q := open(t)
			q.Grace = 0
			tr := newTranscript(t)
			id, cmd := client(t)
			d := emit(t, q, Recipient{Client: id, Transcript: tr.path})
			set(t, q, d, cmd)
			want(t, "the wake", where(t, q), "emitted")
			tr.row("user", d.Text)
			want(t, "the wake after its receipt", where(t, q), "gone")
		})
	}
}

func TestAClientThatWasStoppedHasTheGraceAnewOnceItGoesOn(t *testing.T) {
	q := open(t)
	tr := newTranscript(t)
	id, cmd := client(t)
	d := emit(t, q, Recipient{Client: id, Transcript: tr.path})
	n, err := readNote(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	n.Awake -= time.Hour
	if err := rewriteNote(d.dir, *n); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for id.Status() != proc.Stopped {
		time.Sleep(time.Millisecond)
	}
	want(t, "the wake while it is stopped", where(t, q), "emitted")
	q.Grace = time.Hour // however slow the machine is
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for id.Status() == proc.Stopped {
		time.Sleep(time.Millisecond)
	}
	want(t, "the wake when it has just gone on", where(t, q), "emitted")
}

// A consumer that dies while it prints may have been read, or not: only the transcript knows.
func TestAConsumerThatDiedWhilePrintingIsJudgedByTheTranscript(t *testing.T) {
	tests := map[string]struct {
		row, want string
		dead      bool
	}{
		"the turn started":                 {row: "user", want: "gone"},
		"only enqueued":                    {row: "enqueue", want: "claimed"},
		"only enqueued, the client died":   {row: "enqueue", dead: true, want: "waiting"},
		"nothing, and the client waits":    {want: "waiting"},
		"the row is one that nobody knows": {row: "of tomorrow", want: "waiting"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := open(t)
			tr := newTranscript(t)
			id, cmd := client(t)
			put(t, q, Wake{Title: "news"})
			d := claim(t, q)
			if err := errors.Join(d.Note(Recipient{Client: id, Transcript: tr.path}), d.Close()); err != nil {
				t.Fatal(err)
			}
			if tt.row != "" {
				tr.row(tt.row, "<task-notification>"+d.Text)
			}
			if tt.dead {
				cmd.Process.Kill()
				cmd.Wait()
			}
			if tt.row != "user" {
				want(t, "before the grace has passed", where(t, q), "claimed")
			}
			q.Grace = 0
			want(t, "the wake", where(t, q), tt.want)
		})
	}
}

func TestALiveOwnerIsNeverRobbed(t *testing.T) {
	q := open(t)
	q.Grace = 0
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	want(t, "claimed", where(t, q), "claimed")
	if err := d.Note(Recipient{}); err != nil {
		t.Fatal(err)
	}
	want(t, "noted", where(t, q), "claimed")
	if err := d.Emit(); err != nil {
		t.Fatal(err)
	}
	want(t, "emitted, its owner alive", where(t, q), "emitted")
	if l := list(t, q); !l.Emitted[0].Live {
		t.Error("the owner does not show as alive")
	}
	d.Close()
	want(t, "its owner gone", where(t, q), "gone")
}

func TestABootInBetweenCountsAsTime(t *testing.T) {
	q := open(t)
	tr := newTranscript(t)
	id, _ := client(t)
	d := emit(t, q, Recipient{Client: id, Transcript: tr.path})
	n, err := readNote(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	n.Boot, n.Client = "another boot", proc.ID{PID: 1 << 30, Start: 1}
	if err := rewriteNote(d.dir, *n); err != nil {
		t.Fatal(err)
	}
	want(t, "the wake", where(t, q), "waiting")
}

func TestAnUndeliveredWakeIsPutBackOnceAndThenKept(t *testing.T) {
	q := open(t)
	q.Grace = 0
	tr := newTranscript(t)
	id, _ := client(t)
	to := Recipient{Client: id, Transcript: tr.path}
	emit(t, q, to)
	want(t, "after the first delivery", where(t, q), "waiting")
	d := claim(t, q)
	if d == nil || d.Wakes[0].PutBacks != 1 {
		t.Fatalf("second claim: %+v", d)
	}
	if err := errors.Join(d.Note(to), d.Emit(), d.Close()); err != nil {
		t.Fatal(err)
	}
	want(t, "after the second", where(t, q), "bad")
}

func TestAWakeIsNotToBlameForTheDeathsOfClientsThatHeldIt(t *testing.T) {
	q := open(t)
	q.Grace = 0
	put(t, q, Wake{Title: "news"})
	for range 2 * maxReaps {
		d := claim(t, q)
		if err := errors.Join(d.Note(Recipient{Harness: "pi"}), d.Held(), d.Close()); err != nil {
			t.Fatal(err)
		}
		if err := q.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "waiting", titles(list(t, q).Waiting), []string{"news"})
}

func TestAReapedWakeGoesAloneAndTheThirdTimeToBad(t *testing.T) {
	q := open(t)
	killer := put(t, q, Wake{Title: "killer"})
	for range maxReaps - 1 {
		d := claim(t, q)
		if len(d.Wakes) != 1 {
			t.Fatalf("claimed %q, want the killer alone", titles(d.Wakes))
		}
		d.Close() // its consumer dies
		if err := q.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range list(t, q).Waiting {
			if w.ID == killer.ID && w.Reaps == 0 {
				t.Fatal("the reap was not counted")
			}
		}
		put(t, q, Wake{Title: "other"})
	}
	d := claim(t, q)
	want(t, "claimed", titles(d.Wakes), []string{"killer"})
	want(t, "more", d.More, 2)
	d.Close()
	if err := q.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := list(t, q)
	want(t, "waiting", titles(l.Waiting), []string{"other", "other"})
	if len(l.Bad) != 1 {
		t.Errorf("bad: %v", l.Bad)
	}
}

func TestADeliveryWithAHalfWrittenNoteWasNotPrinted(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	id, _ := client(t)
	if err := d.Note(Recipient{Client: id, Transcript: newTranscript(t).path}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.dir, "to.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, len(whole)) // what a crash of the machine can leave of a file that was not synced
	for _, half := range [][]byte{nil, whole[:1], whole[:len(whole)/2], whole[:len(whole)-2], zeros} {
		if err := os.WriteFile(path, half, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := readNote(d.dir); n != nil || err != nil {
			t.Fatalf("%q is the note %v, %v", half, n, err)
		}
	}
	want(t, "the wake while its owner writes", where(t, q), "claimed")
	d.Close()
	want(t, "the wake", where(t, q), "waiting")
	want(t, "last event", lastEvent(t, q), "reaped news")
	if exists(d.dir) {
		t.Error("the half-written note keeps the delivery's directory")
	}
}

func TestLookingAtADeliveryLeavesItsHalfRewrittenNoteAlone(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	half := filepath.Join(d.dir, ".to-half")
	if err := os.WriteFile(half, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	list(t, q)
	if !exists(half) {
		t.Fatal("listing removed the note that is being written")
	}
	d.Close()
	want(t, "the wake", where(t, q), "waiting")
	if exists(d.dir) {
		t.Error("the half-written note keeps the delivery's directory")
	}
}

func TestADeliveryOfAnotherMachineIsLeftForTwoMinutes(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "news"})
	d := claim(t, q)
	d.Close()
	if err := os.WriteFile(filepath.Join(d.dir, "owner"), []byte("elsewhere.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, "at once", where(t, q), "claimed")
	old := time.Now().Add(-lockless - time.Second)
	if err := os.Chtimes(d.dir, old, old); err != nil {
		t.Fatal(err)
	}
	want(t, "after two minutes", where(t, q), "waiting")
}

func TestSettleDoesNotWaitLongForTheQueuesLockHoweverManyDeliveriesThereAre(t *testing.T) {
	q := open(t)
	tr := newTranscript(t)
	to, cmd := client(t)
	for range 4 {
		emit(t, q, Recipient{Client: to, Harness: "claude", Transcript: tr.path})
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	q.Grace = 0
	held, err := lock.Try(q.join(".lock"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := q.Settle(t.Context()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("Settle: %v, want ErrHeld", err)
	}
	if took := time.Since(began); took > 3*lockWait {
		t.Errorf("it waited %v", took)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	want(t, "becomes", where(t, q), "4 0 0 0")
}

func TestAnUnreadableDeliveryDoesNotHoldUpTheOthers(t *testing.T) {
	q := open(t)
	put(t, q, Wake{Title: "news"})
	claim(t, q).Close()
	if err := os.MkdirAll(q.join(".claimed", "0odd", "owner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := q.Settle(t.Context()); err == nil {
		t.Error("Settle tells of no trouble")
	}
	want(t, "waiting", titles(list(t, q).Waiting), []string{"news"})
}

// TestAKillAtAnyStepLosesAndInventsNothing lets the test binary do one thing with a queue and kill itself at a step;
// then the queue is opened again and counted.
func TestAKillAtAnyStepLosesAndInventsNothing(t *testing.T) {
	tests := []struct {
		do    string
		steps []Step
		want  []string // any of these
	}{
		{"put", []Step{Staging, Staged}, []string{"gone"}}, // Put has not returned
		{"put", []Step{Put}, []string{"waiting"}},
		{"deliver", []Step{Making, Made, Claimed, Noting, Noted, Printing, Printed}, []string{"waiting"}},
		{"deliver", []Step{Emitted}, []string{"gone"}},
		{"release", []Step{Releasing}, []string{"waiting"}},
		{"reap", []Step{Settling, Staging, Staged, Releasing}, []string{"waiting"}},
		{"settle", []Step{Settling}, []string{"gone"}},
	}
	for _, tt := range tests {
		for _, step := range tt.steps {
			t.Run(tt.do+" "+string(step), func(t *testing.T) {
				q := open(t)
				if tt.do != "put" {
					put(t, q, Wake{Title: "news"})
				}
				switch tt.do {
				case "reap":
					claim(t, q).Close()
				case "settle":
					d := claim(t, q)
					if err := errors.Join(d.Note(Recipient{}), d.Emit(), d.Close()); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
				cmd.Env = append(os.Environ(), "WAKE_DO="+tt.do, "WAKE_KILL="+string(step))
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the child was not killed at %s: %v\n%s", step, err, out)
				}
				if got := where(t, q); !slices.Contains(tt.want, got) {
					t.Errorf("the wake is %s, want one of %q", got, tt.want)
				}
			})
		}
	}
}

// TestKilled is the child of the test above; by itself it has nothing to do.
func TestKilled(t *testing.T) {
	do := os.Getenv("WAKE_DO")
	if do == "" {
		return
	}
	q := reopen(t)
	q.Before = func(s Step) error {
		if string(s) == os.Getenv("WAKE_KILL") {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	switch do {
	case "put":
		put(t, q, Wake{Title: "news"})
	case "deliver", "release":
		d := claim(t, q)
		if err := d.Note(Recipient{}); err != nil {
			t.Fatal(err)
		}
		if do == "release" {
			t.Fatal(d.Release(t.Context(), "test"))
		}
		q.before(Printing)
		t.Fatal(d.Emit())
	case "reap", "settle":
		t.Fatal(q.Settle(t.Context()))
	}
}
