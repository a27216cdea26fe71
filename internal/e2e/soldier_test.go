//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vx/internal/task"
)

// A command is a world in which one client, the commander, is told what becomes of soldiers. Of what the model is asked
// to do, the commands that begin with mkdir need a person's permission.
type command struct {
	*world
	commander *client
	heard     map[string]int // by task: how many of its news were expected already
	given     int            // orders
}

func newCommand(t *testing.T, version string) *command {
	w := newProject(t, version)
	w.settings(map[string]any{"allow": []string{"Bash"}, "ask": []string{"Bash(mkdir:*)"}})
	w.commit(w.project)
	w.writeFile(w.path("slow"), "#!/bin/sh\nsleep 30\n", 0o700) // 2.1.332 refuses a plain sleep
	return &command{world: w, heard: map[string]int{}}
}

// step is a part of a test. What comes after one that failed would fail with it.
func (f *command) step(name string, do func()) {
	outer := f.t
	defer func() { f.t = outer }()
	if !outer.Run(name, func(t *testing.T) {
		f.t = t
		do()
	}) {
		outer.FailNow()
	}
}

// commit makes a commit in a work tree.
func (w *world) commit(dir string) {
	w.t.Helper()
	w.mustRun("/bin/sh", "-c", "cd "+quote(dir)+" && "+aCommit)
}

// aCommit is a shell's command that commits, in whatever work tree it is.
const aCommit = "git -c user.name=e2e -c user.email=e2e@localhost commit -q --allow-empty -m work"

func (w *world) mustRun(program string, args ...string) {
	w.t.Helper()
	if out, status := w.run(program, args...); status != 0 {
		w.t.Fatalf("%s %q: exit %d\n%s", program, args, status, out)
	}
}

// repository makes a git repository that the clients trust, with a commit. It is called before any of them runs.
func (w *world) repository(name string) (dir string) {
	w.t.Helper()
	dir = w.path(name)
	w.trust(dir)
	w.mustRun("/usr/bin/git", "init", "-q", dir)
	w.commit(dir)
	return dir
}

// trust makes the clients take a folder for a trusted one.
func (w *world) trust(dir string) {
	w.t.Helper()
	name := filepath.Join(w.home, ".claude.json")
	data, err := os.ReadFile(name)
	if err != nil {
		w.t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		w.t.Fatal(err)
	}
	all["projects"].(map[string]any)[dir] = map[string]any{
		"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "allowedTools": []string{}}
	w.writeJSON(name, all)
}

// order has the commander's model run a command of vx, and returns what it prints.
func (f *command) order(args ...string) string {
	f.t.Helper()
	f.given++
	ask := fmt.Sprintf("order number %d.", f.given)
	words := []string{quote(filepath.Join(f.home, ".local", "bin", "vx"))}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	f.api.when(ask, answer{bash: fmt.Sprintf("%s; echo order %d ended with $?", strings.Join(words, " "), f.given)})
	f.commander.prompt(ask)
	end := fmt.Sprintf("order %d ended with ", f.given)
	f.within(3*time.Minute, "the end of vx "+strings.Join(args, " "), func() bool { return f.api.told(end) != "" }, f.api.dump)
	told := f.api.told(end)
	if !strings.Contains(told, end+"0") {
		f.t.Fatalf("vx %q: %s", args, told)
	}
	return told
}

// hands has the commander hand out a task, and returns the task's id.
func (f *command) hands(args ...string) string {
	f.t.Helper()
	before := f.tasks()
	said := f.order(args...)
	for id := range f.tasks() {
		if _, old := before[id]; !old {
			return id
		}
	}
	f.t.Fatalf("vx %q made no task: %s", args, said)
	return ""
}

// tasks are the records of all tasks, by their ids.
func (w *world) tasks() map[string]task.Task {
	w.t.Helper()
	names, err := filepath.Glob(w.path("state/projects/*/tasks/*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]task.Task{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		var t task.Task
		if err != nil || json.Unmarshal(data, &t) != nil {
			w.t.Fatalf("%s: %v, %q", name, err, data)
		}
		all[t.ID] = t
	}
	return all
}

// news is what the commander was told of a task: the line that is specified to the letter, and what stands below it.
type news struct {
	at           time.Time
	line, detail string
}

// news returns what the model was told of a task, each delivery once.
func (a *api) news(id string) []news {
	delivery := regexp.MustCompile(`\(delivery (\S+)\)`)
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []news
	seen := map[string]bool{}
	for _, r := range a.requests {
		for _, message := range r.tail {
			token := delivery.FindStringSubmatch(message)
			if !r.main || token == nil || seen[token[1]] {
				continue
			}
			seen[token[1]] = true
			for _, part := range strings.Split(message, "\n- ")[1:] {
				line, detail, _ := strings.Cut(part, "\n")
				if _, change, ok := strings.Cut(line, " "+id+": "); ok {
					all = append(all, news{r.at, change, detail})
				}
			}
		}
	}
	return all
}

// told waits until the commander was told one more thing about the task, checks that it is this one, and that it did not
// come before the model had been told what it must not come before.
func (f *command) told(id, line, notBefore string) news {
	f.t.Helper()
	n := f.heard[id]
	var all []news
	f.within(3*time.Minute, "news of the task: "+line, func() bool {
		all = f.api.news(id)
		return len(all) > n
	}, func() string { return fmt.Sprintf("its record is %+v\n%s\n%s", f.tasks()[id], f.log(), f.api.dump()) })
	f.heard[id]++
	got := all[n]
	if got.line != line {
		f.t.Fatalf("the commander was told %q (%s), want %q; the sentinel's log:\n%s\nthe model was told:\n%s%s", got.line, got.detail, line, f.log(), f.api.dump(), f.screens())
	}
	if notBefore != "" {
		f.t.Logf("told %s later", got.at.Sub(f.api.first(notBefore)).Round(time.Millisecond))
		if !got.at.After(f.api.first(notBefore)) {
			f.t.Errorf("the commander was told %q before %q", line, notBefore)
		}
	}
	return got
}

// says checks that something stands in what the commander was told.
func (f *command) says(n news, what string) {
	f.t.Helper()
	if !strings.Contains(n.detail, what) {
		f.t.Errorf("%s: nothing was told of %q: %s", n.line, what, n.detail)
	}
}

// first is when the model was first told what holds the needle.
func (a *api) first(needle string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if r.main && strings.Contains(strings.Join(r.tail, "\n"), needle) {
			return r.at
		}
	}
	return time.Now()
}

// nothing checks that the commander has been told nothing but what was expected.
func (f *command) nothing(id string) {
	f.t.Helper()
	if all := f.api.news(id); len(all) != f.heard[id] {
		f.t.Fatalf("the commander was told of %+v; the sentinel's log:\n%s%s", all[f.heard[id]:], f.log(), f.screens())
	}
}

// sweeps waits until the sentinel has looked a few times, also after the eight seconds in which nothing is decided, and
// checks that nothing was told of the tasks.
func (f *command) sweeps(ids ...string) {
	f.t.Helper()
	for end := time.Now().Add(16 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, id := range ids {
			f.nothing(id)
		}
	}
}

func (w *world) log() string {
	data, _ := os.ReadFile(w.path("state/sentinel.log"))
	return string(data)
}

// status is what the client's own record says of it.
func (c *client) status() string {
	data, err := os.ReadFile(filepath.Join(c.w.home, ".claude", "sessions", fmt.Sprint(c.proc.pid)+".json"))
	if err != nil {
		return ""
	}
	var s struct{ Status string }
	if json.Unmarshal(data, &s) != nil {
		return ""
	}
	return s.Status
}

// becomes waits until the client's own record says one of these.
func (c *client) becomes(status ...string) {
	c.w.t.Helper()
	c.w.eventuallyOr(fmt.Sprintf("the soldier is %q", status), func() bool { return slices.Contains(status, c.status()) },
		func() string { return "it is " + c.status() })
}
