//go:build !windows

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/state"
	"vx/internal/wake"
)

// A trial is one operation with one fault in it: it is prepared undisturbed, done with the fault, and judged without it.
type trial struct {
	operation
	fault fault
}

// A fault is something that fails.
type fault struct {
	name string
	on   func(*scene) error
	off  func(*scene) error
}

// errNoFault says that a fault has nothing to work on in this scene.
var errNoFault = errors.New("no fault")

// result is what trials came to.
type result struct {
	Trials, Failed int // Failed: the operation said so
	Wrong          []string
	LeftOut        string // why there were no trials
}

// run does the trial in a project of its own, and reports whether the operation failed.
func (t trial) run(dir *state.Dir, scratch string, r *result) (failed bool) {
	s, err := newScene(dir, scratch)
	if err == nil {
		err = t.prepare(s)
	}
	if err != nil {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %s: not prepared: %v", t.operation.name, t.fault.name, err))
		return false
	}
	defer func() {
		if err := s.remove(); err != nil {
			r.Wrong = append(r.Wrong, err.Error())
		}
	}()
	switch err = t.fault.on(s); {
	case errors.Is(err, errNoFault):
		return false
	case err != nil:
		s.ledger.complain("no fault: %v", err)
	default:
		err = t.do(s)
		failed = err != nil
		if off := t.fault.off(s); off != nil {
			s.ledger.complain("not mended: %v", off)
		}
	}
	s.judge()
	r.Trials++
	if failed {
		r.Failed++
	}
	for _, wrong := range s.ledger.wrong {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %s: %s (it said %v)", t.operation.name, t.fault.name, wrong, err))
	}
	return failed
}

// failing is the errno that a fault injects.
var failing = []syscall.Errno{syscall.ENOSPC, syscall.EACCES, syscall.EMFILE}

// inject fails the nth step of an operation, or all from it on. The count says how many there were.
func inject(nth int, all bool, errno syscall.Errno, count *int) fault {
	f := fault{name: fmt.Sprintf("%s at step %d", name(errno), nth)}
	if all {
		f.name += " and on"
	}
	at := "?"
	step := func(what, path string) error {
		*count++
		if *count == nth || all && *count > nth {
			if *count == nth {
				at = what
			}
			return &fs.PathError{Op: what, Path: path, Err: errno}
		}
		return nil
	}
	f.on = func(s *scene) error {
		s.queue.Before = func(w wake.Step) error { return step(string(w), "") }
		atomicfile.Before = step
		return nil
	}
	f.off = func(s *scene) error {
		s.queue.Before, atomicfile.Before = nil, nil
		s.fault = at
		return nil
	}
	return f
}

func name(errno syscall.Errno) string {
	switch errno {
	case syscall.ENOSPC:
		return "ENOSPC"
	case syscall.EACCES:
		return "EACCES"
	case syscall.EMFILE:
		return "EMFILE"
	}
	return errno.Error()
}

// injected fails each step of each operation in turn.
func injected(dir *state.Dir, scratch string, p plan) (r result) {
	errnos := failing
	if p.short {
		errnos = errnos[:1]
	}
	for _, op := range operations {
		for _, errno := range errnos {
			for _, all := range []bool{false, true} {
				// Until there is no nth step any more.
				for nth, count := 1, 1; nth <= count; nth++ {
					count = 0
					trial{op, inject(nth, all, errno, &count)}.run(dir, scratch, &r)
					count++
				}
			}
		}
	}
	return r
}

// faults is the second part of the torture: it reports whether nothing was lost, on out.
func faults(p plan, scratch string, out io.Writer) bool {
	fmt.Fprintf(out, "faults: %d operations\n", len(operations))
	start := time.Now()
	ok := true
	for _, t := range []struct {
		what string
		task task
	}{
		{"an error in place of each step", asInject},
		{"no more descriptors (RLIMIT_NOFILE)", asLimits},
		{"no more access (directories and files read-only)", asForbid},
		{"no more space (a small file system)", asFull},
	} {
		r := faultChild(t.task, p, scratch)
		if r.LeftOut != "" {
			fmt.Fprintf(out, "  %s: left out: %s\n", t.what, r.LeftOut)
			continue
		}
		fmt.Fprintf(out, "  %s: %d trials, in %d the operation failed and said so\n", t.what, r.Trials, r.Failed)
		printWrong(out, r.Wrong)
		ok = ok && len(r.Wrong) == 0
	}
	fmt.Fprintf(out, "  %.0f s\n", time.Since(start).Seconds())
	return ok
}

// printWrong lists what must not be, up to a screenful.
func printWrong(out io.Writer, wrong []string) {
	for i, line := range wrong {
		if i == 20 {
			fmt.Fprintf(out, "  and %d more\n", len(wrong)-i)
			return
		}
		fmt.Fprintln(out, "  WRONG:", line)
	}
}

// faultChild runs trials in a process of their own, which may limit itself as it likes.
func faultChild(t task, p plan, scratch string) result {
	var r result
	own := filepath.Join(scratch, "faults-"+string(t))
	if err := os.Mkdir(own, 0o755); err != nil {
		r.Wrong = append(r.Wrong, err.Error())
		return r
	}
	o := order{Task: t, Root: own, Short: p.short}
	e, err := performing(o)
	if errors.Is(err, syscall.EPERM) {
		if t == asFull {
			r.LeftOut = err.Error()
			return r
		}
		o.Plain = true
		e, err = performing(o)
	}
	if err != nil || e.Status != 0 {
		r.Wrong = append(r.Wrong, fmt.Sprintf("status %d: %v %s %s", e.Status, err, e.Trouble, e.Stderr))
		return r
	}
	if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%v: %.200s", err, e.Stdout))
	}
	return r
}

// faultMain is main in such a process.
func faultMain(o order) int {
	home := filepath.Join(o.Root, "state")
	var r result
	err := prepareFaults(o)
	if left, ok := err.(leftOut); ok {
		r.LeftOut, err = string(left), nil
		return report(r)
	}
	if err == nil {
		err = os.Setenv("VEXILLUM_HOME", home)
	}
	var dir *state.Dir
	if err == nil {
		dir, err = state.Open()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return broken
	}
	p := plan{short: o.Short}
	switch o.Task {
	case asInject:
		r = injected(dir, o.Root, p)
	case asLimits:
		r = starved(dir, o.Root)
	case asForbid:
		r = forbidden(dir, o.Root)
	case asFull:
		r = full(dir, o.Root, p)
	}
	return report(r)
}

func report(r result) int {
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return broken
	}
	return 0
}

// leftOut says why a kind of fault cannot be had here.
type leftOut string

func (l leftOut) Error() string { return string(l) }

// starved gives each operation one descriptor more than before, from none, until it has enough.
func starved(dir *state.Dir, scratch string) (r result) {
	for _, op := range operations {
		for spare := 0; spare < 64; spare++ {
			f := fault{name: fmt.Sprintf("%d descriptors left", spare)}
			var was syscall.Rlimit
			f.on = func(*scene) error {
				if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
					return err
				}
				now := was
				now.Cur = uint64(freeDescriptor() + spare)
				return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now)
			}
			f.off = func(*scene) error { return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) }
			if failed := (trial{op, f}).run(dir, scratch, &r); !failed && spare > 8 {
				break
			}
		}
	}
	return r
}

// freeDescriptor is the lowest number that is free.
func freeDescriptor() int {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return 0
	}
	defer f.Close()
	return int(f.Fd())
}

// forbidden makes one directory or file after the other read-only, for a user who is not root.
func forbidden(dir *state.Dir, scratch string) (r result) {
	for _, op := range operations {
		for _, at := range []string{
			"state", "wakes", "wakes/.tmp", "wakes/.claimed", "wakes/.claimed/*", "wakes/.emitted", "wakes/.emitted/*",
			"wakes/.bad", "wakes/.lock", "history.jsonl", "project/.claude", "project/.claude/settings.json", "project",
		} {
			var paths []string
			var modes []fs.FileMode
			f := fault{name: at + " is read-only"}
			f.on = func(s *scene) error {
				pattern := filepath.Join(s.queue.Project.Dir, at)
				switch rest, ok := strings.CutPrefix(at, "project"); {
				case ok:
					pattern = s.queue.Project.Root + rest
				case at == "state":
					pattern = s.queue.Project.Dir
				}
				if paths, _ = filepath.Glob(pattern); len(paths) == 0 {
					return errNoFault
				}
				for _, path := range paths {
					fi, err := os.Stat(path)
					if err != nil {
						return err
					}
					modes = append(modes, fi.Mode().Perm())
					if err := os.Chmod(path, fi.Mode().Perm()&^0o222); err != nil {
						return err
					}
				}
				return nil
			}
			f.off = func(*scene) error {
				for i, path := range paths {
					if err := os.Chmod(path, modes[i]); err != nil && !os.IsNotExist(err) {
						return err
					}
				}
				return nil
			}
			trial{op, f}.run(dir, scratch, &r)
		}
	}
	return r
}

// full fills the file system but for a few pages, and then its table of inodes.
func full(dir *state.Dir, scratch string, p plan) (r result) {
	most := 10
	if p.short {
		most = 4
	}
	for _, op := range operations {
		for _, filler := range []func(string, int) error{fillPages, fillInodes} {
			for spare := range most {
				ballast := filepath.Join(scratch, "ballast")
				f := fault{
					name: fmt.Sprintf("%d pages or inodes left", spare),
					on:   func(*scene) error { return filler(ballast, spare) },
					off:  func(*scene) error { return os.RemoveAll(ballast) },
				}
				trial{op, f}.run(dir, scratch, &r)
			}
		}
	}
	return r
}

const page = 4096

// fillPages leaves so many pages free. What is written is all zero but takes its place.
func fillPages(ballast string, spare int) error {
	if err := os.Mkdir(ballast, 0o700); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(ballast, "pages"))
	if err != nil {
		return err
	}
	defer f.Close()
	size := int64(0)
	for {
		n, err := f.Write(make([]byte, page))
		size += int64(n)
		if err != nil {
			break
		}
	}
	return f.Truncate(max(0, size-int64(spare)*page))
}

// fillInodes leaves so many files to be made.
func fillInodes(ballast string, spare int) error {
	if err := os.Mkdir(ballast, 0o700); err != nil {
		return err
	}
	n := 0
	for ; ; n++ {
		if err := os.WriteFile(filepath.Join(ballast, fmt.Sprint(n)), nil, 0o600); err != nil {
			break
		}
	}
	for i := max(0, n-spare); i < n; i++ {
		if err := os.Remove(filepath.Join(ballast, fmt.Sprint(i))); err != nil {
			return err
		}
	}
	return nil
}
