package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"vx/internal/atomicfile"
	"vx/internal/lock"
)

// Project is one project's part of the state directory. It need not exist on disk yet.
type Project struct {
	Root string // the project's own resolved absolute path
	Dir  string // its directory under projects/
	dir  *Dir
}

// Config is project.json: this machine's choices for a project. Fields that this build does not know are kept.
type Config struct {
	Path  string `json:"path"`
	Await string `json:"await,omitempty"` // "always": wait outside herdr panes too
	// Nudge says that the sentinel may type wakes into the pane of a commander whom no await serves.
	Nudge bool `json:"nudge,omitempty"`
	// MutedUntil keeps wakes in the queue until then; the zero time means not muted.
	MutedUntil time.Time `json:"muted_until,omitzero"`
}

// Muted reports whether wakes stay in the queue at this moment.
func (c Config) Muted(now time.Time) bool { return now.Before(c.MutedUntil) }

// ID is the first 8 hex digits of the SHA-256 of the project's resolved path.
func (p *Project) ID() string { return idOf(p.Root) }

// Join is a path in the project's directory.
func (p *Project) Join(elem ...string) string {
	return filepath.Join(append([]string{p.Dir}, elem...)...)
}

// State is the state directory that the project is kept in.
func (p *Project) State() *Dir { return p.dir }

func idOf(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:4])
}

// Project is the project whose resolved root is given; see Resolve.
func (d *Dir) Project(root string) *Project {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, filepath.Base(root))
	base = strings.TrimLeft(base[:min(len(base), 60)], ".")
	return &Project{root, d.Join("projects", base+"-"+idOf(root)), d}
}

// errNoPath says that a directory under projects/ does not say whose it is.
var errNoPath = errors.New("no path known")

// Projects are all projects that the state directory has, and what could not be read of it, one error each.
func (d *Dir) Projects() ([]*Project, []error) {
	entries, err := os.ReadDir(d.Join("projects"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{fmt.Errorf("projects: %w", err)}
	}
	var all []*Project
	var bad []error
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		p := &Project{Dir: d.Join("projects", e.Name()), dir: d}
		c, err := p.Config()
		if err == nil && c.Path == "" {
			err = errNoPath
		}
		if err != nil {
			bad = append(bad, fmt.Errorf("project %s: %w", e.Name(), err))
			continue
		}
		p.Root = c.Path
		all = append(all, p)
	}
	return all, bad
}

// Ensure makes the project's directory and its project.json. A path that JSON cannot hold is refused: the project would
// not be found again.
func (p *Project) Ensure() error {
	if !utf8.ValidString(p.Root) {
		return &Error{p.Root, "its name is not valid UTF-8", "rename it"}
	}
	if err := os.Mkdir(p.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unusable(p.Dir, err)
	}
	if err := checkDir(p.Dir); err != nil {
		return err
	}
	c, err := p.Config()
	switch {
	case err != nil:
		return err
	case c.Path == p.Root:
		return nil
	case c.Path != "":
		return &Error{p.Dir, fmt.Sprintf("belongs to %s", c.Path), "vx project move " + Quote(c.Path) + " " + Quote(p.Root)}
	}
	return p.Update(func(c *Config) {})
}

// Config reads project.json. A missing file is the zero Config.
func (p *Project) Config() (Config, error) {
	var c Config
	data, err := os.ReadFile(p.Join("project.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, unusable(p.Join("project.json"), err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, &Error{p.Join("project.json"), "not readable: " + err.Error(), "mend it or move it away, then vx init"}
	}
	return c, nil
}

// Update changes project.json under its lock; the project's directory must exist. Fields unknown to this build stay.
func (p *Project) Update(change func(*Config)) error {
	return p.edit(func(fields map[string]json.RawMessage) error {
		var c Config
		data, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(data, &c)
		}
		if err != nil {
			return err
		}
		c.Path = p.Root
		change(&c)
		for _, known := range []string{"path", "await", "nudge", "muted_until"} {
			delete(fields, known)
		}
		if data, err = json.Marshal(c); err != nil {
			return err
		}
		return json.Unmarshal(data, &fields)
	})
}

// patience is how long project.json's lock is waited for; it is held for one write.
const patience = 5 * time.Second

// edit changes the fields of project.json, under its lock.
func (p *Project) edit(change func(map[string]json.RawMessage) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := lock.Wait(ctx, p.Join("project.lock"))
	if err != nil {
		return unusable(p.Join("project.lock"), err)
	}
	defer l.Unlock()
	file := p.Join("project.json")
	fields := map[string]json.RawMessage{}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if fields == nil { // the file says null
		fields = map[string]json.RawMessage{}
	}
	if err == nil {
		err = change(fields)
	}
	if err == nil {
		data, err = json.MarshalIndent(fields, "", "  ")
	}
	if err == nil {
		err = atomicfile.Write(file, append(data, '\n'), 0o600)
	}
	if err != nil {
		return unusable(file, err)
	}
	return nil
}

// Resolve finds the project that a directory belongs to: the nearest directory at or above it, no higher than its git
// root, that this state directory knows as a project; else the git root; else, for a directory outside any repository,
// itself. git is the git root, "" where there is none. d may be nil (no state directory yet).
func (d *Dir) Resolve(dir string) (root, git string, err error) {
	dir, err = filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", "", fmt.Errorf("project: %w", err)
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return "", "", fmt.Errorf("project %s: not a directory", dir)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if root == "" && d != nil && d.known(at) {
			root = at
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			git = at
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	switch {
	case root != "":
	case git != "":
		root = git
	default:
		root = dir
	}
	return root, git, nil
}

func (d *Dir) known(root string) bool {
	_, err := os.Lstat(d.Project(root).Join("project.json"))
	return err == nil
}

// InCamp reports whether a resolved project root is a camp: a worktree under the state directory's camps/.
func (d *Dir) InCamp(root string) bool {
	rel, err := filepath.Rel(d.Join("projects"), root)
	if err != nil || strings.HasPrefix(rel, "..") {
		return false
	}
	parts := strings.Split(rel, string(filepath.Separator))
	return len(parts) >= 3 && parts[1] == "camps"
}
