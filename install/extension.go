package install

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"vx/internal/atomicfile"
	"vx/internal/state"
)

// Harness is the program that a commander runs in.
type Harness string

// The harnesses. Claude Code gets an entry in its settings, the others an extension: a file that they load by themselves.
const (
	Claude   Harness = "claude"
	Pi       Harness = "pi"
	OpenCode Harness = "opencode"
)

// Harnesses are all of them.
var Harnesses = []Harness{Claude, Pi, OpenCode}

// extended are those with an extension.
var extended = []Harness{Pi, OpenCode}

// Name is how people call it.
func (h Harness) Name() string {
	switch h {
	case Pi:
		return "Pi"
	case OpenCode:
		return "OpenCode"
	}
	return "Claude Code"
}

//go:embed extensions/pi/vexillum-wake.ts extensions/opencode/vexillum-wake.ts
var sources embed.FS

// extensionName is the file's, for every harness.
const extensionName = "vexillum-wake.ts"

// The first line of what vx writes tells it from what somebody else has written, or has changed: it has the rest's SHA-256.
const (
	mark     = "// vexillum-wake "
	markTail = ": written by vx. `vx upgrade` keeps it current and `vx uninstall` takes it out, as long as nobody changes it."
)

// current is an extension as this vx writes it.
func (h Harness) current() []byte {
	source, err := sources.ReadFile("extensions/" + string(h) + "/" + extensionName)
	if err != nil {
		panic(err) // it is compiled in
	}
	return append(headline(source), source...)
}

func headline(source []byte) []byte {
	sum := sha256.Sum256(source)
	return []byte(mark + hex.EncodeToString(sum[:]) + markTail + "\n")
}

// Standing is what stands in an extension's place.
type Standing int

// What can stand there.
const (
	Missing Standing = iota
	Current          // what this vx writes
	Earlier          // what another vx wrote
	Changed          // what a vx wrote, and somebody changed
	Foreign          // something else
)

// An Extension is the file that a harness loads, and its change where it is in a plan.
type Extension struct {
	Harness  Harness
	Path     string // absolute
	Shown    string
	Old, New []byte // nil: there is no file, there is to be none

	base string // the folder that is there anyway
}

// ExtensionOf is a harness' extension in a scope; ok is false where it has none there.
func ExtensionOf(root string, scope Scope, h Harness) (x Extension, ok bool) {
	x.Harness = h
	var below string
	switch {
	case !slices.Contains(extended, h), scope == Local, scope != User && root == "":
		return x, false
	case scope == User && h == Pi:
		below = "extensions"
		if x.base = os.Getenv("PI_CODING_AGENT_DIR"); x.base == "" {
			x.base, below = home(), ".pi/agent/extensions"
		}
	case scope == User:
		below = "opencode/plugin"
		if x.base = os.Getenv("XDG_CONFIG_HOME"); x.base == "" {
			x.base, below = home(), ".config/opencode/plugin"
		}
	case h == Pi:
		x.base, below = root, ".pi/extensions"
	default:
		x.base, below = root, ".opencode/plugin"
	}
	if !filepath.IsAbs(x.base) {
		return x, false
	}
	x.Path = filepath.Join(x.base, below, extensionName)
	x.Shown = Shown(root, x.Path)
	return x, true
}

func home() string {
	dir, _ := os.UserHomeDir()
	return dir
}

// maxExtension is more than any that vx wrote, in bytes.
const maxExtension = 1 << 20

// read reads the file and says what it is.
func (x *Extension) read() (Standing, error) {
	fi, err := os.Stat(x.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !broken(x.Path), errors.Is(err, syscall.ENOTDIR):
		return Missing, nil
	case err != nil:
		return Foreign, x.error(err)
	case !fi.Mode().IsRegular() || fi.Size() > maxExtension:
		return Foreign, nil
	}
	data, err := os.ReadFile(x.Path)
	if err != nil {
		return Foreign, x.error(err)
	}
	x.Old = data
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	switch {
	case !bytes.HasPrefix(first, []byte(mark)):
		return Foreign, nil
	case bytes.Equal(data, x.Harness.current()):
		return Current, nil
	// What stands behind the sum may have been worded otherwise.
	case bytes.HasPrefix(first, bytes.TrimSuffix(headline(rest), []byte(markTail+"\n"))):
		return Earlier, nil
	}
	return Changed, nil
}

// nowhere says why a folder on the way to the file cannot be made; "" if it can.
func (x *Extension) nowhere() string {
	for dir := filepath.Dir(x.Path); len(dir) > len(x.base); dir = filepath.Dir(dir) {
		fi, err := os.Stat(dir)
		switch {
		case broken(dir):
			return dir + " is a link to nothing"
		case err == nil && !fi.IsDir():
			return dir + " is no directory"
		}
	}
	return ""
}

// Look says what stands in the extension's place.
func (x Extension) Look() (Standing, error) { return x.read() }

// error names the file as a person knows it, instead of the path that the system names.
func (x Extension) error(err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == x.Path {
		err = pe.Err
	}
	return fmt.Errorf("extension %s: %w", x.Shown, err)
}

// NotOurs says that something stands in an extension's place that vx did not write.
type NotOurs struct {
	Shown string
	Why   string
}

func (e *NotOurs) Error() string { return "extension " + e.Shown + ": " + e.Why }

// Hint is how to go on from here.
func (e *NotOurs) Hint() string {
	return "move " + state.Quote(e.Shown) + " away if you do not need it, then the same again"
}

// extend plans what is done about the extensions of a scope.
func (p *Plan) extend(dir *state.Dir, scope Scope, action func(Harness) action) error {
	for _, h := range extended {
		a := action(h)
		x, ok := ExtensionOf(p.root, cmp.Or(scope, Project), h)
		if !ok {
			if a == add {
				return &noPlace{h, scope}
			}
			continue
		}
		standing, err := x.read()
		if err != nil && a != add {
			// It is nothing to whoever wants the other harnesses.
			p.Notes = append(p.Notes, err.Error()+"; it is left as it is")
			continue
		}
		if err != nil {
			return err
		}
		if err := p.extendBy(x, standing, a); err != nil {
			return err
		}
		if a == add && dir != nil && dir.InCamp(p.root) {
			p.Notes = append(p.Notes, "this is a soldier's camp: the extension does nothing in it")
		}
	}
	return nil
}

func (p *Plan) extendBy(x Extension, standing Standing, a action) error {
	changed := &NotOurs{x.Shown, "it was changed since vx wrote it"}
	if standing == Current || standing == Earlier {
		p.standing = append(p.standing, x)
	}
	switch {
	case a == remove && (standing == Current || standing == Earlier) && isPlain(x.Path):
		p.Extensions = append(p.Extensions, x)
	case a == remove && (standing == Current || standing == Earlier):
		p.Notes = append(p.Notes, x.Shown+" is a symlink, and stays")
	case standing == Changed && a == add:
		return changed
	case standing == Changed:
		p.Notes = append(p.Notes, x.Shown+" was changed since vx wrote it, and stays as it is")
	case standing == Foreign && a == add:
		return &NotOurs{x.Shown, "it is not what vx wrote"}
	case standing == Missing && a == add && x.nowhere() != "":
		return &NotOurs{x.Shown, x.nowhere()}
	case standing == Missing && a == add, standing == Earlier && a != remove:
		x.New = x.Harness.current()
		p.Extensions = append(p.Extensions, x)
	}
	return nil
}

// noPlace says that a harness has nothing in a scope.
type noPlace struct {
	harness Harness
	scope   Scope
}

func (e *noPlace) Error() string {
	return fmt.Sprintf("%s: has no extensions of scope %s", e.harness.Name(), e.scope)
}

// Hint is how to go on from here.
func (e *noPlace) Hint() string {
	return "--scope project for all who work in it, --scope user for you"
}

// summary is the change in a line.
func (x Extension) summary() string {
	switch {
	case x.New == nil:
		return "remove " + x.Shown
	case x.Old == nil:
		return "make " + x.Shown
	}
	return "change " + x.Shown
}

// extension carries out the change of one, unless somebody else has changed the file meanwhile.
func (a *applier) extension(x Extension) error {
	path := x.recordPath(a.dir, a.root)
	switch {
	case x.New == nil:
		return a.removeExtension(x, path)
	case x.Old != nil:
		if err := atomicfile.Replace(x.Path, x.Old, x.New, 0o600); err != nil {
			return err
		}
		a.note("changed", x.Path)
		return nil
	}
	if strings.HasPrefix(path, a.dir.Project(a.root).Dir) && a.root != "" {
		if err := a.ensureProject(); err != nil {
			return err
		}
	}
	folders := missing(x.base, filepath.Dir(x.Path))
	if err := (record{Path: x.Path, Made: true, Folders: folders}).write(path); err != nil {
		return err
	}
	a.note("made", path)
	if err := os.MkdirAll(filepath.Dir(x.Path), 0o777); err != nil {
		return err
	}
	for _, f := range folders {
		a.note("made", f)
	}
	fi, err := os.Stat(filepath.Dir(x.Path))
	if err == nil {
		// As open to others as its folder is.
		err = atomicfile.Create(x.Path, x.New, fi.Mode().Perm()&0o666)
	}
	if err == nil {
		a.note("made", x.Path)
	}
	return err
}

// missing are the folders that are not there yet, from the top down.
func missing(base, folder string) []string {
	var all []string
	for ; folder != base && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Lstat(folder); err == nil {
			break
		}
		all = append(all, folder)
	}
	slices.Reverse(all)
	return all
}

// removeExtension removes the file, moved aside and looked at first, and the folders that were made for it.
func (a *applier) removeExtension(x Extension, recordFile string) error {
	e := &Edit{File: File{Path: x.Path, Shown: x.Shown}, Old: x.Old}
	made := readRecord(recordFile, e.File)
	if err := a.takeAway(e); err != nil {
		return err
	}
	for _, folder := range slices.Backward(made.Folders) {
		// Links on the way are the user's, and lead where the folder was made.
		if rel, err := filepath.Rel(x.base, folder); err == nil && filepath.IsLocal(rel) && syscall.Rmdir(folder) == nil {
			a.note("removed", folder)
		}
	}
	if recordFile == "" {
		return nil
	}
	removed, err := drop(recordFile)
	if removed {
		a.note("removed", recordFile)
	}
	return err
}

// recordPath is where it is kept what was made; "" without a state directory.
func (x Extension) recordPath(dir *state.Dir, root string) string {
	name := string(x.Harness) + ".json"
	switch {
	case dir == nil:
		return ""
	case root != "" && x.base == root:
		return dir.Project(root).Join("install-" + name)
	}
	return dir.Join("install-user-" + name)
}
