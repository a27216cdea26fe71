package claude

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/receipt"
)

const token = "7f3a9c51e8d24b06"

// What is told of a receipt, by the names that the rows below read best with.
type Receipt = receipt.Receipt

const (
	NoTranscript = receipt.NoTranscript
	Absent       = receipt.Absent
	Enqueued     = receipt.Enqueued
	TurnStarted  = receipt.TurnStarted
	TurnFailed   = receipt.TurnFailed
)

// Rows as the client writes them, cut down to what counts; recordings_test.go has whole ones.
const (
	enqueueRow = `{"type":"queue-operation","operation":"enqueue","content":"<task-notification>\nvx: news (delivery ` + token + `)"}`
	userRow    = `{"parentUuid":"a","isSidechain":false,"type":"user","message":{"role":"user","content":"<task-notification>\nvx: news (delivery ` + token + `)"},"origin":{"kind":"task-notification"}}`
	answerRow  = `{"type":"assistant","message":{"content":[{"type":"text","text":"fine"}]}}`
	errorRow   = `{"type":"assistant","message":{"content":[{"type":"text","text":"API Error"}]},"isApiErrorMessage":true}`
	promptRow  = `{"type":"user","message":{"role":"user","content":"hello"},"origin":{"kind":"human"}}`
)

func transcript(t *testing.T, rows ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.jsonl")
	write(t, path, rows...)
	return path
}

func write(t *testing.T, path string, rows ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func shown(t *testing.T, path string, size int64) Receipt {
	t.Helper()
	got, err := FindReceipt(path, size, time.Now().Add(-time.Hour), token)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWhatARowProves(t *testing.T) {
	user := func(message, rest string) string {
		return `{"type":"user","message":{"role":"user","content":` + message + `}` + rest + `}`
	}
	text := `"vx: news (delivery ` + token + `)"`
	for _, c := range []struct {
		name string
		rows []string
		want Receipt
	}{
		{"nothing", []string{promptRow, answerRow}, Absent},
		{"an enqueue row", []string{enqueueRow}, Enqueued},
		{"a person's prompt in the queue", []string{`{"type":"queue-operation","operation":"enqueue","content":"what is ` + token + `?"}`}, Absent},
		{"taken out of the queue, and nothing more", []string{enqueueRow, `{"type":"queue-operation","operation":"dequeue"}`}, Enqueued},
		{"removed from the queue, content repeated", []string{strings.Replace(enqueueRow, "enqueue", "remove", 1)}, Absent},
		{"a user row", []string{enqueueRow, userRow}, TurnStarted},
		{"a user row before its enqueue row", []string{userRow, enqueueRow}, TurnStarted},
		{"a user row without an origin", []string{user(text, "")}, TurnStarted},
		{"a text block", []string{user(`[{"type":"text","text":`+text+`}]`, "")}, TurnStarted},
		{"a text block whose type comes last", []string{user(`[{"text":`+text+`,"type":"text"}]`, "")}, TurnStarted},
		{"a text block beside a tool's result", []string{user(`[{"type":"tool_result","content":"x"},{"type":"text","text":`+text+`}]`, "")}, TurnStarted},
		{"a tool's result", []string{user(`[{"type":"tool_result","content":`+text+`}]`, "")}, Absent},
		{"a tool's result with a field of text", []string{user(`[{"type":"tool_result","text":`+text+`}]`, "")}, Absent},
		{"a tool's result made of text blocks", []string{user(`[{"type":"tool_result","content":[{"type":"text","text":`+text+`}]}]`, "")}, Absent},
		{"a tool's result beside other text", []string{user(`[{"type":"tool_result","content":`+text+`},{"type":"text","text":"go on"}]`, "")}, Absent},
		{"a tool's result, kept by the client", []string{user(`[]`, `,"toolUseResult":{"stdout":`+text+`}`)}, Absent},
		{"a person's prompt", []string{user(text, `,"origin":{"kind":"human"}`)}, Absent},
		{"a message of an unknown origin", []string{user(text, `,"origin":{"kind":"pigeon"}`)}, NoTranscript},
		{"a command that a person ran in the client", []string{user(`"<bash-stdout>delivery `+token+`</bash-stdout>"`, "")}, Absent},
		{"what one agent told another", []string{user(text, `,"isSidechain":true`)}, Absent},
		{"a summary of the conversation", []string{user(text, `,"isCompactSummary":true`)}, Absent},
		{"the model's own answer", []string{strings.Replace(answerRow, "fine", token, 1)}, Absent},
		{"a hook's summary", []string{`{"type":"system","subtype":"stop_hook_summary","hookErrors":[` + text + `]}`}, Absent},
		{"given to a running turn", []string{enqueueRow, `{"type":"attachment","attachment":{"type":"queued_command","commandMode":"task-notification","prompt":` + text + `}}`}, TurnStarted},
		{"given to a running turn in blocks", []string{`{"type":"attachment","attachment":{"type":"queued_command","prompt":[{"type":"text","text":` + text + `}],"commandMode":"task-notification"}}`}, TurnStarted},
		{"a person's prompt given to a running turn", []string{`{"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","prompt":` + text + `}}`}, Absent},
		{"something of an unknown mode given to a running turn", []string{`{"type":"attachment","attachment":{"type":"queued_command","prompt":` + text + `}}`}, NoTranscript},
		{"an attachment of something else", []string{`{"type":"attachment","attachment":{"type":"edited_text_file","snippet":` + text + `,"prompt":` + text + `,"commandMode":"task-notification"}}`}, Absent},
		{"the turn fails", []string{userRow, errorRow, answerRow}, TurnFailed},
		{"a later turn fails", []string{userRow, answerRow, promptRow, errorRow}, TurnStarted},
		{"an earlier turn failed", []string{errorRow, userRow, answerRow}, TurnStarted},
		{"a subagent fails", []string{userRow, strings.Replace(errorRow, `true}`, `true,"isSidechain":true}`, 1), answerRow}, TurnStarted},
		{"no turn fails", []string{userRow, strings.Replace(errorRow, "true", "false", 1)}, TurnStarted},
		{"a row of an unknown kind", []string{`{"type":"news","text":` + text + `}`}, NoTranscript},
		{"a row without a kind", []string{`{"text":` + text + `}`}, NoTranscript},
		{"a row of an unknown kind beside the queue", []string{enqueueRow, `{"type":"news","text":` + text + `}`}, Enqueued},
		{"a line that does not parse", []string{`{"type":"user","message":` + token}, NoTranscript},
		{"a line that does not parse beside the queue", []string{enqueueRow, userRow[:len(userRow)-20]}, NoTranscript},
		{"a line that does not parse, then a proof", []string{`"` + token, userRow}, TurnStarted},
		{"two rows on one line", []string{promptRow + userRow}, NoTranscript},
		{"lines that do not parse, without the token", []string{`{"type":"us`, "\x00\x00", `}{`, enqueueRow}, Enqueued},
		{"the token as a key", []string{`{"type":"user","` + token + `":"vx","message":{"content":"hello"}}`}, Absent},
		{"a longer word", []string{strings.ReplaceAll(promptRow, "hello", token[:15])}, Absent},
	} {
		if got := shown(t, transcript(t, c.rows...), 0); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTheLastRowMayLackItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session.jsonl")
	for end := range len(userRow) + 1 {
		if err := os.WriteFile(path, []byte(enqueueRow+"\n"+userRow[:end]), 0o600); err != nil {
			t.Fatal(err)
		}
		want := NoTranscript // torn: it cannot be told what it was going to be
		switch {
		case end < strings.Index(userRow, token)+len(token):
			want = Enqueued
		case end == len(userRow):
			want = TurnStarted
		}
		if got := shown(t, path, 0); got != want {
			t.Fatalf("%d bytes of a user row: %v, want %v", end, got, want)
		}
	}
}

func TestOnlyWhatWasWrittenAfterTheNotedSizeCounts(t *testing.T) {
	path := transcript(t, userRow, errorRow, enqueueRow)
	if got := shown(t, path, 0); got != TurnFailed {
		t.Fatalf("from the start: %v, want turn failed", got)
	}
	if got := shown(t, path, int64(len(userRow)+1)); got != Enqueued {
		t.Errorf("behind the user row: %v, want enqueued", got)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(t, path, fi.Size()); got != Absent {
		t.Errorf("behind everything: %v, want absent", got)
	}
	// A client that was killed can leave half a row, which the noted size ends with; the next row follows on its line.
	torn := `{"type":"assist`
	if err := os.WriteFile(path, []byte(torn+userRow+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, path, int64(len(torn))); got != TurnStarted {
		t.Errorf("behind half a row: %v, want turn started", got)
	}
}

func TestATranscriptThatCannotBeReadProvesNothing(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.jsonl")
	rotated := filepath.Join(dir, "rotated.jsonl")
	write(t, rotated, enqueueRow)
	fifo := filepath.Join(dir, "fifo.jsonl")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		size int64
	}{{missing, 0}, {missing, 10}, {rotated, 10_000}, {fifo, 0}, {dir, 0}, {"", 0}, {filepath.Join(rotated, "x"), 0}} {
		if got := shown(t, c.path, c.size); got != NoTranscript {
			t.Errorf("%q from %d: %v, want no transcript", c.path, c.size, got)
		}
	}
	// What another transcript proves is proven all the same.
	write(t, filepath.Join(dir, "next.jsonl"), userRow)
	if got := shown(t, missing, 10); got != TurnStarted {
		t.Errorf("proven elsewhere: %v, want turn started", got)
	}
}

func TestAnEmptyTokenProvesNothing(t *testing.T) {
	if got, err := FindReceipt(transcript(t, userRow), 0, time.Time{}, ""); got != NoTranscript || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBeingOutOfDescriptorsIsAnErrorNotAFinding(t *testing.T) {
	path := transcript(t, enqueueRow)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	got, err := FindReceipt(path, 0, time.Time{}, token)
	if restore := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); restore != nil {
		t.Fatal(restore)
	}
	if err == nil || got != NoTranscript {
		t.Errorf("%v, %v, want an error", got, err)
	}
}

func TestAfterClearTheProofIsInAnotherTranscript(t *testing.T) {
	since := time.Now()
	for _, c := range []struct {
		name  string
		noted string
		other string
		age   time.Duration // of the other transcript's last change
		want  Receipt
	}{
		{"the turn started there", promptRow, userRow, 0, TurnStarted},
		{"the turn failed there", promptRow, userRow + "\n" + errorRow, 0, TurnFailed},
		{"enqueued here, started there", enqueueRow, userRow, 0, TurnStarted},
		{"enqueued there", promptRow, enqueueRow, 0, Enqueued},
		{"enqueued here, mentioned there", enqueueRow, strings.Replace(answerRow, "fine", token, 1), 0, Enqueued},
		{"unclear there", enqueueRow, `{"` + token, 0, NoTranscript},
		{"last changed long before", promptRow, userRow, 2 * time.Hour, Absent},
	} {
		path := transcript(t, c.noted)
		other := filepath.Join(filepath.Dir(path), "other.jsonl")
		write(t, other, c.other)
		write(t, filepath.Join(filepath.Dir(path), "notes.txt"), userRow)
		if err := os.Mkdir(filepath.Join(filepath.Dir(path), "dir.jsonl"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(other, time.Time{}, since.Add(-c.age)); err != nil {
			t.Fatal(err)
		}
		if got, err := FindReceipt(path, 0, since, token); got != c.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// allocated is how many bytes f allocates; more than it holds at any moment.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const maxMemory = 16 << 20

func TestALongTranscriptCostsLittleMemory(t *testing.T) {
	path := transcript(t, userRow) // before the noted size: proves nothing
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const noted = 500 << 20
	if err := f.Truncate(noted); err != nil { // a hole: takes no room on the disk
		t.Fatal(err)
	}
	if _, err := f.Seek(noted, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\n" + enqueueRow + "\n"); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]Receipt{noted: Enqueued, 200: Enqueued, 0: TurnStarted} {
		var got Receipt
		used := allocated(func() { got = shown(t, path, size) })
		if got != want {
			t.Errorf("from %d: %v, want %v", size, got, want)
		}
		if used > maxMemory {
			t.Errorf("from %d: %d bytes allocated", size, used)
		}
	}
}

func TestALongRowCostsLittleMemory(t *testing.T) {
	long := strings.Repeat(strings.Repeat("words ", 200)+`and \"quotes\" and \u00e9 `, 15_000) // 18 MB
	big := strings.Repeat(`{"a":[1,true,null,"x"]},`, 1<<18) + "0"
	for name, c := range map[string]struct {
		row  string
		want Receipt
	}{
		"text before the token": {strings.Replace(userRow, "vx: ", "vx: "+long, 1), TurnStarted},
		"text behind the token": {strings.Replace(userRow, `)"}`, `) `+long+`"}`, 1), TurnStarted},
		"other fields":          {strings.Replace(userRow, `{`, `{"tools":[`+big+`],`, 1), TurnStarted},
		"a long key":            {strings.Replace(userRow, `{`, `{"`+long+`":1,`, 1), TurnStarted},
		"a tool's result":       {`{"type":"user","message":{"content":[{"type":"tool_result","content":"` + long + token + `"}]}}`, Absent},
		"no end":                {`{"type":"user","message":{"content":"` + long + token, NoTranscript},
	} {
		path := transcript(t, promptRow, c.row, answerRow)
		var got Receipt
		used := allocated(func() { got = shown(t, path, 0) })
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if used > maxMemory {
			t.Errorf("%s: %d bytes allocated for a row of %d", name, used, len(c.row))
		}
	}
}

func TestATokenAcrossASeamIsFound(t *testing.T) {
	at := strings.Index(userRow, token)
	for _, seam := range []int{256 << 10, 64 << 10} {
		for shift := -len(token) - 1; shift <= len(token)+1; shift++ {
			// Inside one long string, and behind other rows.
			inside := strings.Replace(userRow, "vx: ", "vx: "+strings.Repeat("x", seam+shift-at), 1)
			behind := `{"type":"mode","pad":"` + strings.Repeat("x", seam+shift-at-25) + "\"}\n" + userRow
			for _, content := range []string{inside, behind} {
				if got := shown(t, transcript(t, content), 0); got != TurnStarted {
					t.Fatalf("token at %d: %v, want turn started", strings.Index(content, token), got)
				}
			}
		}
	}
}

func TestManyMentionsAreReadThrough(t *testing.T) {
	mentions := strings.Repeat(strings.Replace(answerRow, "fine", token+" "+token, 1)+"\n", 2000)
	if got := shown(t, transcript(t, mentions+enqueueRow), 0); got != Enqueued {
		t.Errorf("%v, want enqueued", got)
	}
	if got := shown(t, transcript(t, mentions+userRow), 0); got != TurnStarted {
		t.Errorf("%v, want turn started", got)
	}
}

// FuzzRow: nothing is a proof that lacks the token.
func FuzzRow(f *testing.F) {
	for _, line := range []string{enqueueRow, userRow, answerRow, errorRow, promptRow, `{"type":"user","message":{"content":[{"type":"text","text":"` + token + `"}]}}`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var r row
		err := receipt.NewLines(strings.NewReader(line), 0, int64(len(line)), []byte(token)).Next(&r)
		if found := r.Finding(); err == nil && !strings.Contains(line, token) && found >= receipt.Queued {
			t.Fatalf("row %q proves %v without the token", line, found)
		}
	})
}

// A text that was typed for the client, with the token in it, looks like a person's prompt. Nothing else that a person
// sends counts for it.
func TestATypedTextIsAPersonsPrompt(t *testing.T) {
	typed := func(rows ...string) receipt.Receipt {
		t.Helper()
		got, err := FindTyped(transcript(t, rows...), 0, time.Now().Add(-time.Hour), token)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	prompt := `{"type":"user","message":{"role":"user","content":"vx: news (delivery ` + token + `)\n- mission"},"origin":{"kind":"human"}}`
	for _, c := range []struct {
		name string
		rows []string
		want receipt.Receipt
	}{
		{"nothing", []string{promptRow, answerRow}, receipt.Absent},
		{"its turn", []string{prompt, answerRow}, receipt.TurnStarted},
		{"a turn that died", []string{prompt, errorRow}, receipt.TurnFailed},
		{"in the client's queue", []string{`{"type":"queue-operation","operation":"enqueue","content":"vx: news (delivery ` + token + `)"}`}, receipt.Enqueued},
		{"into a running turn", []string{`{"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"vx: news (delivery ` + token + `)"}}`}, receipt.TurnStarted},
		{"a tool's result", []string{`{"type":"user","message":{"content":[{"type":"tool_result","content":"` + token + `"}]}}`}, receipt.Absent},
		{"an answer", []string{`{"type":"assistant","message":{"content":[{"type":"text","text":"` + token + `"}]}}`}, receipt.Absent},
	} {
		if got := typed(c.rows...); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got, _ := FindReceipt(transcript(t, prompt, answerRow), 0, time.Now().Add(-time.Hour), token); got != receipt.Absent {
		t.Errorf("what nobody typed: %v", got)
	}
}
