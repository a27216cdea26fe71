package wake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vx/internal/atomicfile"
	"vx/internal/awaiter"
	"vx/internal/state"
)

// Moved is what Move did.
type Moved struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Merged bool   `json:"merged"` // into state that the new place had already
	Wakes  int    `json:"wakes"`  // that wait now in the new place and came from the old one, when merged
}

// Move gives the state of a project that was moved or renamed to its new root, which must be resolved. Where nothing is
// kept of the new root the directory is renamed; else wakes, deliveries and all the rest are taken over one by one, each by
// a rename, so that a crash on the way loses nothing and Move again completes it. It refuses with a *Refusal, before
// anything is changed, while an await or a delivery of the old root is live, and where both have what cannot be merged.
func Move(ctx context.Context, old *state.Project, root string) (Moved, error) {
	m := Moved{From: old.Root, To: root}
	if old.Root == root {
		return m, &Refusal{root, "it is there already", "vx project list"}
	}
	from := Open(old)
	if err := from.quiet(); err != nil {
		return m, err
	}
	l, err := from.hold(ctx)
	if err != nil {
		return m, fmt.Errorf("move: %w", err)
	}
	if l != nil {
		defer l.Unlock()
	}
	if names, err := atomicfile.Names(old.Join("camps")); len(names) > 0 || err != nil {
		// Git knows a worktree by its path, and so does whoever works in it.
		return m, errors.Join(err, inhabited(old, len(names)))
	}
	to := old.State().Project(root)
	if m.Merged = to.Dir != old.Dir && exists(to.Dir); m.Merged {
		m.Wakes, err = Open(to).takeOver(ctx, from)
	} else if err = rebaseUndo(old, root); err == nil {
		_, err = old.Rename(root)
	}
	if err != nil {
		return m, fmt.Errorf("move: %w", err)
	}
	awaiter.Ring(to.State(), to)
	return m, nil
}

// rebaseUndo makes the installer's records name the settings files in the project's new place, so that vx uninstall
// believes them there.
func rebaseUndo(p *state.Project, root string) error {
	for _, name := range undoFiles {
		data, err := os.ReadFile(p.Join(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var path string
		fields := map[string]json.RawMessage{}
		if err != nil || json.Unmarshal(data, &fields) != nil || json.Unmarshal(fields["path"], &path) != nil {
			continue // the installer takes it for none
		}
		rest, err := filepath.Rel(p.Root, path)
		if err != nil || !filepath.IsLocal(rest) {
			continue
		}
		if fields["path"], err = json.Marshal(filepath.Join(root, rest)); err == nil {
			data, err = json.MarshalIndent(fields, "", "  ")
		}
		if err == nil {
			err = atomicfile.Write(p.Join(name), append(data, '\n'), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeOver moves everything that from holds into q. The lock of from is held. Its project.json goes last, so that it stays
// a known project until it is empty.
func (q *Queue) takeOver(ctx context.Context, from *Queue) (wakes int, err error) {
	rest, err := q.mergeable(from)
	if err != nil {
		return 0, err
	}
	if err := q.Ensure(); err != nil {
		return 0, err
	}
	l, err := q.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer l.Unlock()
	if err := q.takeDeliveries(from); err != nil {
		return 0, err
	}
	if wakes, err = q.takeWakes(from); err != nil {
		return wakes, err
	}
	if err := q.takeHistory(from); err != nil {
		return wakes, err
	}
	if err := rebaseUndo(from.Project, q.Project.Root); err != nil {
		return wakes, err
	}
	if err := q.takeWork(from); err != nil {
		return wakes, err
	}
	for _, name := range rest {
		if err := os.Rename(from.Project.Join(name), q.Project.Join(name)); err != nil {
			return wakes, err
		}
	}
	if err := q.Project.Adopt(from.Project); err != nil {
		return wakes, err
	}
	return wakes, from.dissolve()
}

// mergeable names the entries of from that are to be renamed as they are, and refuses where q has one of the same name.
func (q *Queue) mergeable(from *Queue) (rest []string, err error) {
	entries, err := os.ReadDir(from.Project.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		undo := slices.Contains(undoFiles, name)
		if !undo && (parts[name] || isTemp(name)) || slices.Contains(workParts(), name) {
			continue
		}
		if !exists(q.Project.Join(name)) {
			rest = append(rest, name)
			continue
		}
		if undo {
			return nil, &Refusal{q.Project.Root, "vx was installed in both, " + from.Project.Root + " and here", "vx uninstall in one of them, then try again"}
		}
		return nil, &Refusal{q.Project.Root, fmt.Sprintf("both it and %s have %q", from.Project.Root, name), "look into " + q.Project.Dir}
	}
	return rest, nil
}

// takeDeliveries takes over deliveries that have not ended; whoever settles next judges them.
func (q *Queue) takeDeliveries(from *Queue) error {
	for _, stage := range []string{".claimed", ".emitted"} {
		tokens, err := atomicfile.Names(from.join(stage))
		if err != nil {
			return err
		}
		for _, token := range tokens {
			if err := os.Rename(from.join(stage, token), q.join(stage, token)); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeWakes takes over what waits, folding it into what waits here, and what lies in .bad and .aside. Both locks are held.
func (q *Queue) takeWakes(from *Queue) (n int, err error) {
	for _, box := range boxes {
		names, err := atomicfile.Names(from.join(box))
		if err != nil {
			return n, err
		}
		for _, name := range names {
			path := from.join(box + name)
			switch {
			case isWake(name):
				if err = q.restore(path, box+name); err == nil {
					n++
				}
			case box == "" && queueParts[name]:
				continue
			default: // a stranger's file
				err = keepBeside(path, q.join(box+name))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return n, err
			}
		}
	}
	for _, kept := range []string{".bad", ".aside"} {
		names, nerr := atomicfile.Names(from.join(kept))
		if err = errors.Join(err, nerr); len(names) > 0 && !exists(q.join(kept)) {
			err = errors.Join(err, os.Mkdir(q.join(kept), 0o700))
		}
		for _, name := range names {
			err = errors.Join(err, keepBeside(from.join(kept, name), q.join(kept, name)))
		}
	}
	return n, err
}

// keepBeside moves a file, under another name where its own is taken.
func keepBeside(from, to string) error {
	err := atomicfile.RenameNew(from, to)
	if errors.Is(err, fs.ErrExist) {
		ext := filepath.Ext(to)
		err = os.Rename(from, strings.TrimSuffix(to, ext)+"-"+newToken()+ext)
	}
	return err
}

// takeHistory puts the events of from before our own. A crash before the old files are removed tells them twice.
func (q *Queue) takeHistory(from *Queue) error {
	var all []byte
	olds := []string{from.historyFile() + ".1", from.historyFile()}
	for _, path := range append(olds, q.historyFile()+".1") {
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = append(all, data...)
	}
	if len(all) > 0 {
		if err := atomicfile.Write(q.historyFile()+".1", all, 0o600); err != nil {
			return err
		}
	}
	for _, path := range olds {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// dissolve removes the directory of a project from which everything was taken. What has come since makes it fail, and
// stays.
func (q *Queue) dissolve() error {
	for _, dir := range []string{q.join(".tmp"), q.Project.Join("clients"), q.Project.Join("commanders")} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	gone := []string{
		q.join("forum"), q.join(".claimed"), q.join(".emitted"), q.join(".bad"), q.join(".aside"), q.join(".lock"), q.join(),
		q.Project.Join("history.lock"), q.Project.Join("await.ended"), q.Project.Join("project.lock"),
		q.Project.Join("install.json.lock"), q.Project.Join("install-local.json.lock"),
	}
	entries, err := os.ReadDir(q.Project.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isTemp(e.Name()) {
			gone = append(gone, q.Project.Join(e.Name()))
		}
	}
	for _, path := range append(gone, q.Project.Join("project.json"), q.Project.Dir) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

// inhabited is the refusal to touch a state that has camps in it. Git needs the repository where it was to remove them.
func inhabited(p *state.Project, camps int) *Refusal {
	fix := "vx strike them (vx land first what is to be kept), then try again"
	if p.Gone() {
		fix = "move the repository back to " + state.Quote(p.Root) + ", there " + fix
	}
	return &Refusal{p.Root, fmt.Sprintf("soldiers have camps in its state (%d)", camps), fix}
}
