package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"vx/internal/lock"
	"vx/internal/state"
)

// Busy is a working tree that another loop has.
type Busy struct {
	Tree    string    `json:"-"`
	Run     string    `json:"run"`
	Kind    string    `json:"kind"`
	Project string    `json:"project"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
}

func (b *Busy) Error() string {
	if b.Run == "" { // it has only just begun
		return fmt.Sprintf("loop: %s: another loop works on it", b.Tree)
	}
	return fmt.Sprintf("loop: %s: run %s works on it (%s, process %d, since %s)", b.Tree, line(b.Run), line(b.Kind), b.PID, b.Since.Local().Format("2006-01-02 15:04:05"))
}

// Hint is the command that ends the other one.
func (b *Busy) Hint() string {
	if b.Run == "" {
		return "vx loop list"
	}
	return "vx loop stop --run " + state.Quote(line(b.Run)) + " --project " + state.Quote(b.Project) + ", or use another git worktree"
}

// treeLock is the file that is locked by whoever works on a tree, whatever project that belongs to.
func treeLock(d *state.Dir, tree string) string {
	return d.Join("trees", filepath.Base(d.Project(tree).Dir)+".lock")
}

// lockTree takes the tree for one loop.
func lockTree(d *state.Dir, tree string) (*lock.Lock, error) {
	if err := os.Mkdir(d.Join("trees"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("loop: %w", err)
	}
	path := treeLock(d, tree)
	l, err := lock.Try(path)
	if errors.Is(err, lock.ErrHeld) {
		b := &Busy{}
		if data, err := os.ReadFile(path); err == nil {
			_ = json.Unmarshal(data, b) // nobody's name is lost in an error about a name
		}
		b.Tree = tree
		return nil, b
	}
	if err != nil {
		return nil, fmt.Errorf("loop: %w", err)
	}
	// What stands in it is of the one before.
	if err := os.Truncate(path, 0); err != nil {
		l.Unlock()
		return nil, fmt.Errorf("loop: %w", err)
	}
	return l, nil
}

// holdTree says in the lock's file who has it. The file stays the same one: it is what is locked.
func holdTree(p *state.Project, tree string, r *Run) error {
	data, err := json.Marshal(Busy{Run: r.ID, Kind: r.record.Kind, Project: p.Root, PID: r.record.PID, Since: r.record.Started})
	if err == nil {
		err = os.WriteFile(treeLock(p.State(), tree), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("loop: %w", err)
	}
	return nil
}
