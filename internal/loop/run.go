package loop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

const (
	runsDir  = "runs" // of a project's state
	lockFile = ".lock"
)

// patience is how long another one's marker is waited for; it takes some milliseconds.
const patience = 5 * time.Second

// Plan is what a run is to be.
type Plan struct {
	Kind    string
	Title   string
	Command []string
	Limits  Limits
	Tree    string // resolved: the working tree that it is to have to itself
	Dir     string // its directory; "" is a new one under the project's state
}

// Run is a run as its owner has it.
type Run struct {
	ID  string
	Dir string
	// Say is called with each line that is logged, where it is set.
	Say func(line string)

	mu     sync.Mutex
	record *Record // nil for a run that a shell loop keeps
	owned  *lock.Lock
	tree   *lock.Lock
	beat   context.CancelFunc
	ended  bool
	paused bool
}

// Create begins a run of a project: it takes the tree's lock, makes the directory and says in it whose it is. The error is
// a *Busy when another loop works on the tree, and fs.ErrExist when the given directory has a run already.
func Create(p *state.Project, plan Plan) (_ *Run, err error) {
	if err := p.Ensure(); err != nil {
		return nil, err
	}
	r := &Run{record: &Record{Kind: plan.Kind, Title: line(plan.Title), Command: plan.Command, Tree: plan.Tree, Limits: plan.Limits}}
	defer func() {
		if err != nil {
			r.release()
		}
	}()
	if r.tree, err = lockTree(p.State(), plan.Tree); err != nil {
		return nil, err
	}
	if err := r.place(p, plan.Dir); err != nil {
		return nil, err
	}
	if r.owned, err = lock.Try(filepath.Join(r.Dir, lockFile)); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.ID, err)
	}
	if err := free(r.Dir); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	r.record.mine()
	r.record.Started, r.record.Heartbeat = now, now
	if err := r.record.save(r.Dir); err != nil {
		return nil, err
	}
	// Old readers take a run for one when its progress.txt is there.
	if err := add(r.Dir, header("vx loop "+plan.Kind, r.ID, now), true); err != nil {
		return nil, err
	}
	if err := holdTree(p, plan.Tree, r); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.beat = cancel
	go r.beats(ctx)
	return r, nil
}

// place makes the run's directory, or makes the given one known to the project.
func (r *Run) place(p *state.Project, dir string) (err error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
		if r.Dir, err = resolve(dir); err != nil {
			return err
		}
		r.ID, err = register(p, r.Dir)
		return err
	}
	if err := makeRuns(p); err != nil {
		return err
	}
	for {
		r.ID = newID(time.Now())
		r.Dir = p.Join(runsDir, r.ID)
		err := os.Mkdir(r.Dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = atomicfile.SyncDir(p.Join(runsDir))
		}
		if err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
		return nil
	}
}

func makeRuns(p *state.Project) error {
	if err := os.Mkdir(p.Join(runsDir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("run directory: %w", err)
	}
	return nil
}

// newID is a new run's name: the time, so that names sort, and what tells two of one second apart.
func newID(now time.Time) string { return now.UTC().Format("20060102-150405") + "-" + random() }

func random() string {
	var b [2]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// resolve is the one name of a directory.
func resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	if fi, err := os.Stat(abs); err != nil || !fi.IsDir() {
		return "", fmt.Errorf("run directory %s: not a directory", dir)
	}
	return abs, nil
}

// free refuses a directory that has a run.
func free(dir string) error {
	for _, name := range []string{recordFile, progressFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("run directory %s: it has a run already: %w", dir, fs.ErrExist)
		}
	}
	return nil
}

// register makes a run directory that is elsewhere known to the project, by a link among its runs, and returns the run's id.
// One where ralph.sh keeps its own is known as it is.
func register(p *state.Project, dir string) (string, error) {
	if originals, err := resolve(originals(p.Root)); err == nil && filepath.Dir(dir) == originals {
		return filepath.Base(dir), nil
	}
	if runs, err := resolve(p.Join(runsDir)); err == nil && filepath.Dir(dir) == runs {
		return filepath.Base(dir), nil
	}
	if err := makeRuns(p); err != nil {
		return "", err
	}
	id := wake.FileName(filepath.Base(dir))
	for range 100 {
		err := os.Symlink(dir, p.Join(runsDir, id))
		if err == nil {
			return id, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("run directory: %w", err)
		}
		if at, err := os.Readlink(p.Join(runsDir, id)); err == nil && at == dir {
			return id, nil
		}
		id = wake.FileName(filepath.Base(dir)) + "-" + random()
	}
	return "", fmt.Errorf("run directory %s: its name is taken", dir)
}

// beats shows that the owner lives, for those who cannot ask the kernel for it.
func (r *Run) beats(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		if !r.ended {
			_ = r.save() // the next one comes soon
		}
		r.mu.Unlock()
	}
}

// save is for whoever holds r.mu.
func (r *Run) save() error {
	r.record.Heartbeat = time.Now().UTC()
	return r.record.save(r.Dir)
}

// Begin writes the head of an iteration, and what is known of it.
func (r *Run) Begin(n int, fields ...Field) error {
	head := fmt.Sprintf("## %s - iter %d\n", time.Now().UTC().Format(time.RFC3339), n)
	return r.append(head, append([]Field{{"iteration", fmt.Sprint(n)}}, fields...))
}

// Note writes key=value lines. Of one key the last assignment counts; an empty value takes it back. A value becomes one
// line, and a worker's promise=COMPLETE is written as promise="COMPLETE": it is not the run's.
func (r *Run) Note(fields ...Field) error { return r.append("", fields) }

// Log writes prose.
func (r *Run) Log(text string) error { return r.write(text) }

func (r *Run) write(text string, fields ...Field) error {
	p := prose(text)
	err := r.append(p, fields)
	r.say(p)
	return err
}

func (r *Run) say(prose string) {
	if r.Say == nil {
		return
	}
	for l := range strings.Lines(prose) {
		r.Say(strings.TrimSuffix(l, "\n"))
	}
}

func (r *Run) append(text string, fields []Field) error {
	for _, f := range fields {
		l, err := f.assign()
		if err != nil {
			return err
		}
		text += l
	}
	if text == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return fmt.Errorf("run %s: it has ended", r.ID)
	}
	return add(r.Dir, text, false)
}

// IterLog opens the log of an iteration's worker, to be appended to. Its caller closes it.
func (r *Run) IterLog(n int) (*os.File, error) {
	return atomicfile.OpenLog(filepath.Join(r.Dir, fmt.Sprintf("iter-%03d.log", n)))
}

// Start starts a worker in a process group of its own, and notes who leads it: vx loop stop --now ends nobody else.
func (r *Run) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pgid = true, 0
	if err := cmd.Start(); err != nil {
		return err
	}
	// It is a child that nobody waits for yet, so the pid is its own. One that cannot be found cannot be ended by others.
	id, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		id = proc.ID{PID: cmd.Process.Pid}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Worker = &Worker{id, time.Now().UTC()}
	// It works all the same when this cannot be written down.
	_ = r.save()
	return nil
}

// Wait waits for the worker's end and returns what cmd.Wait does.
func (r *Run) Wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Worker = nil
	_ = r.save()
	return err
}

// EndWorker ends the worker's process group: SIGTERM, and SIGKILL to what is left of it after 5 s. Wait is to be called
// all the same.
func (r *Run) EndWorker() error {
	r.mu.Lock()
	w := r.record.Worker
	r.mu.Unlock()
	if w == nil {
		return nil
	}
	_, err := w.end()
	return err
}

// Finish ends the run: what there is to say, then the marker, durable. A run ends once: later calls do nothing, whatever
// their reason. After an error it has not ended, and Finish may be called again.
func (r *Run) Finish(reason Reason, say string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	if r.record == nil {
		return r.finishForeign(reason, say)
	}
	if err := r.mark(reason, say); err != nil {
		return err
	}
	r.release()
	return nil
}

// finishForeign ends a run that nobody owns.
func (r *Run) finishForeign(reason Reason, say string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := lock.Wait(ctx, filepath.Join(r.Dir, lockFile))
	if err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	defer l.Unlock()
	return r.mark(reason, say)
}

// mark is for whoever holds the run's lock.
func (r *Run) mark(reason Reason, say string) error {
	_, fresh, err := end(r.Dir, reason, say)
	if err != nil {
		return fmt.Errorf("run %s: %w", r.ID, err)
	}
	r.ended = true
	if fresh {
		r.say(prose(say))
	}
	return nil
}

// end writes a marker, unless there is one, and returns the reason that stands there now. One that was begun is completed:
// its reason was the run's. fresh says that something was written. It is for whoever holds the run's lock.
func end(dir string, reason Reason, say string) (_ Reason, fresh bool, err error) {
	p, err := readProgress(dir)
	if err != nil || p.reason != "" {
		return p.reason, false, err
	}
	text := ""
	switch {
	case p.decided != "":
		reason = p.decided
	case say != "":
		if n := len(p.tail); n > 0 && p.tail[n-1] != '\n' {
			text = "\n"
		}
		text += prose(say)
	}
	before := p.tail
	if text != "" {
		before = []byte(text)
	}
	return reason, true, add(dir, text+marker(reason, before), true)
}

// release gives the locks back and ends the heartbeat. r.mu is held, or nobody else knows of r.
func (r *Run) release() {
	if r.beat != nil {
		r.beat()
	}
	for _, l := range []*lock.Lock{r.owned, r.tree} {
		if l != nil {
			l.Unlock()
		}
	}
}
