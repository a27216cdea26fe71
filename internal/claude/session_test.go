package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
)

// config gives the test a configuration directory of its own.
func config(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("CLAUDE_CONFIG_DIR", dir)
	if err := os.Mkdir(filepath.Join(dir, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// other is a live process that is not this one.
func other(t *testing.T) proc.ID {
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
	return id
}

func record(id proc.ID, session string) string {
	data, _ := json.Marshal(map[string]any{"pid": id.PID, "procStart": procStart(id), "sessionId": session, "cwd": "/home/u/shop",
		"status": "idle", "version": "2.1.332", "kind": "interactive", "entrypoint": "cli", "startedAt": 1796060908184, "new": map[string]any{"field": true}})
	return string(data)
}

func TestConfigDirIsTheClients(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	if dir, err := ConfigDir(); dir != "/home/u/.claude" || err != nil {
		t.Errorf("%q, %v", dir, err)
	}
	t.Setenv("CLAUDE_CONFIG_DIR", "/home/u/claude-config")
	if dir, err := ConfigDir(); dir != "/home/u/claude-config" || err != nil {
		t.Errorf("%q, %v", dir, err)
	}
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("HOME", "")
	if dir, err := ConfigDir(); err == nil {
		t.Errorf("without a home: %q", dir)
	}
}

func TestTheSessionOfALiveProcess(t *testing.T) {
	dir, id := config(t), other(t)
	path := filepath.Join(dir, "sessions", strconv.Itoa(id.PID)+".json")
	if s, ok := SessionOf(id); ok {
		t.Fatalf("no record yet: %+v", s)
	}
	writeFile(t, path, record(id, "one"))
	want := Session{Process: id, SessionID: "one", Dir: "/home/u/shop", Status: "idle", Version: "2.1.332", Kind: "interactive", Entry: "cli"}
	s, ok := SessionOf(id)
	if s.file = (stamp{}); !ok || s != want {
		t.Errorf("%+v, %v, want %+v", s, ok, want)
	}
	if s, ok := SessionOf(proc.ID{PID: id.PID, Start: id.Start + 2_000_000}); ok {
		t.Errorf("the pid is another's now: %+v", s)
	}
	if s, ok := SessionOf(proc.ID{PID: id.PID}); ok {
		t.Errorf("start time not known: %+v", s)
	}
	for name, content := range map[string]string{
		"empty": "", "torn": record(id, "one")[:40], "of another pid": record(proc.ID{PID: id.PID + 1, Start: id.Start}, "x"),
		"not an object": `[1]`, "of another form": `{"pid":"x"}`, "without a start": `{"pid":` + strconv.Itoa(id.PID) + `}`,
	} {
		writeFile(t, path, content)
		if s, ok := SessionOf(id); ok {
			t.Errorf("record %s: %+v", name, s)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, ok := SessionOf(id); ok {
		t.Errorf("a FIFO: %+v", s)
	}
}

func TestASessionSaysWhatItWaitsForAndSinceWhen(t *testing.T) {
	dir, id := config(t), other(t)
	path := filepath.Join(dir, "sessions", recordName(id.PID))
	with := func(more string) Session {
		t.Helper()
		writeFile(t, path, strings.Replace(record(id, "one"), `"status":"idle"`, more, 1))
		s, ok := SessionOf(id)
		if !ok {
			t.Fatalf("no record with %s", more)
		}
		return s
	}
	s := with(`"status":"waiting","waitingFor":"permission prompt","name":"fix","statusUpdatedAt":1796060908184`)
	if s.Status != "waiting" || s.Waiting != "permission prompt" || s.Name != "fix" || !s.Changed.Equal(time.UnixMilli(1796060908184)) {
		t.Errorf("%+v", s)
	}
	s = with(`"status":{"of":"tomorrow"},"waitingFor":[],"name":7,"statusUpdatedAt":"yesterday"`)
	if s.Status != "" || s.Waiting != "" || s.Name != "" || !s.Changed.IsZero() || s.SessionID != "one" {
		t.Errorf("%+v", s)
	}
}

func TestSessionsAreThoseOfLiveProcesses(t *testing.T) {
	dir, id := config(t), other(t)
	put := func(name, content string) { writeFile(t, filepath.Join(dir, "sessions", name), content) }
	put(strconv.Itoa(id.PID)+".json", record(id, "live"))
	put(strconv.Itoa(os.Getpid())+".json", record(proc.ID{PID: os.Getpid(), Start: 1}, "its pid was reused"))
	put("0.json", record(proc.ID{}, "none"))
	put("4194305.json", record(proc.ID{PID: 4194305, Start: 1}, "dead"))
	put("0"+strconv.Itoa(id.PID)+".json", record(id, "name not the client's"))
	put(strconv.Itoa(id.PID)+".0a1b.key", record(id, "a secret"))
	put(strconv.Itoa(id.PID)+".json.tmp", record(id, "temporary"))
	got := Sessions()
	if len(got) != 1 || got[0].SessionID != "live" || got[0].Process != id {
		t.Errorf("%+v, want the live one", got)
	}
}

func TestTrustIsWhatTheClientWroteDown(t *testing.T) {
	dir := config(t)
	root := t.TempDir()
	shop := filepath.Join(root, "my.shop*v2")
	if err := os.MkdirAll(filepath.Join(shop, "api"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	entry := func(folder, accepted string) string {
		return strconv.Quote(folder) + `:{"hasTrustDialogAccepted":` + accepted + `}`
	}
	for _, c := range []struct {
		name, projects string
		trusted, known bool
	}{
		{"trusted", entry(shop, "true"), true, true},
		{"asked, not trusted", entry(shop, "false"), false, true},
		{"not a bool", entry(shop, `"yes"`), false, false},
		{"nothing said", strconv.Quote(shop) + `:{"allowedTools":[]}`, false, false},
		{"another folder", entry(root+"/other", "true"), false, false},
		{"a folder that a pattern would match", entry(root+"/my.shopXv2", "true"), false, false},
		{"one below", entry(shop+"/api", "true"), false, false},
		{"one above, of which versions differ", entry(root, "true"), false, false},
		{"one above, and this one was not trusted", entry(shop, "false") + "," + entry(root, "true"), false, false},
		{"one above not trusted", entry(shop, "true") + "," + entry(root, "false"), true, true},
		{"through a link", entry(link+"/my.shop*v2", "true"), true, true},
		{"with an ending slash", entry(shop+"/", "true"), true, true},
	} {
		writeFile(t, filepath.Join(dir, ".claude.json"), `{"numStartups":3,"projects":{`+c.projects+`}}`)
		if trusted, known := Trusted(shop); trusted != c.trusted || known != c.known {
			t.Errorf("%s: trusted %v, known %v; want %v, %v", c.name, trusted, known, c.trusted, c.known)
		}
	}
	for _, content := range []string{"", "{", `[]`, `{"projects":[]}`, `{"projects":{` + entry(shop, "true")} {
		writeFile(t, filepath.Join(dir, ".claude.json"), content)
		if trusted, known := Trusted(shop); trusted || known {
			t.Errorf("%q: trusted %v, known %v", content, trusted, known)
		}
	}
}

func TestWhereTheClientWritesTrustDown(t *testing.T) {
	dir, home := config(t), os.Getenv("HOME")
	yes, no := `{"projects":{"/p":{"hasTrustDialogAccepted":true}}}`, `{"projects":{"/p":{"hasTrustDialogAccepted":false}}}`
	want := func(what string, trusted, known bool) {
		t.Helper()
		if gotTrusted, gotKnown := Trusted("/p"); gotTrusted != trusted || gotKnown != known {
			t.Errorf("%s: trusted %v, known %v; want %v, %v", what, gotTrusted, gotKnown, trusted, known)
		}
	}
	want("no record", false, false)
	writeFile(t, filepath.Join(home, ".claude.json"), yes)
	want("in the home only", false, false)
	writeFile(t, filepath.Join(dir, ".claude.json"), no)
	want("in the configuration directory", false, true)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	want("in the home, as no other directory is set", true, true)
	if err := os.Mkdir(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(home, ".claude", ".config.json"), no)
	want("in an old version's file", false, true)
}

func TestARecordIsKnownToBeUnchangedUntilItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	write := func(status string, when time.Time) {
		t.Helper()
		text := fmt.Sprintf(`{"pid":%d,"procStart":"%d","status":%q}`, proc.Self().PID, proc.Self().Start, status)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() Session {
		t.Helper()
		s, ok := SessionAt(path, proc.Self())
		if !ok {
			t.Fatal("no record")
		}
		return s
	}
	long := time.Now().Add(-time.Hour)
	write("busy", long)
	s := read()
	for range 2 {
		if !s.Unchanged() {
			t.Error("it is as it was")
		}
	}
	write("idle", long.Add(time.Millisecond))
	if s.Unchanged() {
		t.Error("it was written at another time")
	}
	s = read()
	write("waiting", long.Add(time.Millisecond))
	if s.Unchanged() {
		t.Error("it was written at the same time, in another size")
	}
	write("busy", time.Now())
	if s = read(); s.Unchanged() {
		t.Error("it is too young for its time to tell")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if s.Unchanged() || (&Session{}).Unchanged() {
		t.Error("there is none")
	}
}
