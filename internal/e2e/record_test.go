//go:build e2e && record

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

// The recorder writes testdata/transcripts/VERSION/CASE.jsonl from the real client, with a stand-in for the hook:
//
//	go test -tags 'e2e record' -run TestRecord ./internal/e2e/
//
// The stand-in hook keeps its stdin, waits for a file in news/, prints it and ends with 2. $1 is the world.
const standIn = `#!/bin/sh
cat >"$1/stdin/Stop-$(date +%s%N).json"
echo $$ >>"$1/waiting"
while [ -d "/proc/$PPID" ]; do
	for f in "$1"/news/*; do
		[ -f "$f" ] && mv "$f" "$1/taken/$$" 2>/dev/null || continue
		cat "$1/taken/$$" >&2
		exit 2
	done
	sleep 0.1
done
exit 0
`

type recording struct {
	*world
	t     *testing.T
	token string
	hooks int // hooks that have started
	// continued says that the case was saved once before its client was continued.
	continued bool
}

func newRecording(t *testing.T, version, token string) *recording {
	w := newWorld(t, version)
	for _, d := range []string{"stdin", "news", "taken"} {
		if err := os.MkdirAll(w.path(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.writeFile(w.path("stand-in"), standIn, 0o700)
	hook := func(command string, async bool) []any {
		return []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command, "asyncRewake": async, "timeout": 3600}}}}
	}
	w.writeJSON(filepath.Join(w.project, ".claude", "settings.json"), map[string]any{"hooks": map[string]any{
		"Stop":             hook("exec "+w.path("stand-in")+" "+w.dir, true),
		"UserPromptSubmit": hook("cat >"+w.path("stdin")+"/UserPromptSubmit-$(date +%s%N).json", false),
	}})
	return &recording{world: w, t: t, token: token}
}

// first opens a client and lets it finish a turn, so that a hook waits.
func (r *recording) first(args ...string) *client {
	c := r.start(args...)
	c.prompt("hello there")
	r.hookWaits()
	return c
}

// hookWaits waits until one more hook has started than at the last call.
func (r *recording) hookWaits() {
	r.t.Helper()
	r.hooks++
	r.eventually(fmt.Sprintf("hook %d", r.hooks), func() bool { return r.started() >= r.hooks })
}

func (r *recording) started() int {
	data, _ := os.ReadFile(r.path("waiting"))
	return strings.Count(string(data), "\n")
}

func (r *recording) news(token string) {
	r.t.Helper()
	text := "vx: news for this session, not an error (delivery " + token + ")\n- message m-1: the build is green\n"
	r.writeFile(r.path("tmp/"+token), text, 0o600)
	if err := os.Rename(r.path("tmp/"+token), r.path("news/"+token)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *recording) enqueued(token string) {
	r.t.Helper()
	r.inTranscript(`"enqueue"`, token)
}

func (r *recording) turn(token string) {
	r.t.Helper()
	r.eventually("a turn with "+token, func() bool { return r.api.turns(token) > 0 })
}

var (
	slug = regexp.MustCompile(`-tmp-vx-e2e-\d+-`)
	// chaff is long, or tells of this machine, and says nothing about a wake.
	chaff = regexp.MustCompile(`"type":"(file-history-snapshot|file-history-delta|api-request|api-request-blob|api-request-shape|cost-state|prompt_snapshot|agent_listing_delta|` +
		`skill_listing|environment|model|deferred_tools_delta|session_context|date|remote_session_change)"`)
)

// save writes every transcript of the world, the newest under the case's own name, older ones as CASE.1.jsonl, CASE.2.jsonl.
func (r *recording) save(name string) {
	r.t.Helper()
	time.Sleep(700 * time.Millisecond) // the client writes its last rows a little later
	texts := r.transcripts()
	var files []string
	for f := range texts {
		files = append(files, f)
	}
	sort.Slice(files, func(i, j int) bool { return mtime(files[i]) > mtime(files[j]) })
	for i, f := range files {
		out := name + ".jsonl"
		if i > 0 {
			out = fmt.Sprintf("%s.%d.jsonl", name, i)
		}
		r.keep(out, r.trim(texts[f]))
	}
}

// saveStdin writes what the hooks were told, for the cases from which a reader learns something by it.
func (r *recording) saveStdin(name string) {
	r.t.Helper()
	if !slices.Contains([]string{"idle-then-prompt", "tool-running", "clear"}, name) {
		return
	}
	stdins, err := filepath.Glob(r.path("stdin/*"))
	if err != nil {
		r.t.Fatal(err)
	}
	sort.Slice(stdins, func(i, j int) bool { return stamp(stdins[i]) < stamp(stdins[j]) })
	var b strings.Builder
	for _, f := range stdins {
		data, err := os.ReadFile(f)
		if err != nil {
			r.t.Fatal(err)
		}
		b.WriteString(strings.TrimSpace(string(data)) + "\n")
	}
	r.keep(name+".stdin.jsonl", r.trim(b.String()))
}

func mtime(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format("20060102T150405.000000000")
}

func stamp(name string) string { return name[strings.LastIndexByte(name, '-'):] }

func (r *recording) keep(name, text string) {
	name = filepath.Join("..", "..", "testdata", "transcripts", r.version, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	r.writeFile(name, text, 0o644)
}

// trim takes this machine out of the rows, and what is long and says nothing about a wake.
func (r *recording) trim(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, r.token) && chaff.MatchString(line) {
			continue
		}
		line = strings.ReplaceAll(line, r.project, "/home/u/proj")
		line = strings.ReplaceAll(line, r.home, "/home/u")
		line = strings.ReplaceAll(line, r.dir, "/home/u/scratch")
		line = slug.ReplaceAllString(line, "-home-u-")
		b.WriteString(line)
	}
	return b.String()
}

func TestRecord(t *testing.T) {
	cases := map[string]func(r *recording){
		"idle":               recordIdle,
		"idle-twice":         recordIdleTwice,
		"idle-then-prompt":   recordIdleThenPrompt,
		"tool-running":       recordToolRunning,
		"streaming":          recordStreaming,
		"two-at-once":        recordTwoAtOnce,
		"two-mid-turn":       recordTwoMidTurn,
		"clear":              recordClear,
		"killed-enqueued":    recordKilledEnqueued,
		"killed-dequeued":    recordKilledDequeued,
		"killed-turn":        recordKilledTurn,
		"term-enqueued":      recordTermEnqueued,
		"clear-enqueued":     recordClearEnqueued,
		"popped":             recordPopped,
		"api-error":          recordAPIError,
		"api-error-mid-turn": recordAPIErrorMidTurn,
		"echoed":             recordEchoed,
		"mentioned":          recordMentioned,
		"escape":             recordEscape,
		"stopped":            recordStopped,
		"half-typed":         recordHalfTyped,
		"prompt-queued":      recordPromptQueued,
		"compact":            recordCompact,
	}
	forEachClient(t, func(t *testing.T, version string) {
		for name, record := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRecording(t, version, "7f3a9c51e8d24b06")
				if record(r); r.continued {
					name += "-continued"
				}
				r.save(name)
				r.saveStdin(name)
			})
		}
	})
}

func recordIdle(r *recording) {
	r.first()
	r.news(r.token)
	r.turn(r.token)
	r.hookWaits()
}

func recordIdleTwice(r *recording) {
	r.first()
	r.news("1111111111111111")
	r.turn("1111111111111111")
	r.hookWaits()
	r.news(r.token)
	r.turn(r.token)
	r.hookWaits()
}

func recordToolRunning(r *recording) {
	c := r.first()
	open := r.runTool(c)
	r.news(r.token)
	r.enqueued(r.token)
	open()
	r.turn(r.token)
	r.hookWaits()
}

func recordStreaming(r *recording) {
	c := r.first()
	gate := make(chan struct{})
	r.api.when("tell a story", answer{say: "a story", gate: gate})
	c.prompt("tell a story")
	r.news(r.token)
	r.enqueued(r.token)
	close(gate)
	r.turn(r.token)
	r.hookWaits()
}

func recordTwoAtOnce(r *recording) {
	c := r.first()
	c.prompt("hello again")
	r.hookWaits()
	r.news(r.token)
	r.news("2222222222222222")
	r.turn(r.token)
	r.turn("2222222222222222")
	r.hookWaits()
}

func recordTwoMidTurn(r *recording) {
	c := r.first()
	c.prompt("hello again")
	r.hookWaits()
	open := r.runTool(c)
	r.news(r.token)
	r.news("2222222222222222")
	r.enqueued(r.token)
	r.enqueued("2222222222222222")
	open()
	r.turn(r.token)
	r.turn("2222222222222222")
	r.hookWaits()
}

func recordClear(r *recording) {
	c := r.first()
	before := c.session()
	c.enter("/clear", func() bool { return c.session() != before })
	r.news(r.token)
	r.turn(r.token)
	r.hookWaits()
}

func recordKilledEnqueued(r *recording) {
	c := r.first()
	r.runTool(c)
	r.news(r.token)
	r.enqueued(r.token)
	c.end("SIGKILL")
	r.save("killed-enqueued")
	r.continued = true
	c = r.start("--continue")
	c.prompt("are you there")
	r.eventually("a hook", func() bool { return r.started() > r.hooks })
	if r.api.turns(r.token) > 0 {
		r.t.Error("the continued session was given the wake")
	}
}

// In killed-dequeued the model has been called and the client is killed at that moment, before it has written what it was told.
func recordKilledDequeued(r *recording) {
	c := r.first()
	asked := r.api.when(r.token, answer{say: "never said", gate: make(chan struct{})}).asked
	r.news(r.token)
	<-asked
	c.end("SIGKILL")
	r.save("killed-dequeued")
	r.continued = true
	c = r.start("--continue")
	c.prompt("are you there")
	r.eventually("a hook", func() bool { return r.started() > r.hooks })
}

// In killed-turn the client has written the wake's row when it is killed; the model has not answered.
func recordKilledTurn(r *recording) {
	c := r.first()
	r.api.when(r.token, answer{say: "never said", gate: make(chan struct{})})
	r.news(r.token)
	r.inTranscript(`"type":"user"`, r.token)
	c.end("SIGKILL")
	r.save("killed-turn")
	r.continued = true
	c = r.start("--continue")
	c.prompt("are you there")
	r.eventually("a hook", func() bool { return r.started() > r.hooks })
}

func recordTermEnqueued(r *recording) {
	c := r.first()
	r.runTool(c)
	r.news(r.token)
	r.enqueued(r.token)
	c.end("SIGTERM")
	r.save("term-enqueued")
	r.continued = true
	c = r.start("--continue")
	c.prompt("are you there")
	r.eventually("a hook", func() bool { return r.started() > r.hooks })
	if r.api.turns(r.token) > 0 {
		r.t.Log("the continued session was given the wake")
	}
}

func recordClearEnqueued(r *recording) {
	c := r.first()
	open := r.runTool(c)
	r.news(r.token)
	r.enqueued(r.token)
	before := c.session()
	c.keys("-l", "--", "/clear")
	time.Sleep(time.Second)
	c.keys("Enter")
	time.Sleep(2 * time.Second)
	r.t.Logf("session changed before the tool ended: %v; turns %d\n%s", c.session() != before, r.api.turns(r.token), c.screen())
	open()
	time.Sleep(3 * time.Second)
	r.t.Logf("session changed after the tool ended: %v; turns %d\n%s", c.session() != before, r.api.turns(r.token), c.screen())
}

// In popped a person takes back the prompt that waits beside a wake.
func recordPopped(r *recording) {
	c := r.first()
	open := r.runTool(c)
	r.news(r.token)
	r.enqueued(r.token)
	c.enter("and then say goodbye", func() bool { return r.hasRow(`"enqueue"`, "say goodbye") })
	c.keys("Up")
	time.Sleep(time.Second)
	r.t.Logf("turns %d\n%s", r.api.turns(r.token), c.screen())
	open()
	time.Sleep(3 * time.Second)
	r.t.Logf("turns %d\n%s", r.api.turns(r.token), c.screen())
}

func recordAPIError(r *recording) {
	r.first()
	r.api.refuse(r.token)
	r.news(r.token)
	r.inTranscript("isApiErrorMessage", "true")
}

func recordAPIErrorMidTurn(r *recording) {
	c := r.first()
	open := r.runTool(c)
	r.api.refuse(r.token)
	r.news(r.token)
	r.enqueued(r.token)
	open()
	r.inTranscript("isApiErrorMessage", "true")
}

func recordIdleThenPrompt(r *recording) {
	c := r.first()
	r.news(r.token)
	r.turn(r.token)
	r.hookWaits()
	c.prompt("thank you")
	r.hookWaits()
}

// In echoed the woken model says the token in a command and in its answer.
func recordEchoed(r *recording) {
	r.first()
	r.api.when(r.token, answer{bash: "echo I was given " + r.token})
	r.api.when("<tool_result>I was given", answer{say: "I was woken by " + r.token})
	r.news(r.token)
	r.turn("<tool_result>I was given")
	r.hookWaits()
}

// In mentioned the token is in the transcript in every place but a wake's.
func recordMentioned(r *recording) {
	c := r.first()
	r.writeFile(filepath.Join(r.project, "notes.txt"), "delivery "+r.token+"\n", 0o600)
	r.api.when("look at the notes", answer{bash: "cat notes.txt"})
	r.api.when("<tool_result>delivery", answer{say: "the notes speak of " + r.token})
	c.prompt("look at the notes")
	r.hookWaits()
	c.prompt("what is " + r.token)
	r.hookWaits()
	open := r.runTool(c)
	c.enter("and what is "+r.token, func() bool { return r.hasRow(`"enqueue"`) })
	open()
	r.hookWaits()
}

func recordEscape(r *recording) {
	c := r.first()
	r.runTool(c)
	r.news(r.token)
	r.enqueued(r.token)
	c.keys("Escape")
	r.turn(r.token)
	r.hookWaits()
}

func recordStopped(r *recording) {
	c := r.first()
	goOn := c.stop()
	r.news(r.token)
	r.eventually("the hook took the news", func() bool {
		left, _ := os.ReadDir(r.path("news"))
		return len(left) == 0
	})
	time.Sleep(time.Second)
	r.save("stopped")
	goOn()
	r.continued = true
	r.turn(r.token)
	r.hookWaits()
}

func recordHalfTyped(r *recording) {
	c := r.first()
	c.keys("-l", "--", "half a sentence")
	r.eventually("the half sentence", func() bool { return strings.Contains(c.screen(), "half a sentence") })
	r.news(r.token)
	r.turn(r.token)
	r.hookWaits()
}

// In prompt-queued a person's prompt and a wake wait for the same tool.
func recordPromptQueued(r *recording) {
	c := r.first()
	open := r.runTool(c)
	c.enter("and then say goodbye", func() bool { return r.hasRow(`"enqueue"`) })
	r.news(r.token)
	r.enqueued(r.token)
	open()
	r.turn(r.token)
	r.hookWaits()
}

func recordCompact(r *recording) {
	c := r.first()
	r.news(r.token)
	r.turn(r.token)
	r.hookWaits()
	c.enter("/compact", func() bool { return r.hasRow("compact_boundary") })
}
