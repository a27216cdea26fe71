package awaiter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/proc"
	"vx/internal/state"
)

// beingMade is how young the files of an awaiter without a record must be for somebody to be making them still.
const beingMade = time.Minute

// Entry is an awaiter as others see it.
type Entry struct {
	Record
	base string
}

// List are the live awaiters of a project (of all projects when p is nil), oldest first, and what could not be read.
// What dead ones left is removed on the way.
func List(dir *state.Dir, p *state.Project) ([]Entry, error) {
	live, dead, err := look(dir, p)
	errs := []error{err}
	for _, base := range dead {
		errs = append(errs, bury(dir, base))
	}
	return live, errors.Join(errs...)
}

// Look is List for a reader that must not write: what dead awaiters left stays, and is named.
func Look(dir *state.Dir, p *state.Project) (live []Entry, left []string, err error) {
	live, dead, err := look(dir, p)
	for _, base := range dead {
		for _, path := range filesOf(base) {
			if _, err := os.Lstat(path); err == nil {
				left = append(left, path)
			}
		}
	}
	return live, left, err
}

func look(dir *state.Dir, p *state.Project) (live []Entry, dead []string, err error) {
	project := ""
	if p != nil {
		project = p.ID()
	}
	names, err := readNames(dir.Awaiters())
	if err != nil {
		return nil, nil, fmt.Errorf("awaiters: %w", err)
	}
	var errs []error
	for base, has := range group(names, project) {
		base = dir.Awaiters() + "/" + base
		e, gone, err := inspect(base, has)
		switch {
		case err != nil:
			errs = append(errs, err)
		case gone:
			dead = append(dead, base)
		case e != nil:
			live = append(live, *e)
		}
	}
	slices.SortFunc(live, func(a, b Entry) int {
		switch {
		case a.Process.Younger(b.Process):
			return 1
		case b.Process.Younger(a.Process):
			return -1
		}
		return cmp.Compare(a.base, b.base)
	})
	slices.Sort(dead)
	return live, dead, errors.Join(errs...)
}

// settled is how long a directory must have been left alone for an unchanged modification time to mean that nothing
// changed: kernels stamp coarsely.
const settled = 2 * time.Second

// seen is what an awaiter knows of the others.
type seen struct {
	changed time.Time // the directory's modification time at the last look
	looked  time.Time // when that was
	names   map[string]bool
}

// ErrUnregistered says that an awaiter's own record is gone: somebody removed the registry.
var ErrUnregistered = errors.New("registration is gone")

// Newcomers are the live awaiters of the same project that came since the last call, and may be of the same client; at
// first all of those. While nothing changes in the registry it costs one stat. The error is ErrUnregistered when the
// awaiter itself is not in it any more.
func (a *Awaiter) Newcomers() ([]Entry, error) {
	dir, own := filepath.Split(a.base)
	fi, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrUnregistered
	}
	if err != nil {
		return nil, fmt.Errorf("awaiters: %w", err)
	}
	last, now := a.seen, seen{fi.ModTime(), time.Now(), map[string]bool{}}
	if now.changed.Equal(last.changed) && last.looked.Sub(last.changed) > settled {
		return nil, nil
	}
	names, err := readNames(dir)
	if err != nil {
		return nil, fmt.Errorf("awaiters: %w", err)
	}
	if !slices.Contains(names, own+".json") {
		return nil, fmt.Errorf("awaiters: %w", ErrUnregistered)
	}
	var fresh []Entry
	var errs []error
	for _, name := range names {
		base, isRecord := strings.CutSuffix(name, ".json")
		if !isRecord || base == own || pidOf(base) == 0 || !mayShareClient(base, own) {
			continue
		}
		if !last.names[base] {
			e, err := visit(a.project.State(), dir+base)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if e != nil {
				fresh = append(fresh, *e)
			}
		}
		now.names[base] = true
	}
	if errs != nil {
		now.looked = time.Time{} // what could not be read is tried again
	}
	a.seen = now
	return fresh, errors.Join(errs...)
}

// Sample is List over all projects for one who starts often: it looks at so many awaiters at most, from anywhere on, so
// that two hundred that start at once do not read each other's records forty thousand times.
func Sample(dir *state.Dir, most int) ([]Entry, error) {
	names, err := readNames(dir.Awaiters())
	if err != nil {
		return nil, fmt.Errorf("awaiters: %w", err)
	}
	// The lock is the first of an awaiter's files to come and the last to go.
	names = slices.DeleteFunc(names, func(name string) bool {
		base, isLock := strings.CutSuffix(name, ".lock")
		return !isLock || pidOf(base) == 0
	})
	var live []Entry
	var errs []error
	from := rand.IntN(len(names) + 1)
	for i := range min(most, len(names)) {
		base := strings.TrimSuffix(names[(from+i)%len(names)], ".lock")
		e, err := visit(dir, dir.Awaiters()+"/"+base)
		if err != nil {
			errs = append(errs, err)
		}
		if e != nil {
			live = append(live, *e)
		}
	}
	return live, errors.Join(errs...)
}

// visit reads one awaiter, and removes what it left if it is dead.
func visit(dir *state.Dir, base string) (*Entry, error) {
	e, gone, err := inspect(base, files{record: exists(base + ".json")})
	if !gone {
		return e, err
	}
	return nil, bury(dir, base)
}

// files says which files of one awaiter a directory holds.
type files struct{ record, fifo, hold, lock, temp bool }

// group sorts file names by the awaiter that they belong to. Names of any other form are not ours.
func group(names []string, project string) map[string]files {
	all := map[string]files{}
	for _, name := range names {
		name, temp := strings.CutPrefix(name, ".")
		ext := filepath.Ext(name)
		base := strings.TrimSuffix(name, ext)
		if !strings.HasPrefix(base, project) || pidOf(base) == 0 {
			continue
		}
		has := all[base]
		switch {
		case temp:
			has.temp = true
		case ext == ".json":
			has.record = true
		case ext == ".fifo":
			has.fifo = true
		case ext == holdFile:
			has.hold = true
		case ext == ".lock":
			has.lock = true
		default:
			continue
		}
		all[base] = has
	}
	return all
}

// inspect reads the record of a live awaiter. It returns nil for one that is being made, or is gone.
func inspect(base string, has files) (e *Entry, gone bool, err error) {
	if held(base + ".lock") {
		if !has.record {
			return nil, false, nil
		}
		e, err = readEntry(base)
		return e, false, err
	}
	return nil, has.record || youngest(base) >= beingMade, nil
}

// filesOf are the files that an awaiter may leave, in the order in which they are to be removed.
func filesOf(base string) []string {
	return []string{base + ".json", base + ".fifo", base + holdFile, temp(base + ".json"), temp(base + ".fifo"), base + ".lock"}
}

// bury removes what a dead awaiter left, and keeps when that was found.
func bury(dir *state.Dir, base string) error {
	if e, err := readEntry(base); err == nil && e != nil {
		noteEnd(dir.Project(e.Project))
	}
	var errs []error
	for _, path := range filesOf(base) {
		errs = append(errs, remove(path))
	}
	return errors.Join(errs...)
}

func readEntry(base string) (*Entry, error) {
	data, err := os.ReadFile(base + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it leaves just now
	}
	e := &Entry{base: base}
	if err == nil {
		err = json.Unmarshal(data, &e.Record)
	}
	if err == nil && e.Process.PID != pidOf(filepath.Base(base)) {
		err = fmt.Errorf("names process %d", e.Process.PID)
	}
	if err != nil {
		return nil, fmt.Errorf("awaiter %s: %w", filepath.Base(base), err)
	}
	return e, nil
}

// held reports whether somebody holds the lock file. It asks with a shared lock, so that two who ask at once do not take
// each other for the holder, and never makes the file. Where the kernel cannot tell it counts as held.
func held(path string) bool {
	fd, err := openRetry(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer unix.Close(fd)
	return flock(fd, unix.LOCK_SH) != nil
}

// flock takes a lock if it is free.
func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}

// youngest is the age of the newest of an awaiter's files.
func youngest(base string) time.Duration {
	age := beingMade
	for _, path := range []string{base + ".lock", base + ".fifo", temp(base + ".fifo"), temp(base + ".json")} {
		if fi, err := os.Lstat(path); err == nil {
			age = min(age, time.Since(fi.ModTime()))
		}
	}
	return age
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// Live reports whether the awaiter is there still.
func (e Entry) Live() bool { return held(e.base + ".lock") }

// Terminate sends SIGTERM to the awaiter after its record, its start time and its command line (arguments that begin
// "sentinel await") agree, through a handle on the process. proc.ErrGone when it has ended.
func (e Entry) Terminate() error {
	if err := e.terminate(); err != nil {
		return fmt.Errorf("stop await %d: %w", e.Process.PID, err)
	}
	return nil
}

func (e Entry) terminate() error {
	h, err := proc.Open(e.Process)
	if err != nil {
		return err
	}
	defer h.Close()
	args, err := commandLine(e.Process)
	if err != nil {
		return err
	}
	if len(args) < 3 || args[1] != "sentinel" || args[2] != "await" {
		return fmt.Errorf("its command line is %q, not an await's", args)
	}
	if !e.Live() {
		return proc.ErrGone
	}
	return h.Signal(int(syscall.SIGTERM))
}

// commandLine is the process's arguments. In the middle of an exec, which an await makes when it begins to rest, there are
// none for a moment.
func commandLine(id proc.ID) ([]string, error) {
	for tries := 1; ; tries++ {
		args, err := proc.Args(id)
		if err != nil || len(args) > 0 || tries == 20 {
			return args, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
