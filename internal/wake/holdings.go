package wake

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/awaiter"
	"vx/internal/state"
)

// Holdings is what a project's state directory holds, for a person, or a rule, that decides whether it may go.
type Holdings struct {
	Waiting   int       `json:"waiting"`
	Unsettled int       `json:"unsettled"` // wakes in deliveries that have not ended, or beside the queue
	Bad       int       `json:"bad"`
	Tasks     int       `json:"tasks"`
	Camps     int       `json:"camps"`             // worktrees that soldiers work in
	Messages  int       `json:"messages"`          // feedback that nobody has acknowledged
	Runs      int       `json:"runs"`              // of loops; those that have not ended are refused elsewhere
	Undo      bool      `json:"undo"`              // how vx uninstall gives back the settings' very bytes
	Unknown   []string  `json:"unknown,omitempty"` // what this build knows nothing of, as paths in the directory
	Bytes     int64     `json:"bytes"`
	Changed   time.Time `json:"changed"` // when anything in it changed last
}

// undoFiles are the installer's, named here because they must not be lost or overwritten.
var undoFiles = []string{"install.json", "install-local.json", "install-pi.json", "install-opencode.json"}

// parts are the entries of a project's directory that this build knows.
var parts = map[string]bool{
	"project.json": true, "project.lock": true, "wakes": true, "history.jsonl": true, "history.jsonl.1": true,
	"history.lock": true, "clients": true, "commanders": true, "await.ended": true,
	"install.json": true, "install.json.lock": true, "install-local.json": true, "install-local.json.lock": true,
	"install-pi.json": true, "install-opencode.json": true,
}

// queueParts are the entries of the queue's directory that are no wakes.
var queueParts = map[string]bool{
	".tmp": true, ".lock": true, ".claimed": true, ".emitted": true, ".bad": true, ".aside": true, "forum": true,
}

// Holdings looks through everything that the project's directory holds. Nothing is changed.
func (q *Queue) Holdings() (Holdings, error) {
	var h Holdings
	err := filepath.WalkDir(q.Project.Dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // none there, or it went while we looked
		}
		if err != nil {
			return err
		}
		if fi, err := e.Info(); err == nil {
			h.Changed = later(h.Changed, later(fi.ModTime(), changeTime(fi)))
			if fi.Mode().IsRegular() {
				h.Bytes += fi.Size()
			}
		}
		if rel, err := filepath.Rel(q.Project.Dir, path); err == nil && rel != "." {
			return h.count(rel, e)
		}
		return nil
	})
	if err != nil {
		return h, fmt.Errorf("project %s: %w", q.Project.Root, err)
	}
	return h, nil
}

// count takes one entry into account, by its place in the directory.
func (h *Holdings) count(rel string, e fs.DirEntry) error {
	at := strings.Split(rel, string(filepath.Separator))
	name := at[len(at)-1]
	switch {
	case len(at) == 1 && slices.Contains(undoFiles, name):
		h.Undo = true
	case len(at) == 2 && at[0] == "tasks" && isWake(name):
		h.Tasks++
	case len(at) == 2 && at[0] == "forum-inbox" && isWake(name):
		h.Messages++
	case len(at) == 2 && at[0] == "runs":
		h.Runs++
	case len(at) == 2 && at[0] == "camps":
		h.Camps++
		if e.IsDir() {
			return fs.SkipDir // a whole worktree
		}
	case len(at) == 1 && !parts[name] && !slices.Contains(workParts(), name) && !isTemp(name):
		return h.unknown(rel, e)
	case at[0] != "wakes" || len(at) == 1:
	case len(at) == 2 && isWake(name), len(at) == 3 && at[1] == "forum" && isWake(name):
		h.Waiting++
	case len(at) == 2 && !queueParts[name], len(at) == 3 && at[1] == "forum":
		return h.unknown(rel, e)
	case len(at) == 3 && at[1] == ".aside":
		h.Unsettled++ // what a crash left between a task and its wake is still to be judged
	case len(at) == 3 && at[1] == ".bad":
		h.Bad++
	case len(at) > 3 && (at[1] == ".claimed" || at[1] == ".emitted") && isClaimed(at[3:]):
		h.Unsettled++
	}
	return nil
}

func (h *Holdings) unknown(rel string, e fs.DirEntry) error {
	h.Unknown = append(h.Unknown, rel)
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// isClaimed reports whether a path in a delivery's directory is a wake's.
func isClaimed(at []string) bool {
	switch len(at) {
	case 1:
		return at[0] == ".to.json" || isWake(at[0]) && at[0] != "to.json"
	case 2:
		return at[0] == "forum" && isWake(at[1])
	}
	return false
}

// isTemp reports whether a name is one that a file has until it is whole, and that a crash may leave.
func isTemp(name string) bool {
	for _, whole := range []string{".project.json", ".history.jsonl", ".install.json", ".install-local.json", ".install-pi.json", ".install-opencode.json"} {
		if strings.HasPrefix(name, whole) {
			return true
		}
	}
	return false
}

// Empty reports whether nothing would be lost with the directory but its past and this machine's choices.
func (h Holdings) Empty() bool {
	return h.Waiting+h.Unsettled+h.Tasks+h.Camps+h.Messages == 0 && len(h.Unknown) == 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A Refusal is a project whose state stays where it is, and why.
type Refusal struct {
	Project string
	Why     string
	Fix     string
}

func (r *Refusal) Error() string { return fmt.Sprintf("project %s: %s", r.Project, r.Why) }

// Hint is the command, or the sentence, that mends it.
func (r *Refusal) Hint() string { return r.Fix }

// quiet refuses a project in which somebody waits, a loop works, or a delivery is under way: its processes know their files by name.
func (q *Queue) quiet() error {
	p := q.Project
	live, err := awaiter.List(p.State(), p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(live) > 0 {
		return &Refusal{p.Root, fmt.Sprintf("an await of this project is live (pid %d)", live[0].Process.PID), "end the session that it serves, then try again"}
	}
	runs, err := atomicfile.Names(p.Join("runs"))
	if err != nil {
		return fmt.Errorf("project %s: %w", p.Root, err)
	}
	for _, id := range runs {
		if held(p.Join("runs", id, ".lock")) {
			return &Refusal{p.Root, fmt.Sprintf("a loop works in it (run %s)", id), "vx loop stop --project " + state.Quote(p.Root) + ", and let it end"}
		}
	}
	for _, stage := range []string{".claimed", ".emitted"} {
		tokens, err := atomicfile.Names(q.join(stage))
		if err != nil {
			return fmt.Errorf("project %s: %w", p.Root, err)
		}
		for _, token := range tokens {
			if owned(q.join(stage, token)) {
				return &Refusal{p.Root, "a delivery is under way", "try again in a moment"}
			}
		}
	}
	return nil
}

// buried is a project's directory under another name, where no command finds it.
func buried(dir string) *Queue { return Open(&state.Project{Dir: dir}) }
