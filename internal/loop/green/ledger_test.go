package green

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAnEntryStandsBehindAWholeLine(t *testing.T) {
	o := Options{Task: filepath.Join(t.TempDir(), "task.md")}
	for _, text := range []string{"\nfirst\n", "\nsecond\n"} {
		if err := o.append(text); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(o.ledger(), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("half"); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	data, err := os.ReadFile(o.ledger())
	if want := "# LEDGER\n\nfirst\nhalf\n\nsecond\nhalf"; string(data) != want || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

func TestALedgerThatIsNoFileHoldsNobodyUp(t *testing.T) {
	o := Options{Task: filepath.Join(t.TempDir(), "task.md")}
	if err := syscall.Mkfifo(o.ledger(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.append("x"); err == nil {
		t.Error("it is taken for a ledger")
	}
}

func TestQuestionsThatArePutAsideKeepNamesOfTheirOwn(t *testing.T) {
	o := Options{Task: filepath.Join(t.TempDir(), "task.md")}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, name := range []string{"ESCALATED-20260102-030405.md", "ESCALATED-20260102-030405-2.md", "ESCALATED-20260102-030405-3.md"} {
		text := strings.Repeat("x", i+1)
		if err := os.WriteFile(o.escalation(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		to, err := o.putAside(now)
		if filepath.Base(to) != name || err != nil {
			t.Errorf("%s, %v; want %s", to, err, name)
		}
		if data, err := os.ReadFile(to); string(data) != text || err != nil {
			t.Errorf("%q, %v", data, err)
		}
	}
	if to, err := o.putAside(now); to != "" || err != nil {
		t.Errorf("%s, %v", to, err)
	}
}
