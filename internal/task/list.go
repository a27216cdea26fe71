package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"vx/internal/atomicfile"
)

const (
	coarse    = 2 * time.Second // kernels stamp coarsely: a younger stamp may hide a second change
	lookAgain = time.Minute     // whatever the stamps say
)

// listing is what the last look found.
type listing struct {
	mtime time.Time // of the directory
	at    time.Time // when the look began
	files map[string]file
	tasks []Task
	bad   []error
}

// file is one record as it was read.
type file struct {
	info fs.FileInfo
	at   time.Time
	task Task
	err  error
}

// List is all tasks that can be read, the oldest first, and one error for each that cannot. While the directory has not
// changed that costs one stat. What it returns is shared: look, and change a task by Update.
func (s *Store) List() ([]Task, []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	fi, err := os.Stat(s.dir())
	if errors.Is(err, fs.ErrNotExist) {
		s.seen = listing{}
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("tasks: %w", err)}
	}
	since := now.Sub(s.seen.at)
	if fi.ModTime().Equal(s.seen.mtime) && s.seen.at.Sub(fi.ModTime()) > coarse && since >= 0 && since < lookAgain {
		return s.seen.tasks, s.seen.bad
	}
	names, err := atomicfile.Names(s.dir())
	if err != nil {
		return nil, []error{fmt.Errorf("tasks: %w", err)}
	}
	s.seen = s.look(names, listing{mtime: fi.ModTime(), at: now, files: map[string]file{}})
	if len(s.seen.bad) > 0 {
		s.seen.at = time.Time{} // what cannot be read now may be later
	}
	return s.seen.tasks, s.seen.bad
}

// look reads those records that are not known as they are.
func (s *Store) look(names []string, l listing) listing {
	slices.Sort(names)
	for _, name := range names {
		id, ok := idOf(name)
		if !ok {
			if strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
				l.bad = append(l.bad, fmt.Errorf("tasks: %q is no task's name", name))
			}
			continue
		}
		f, ok := s.lookAt(id, s.seen.files[id], l.at)
		switch {
		case !ok: // it went while we looked
			continue
		case f.err != nil:
			l.bad = append(l.bad, f.err)
		default:
			l.tasks = append(l.tasks, f.task)
		}
		l.files[id] = f
	}
	slices.SortStableFunc(l.tasks, func(a, b Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	l.tasks = slices.Clip(l.tasks)
	return l
}

func (s *Store) lookAt(id string, known file, now time.Time) (file, bool) {
	info, err := os.Lstat(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, false
	}
	if err == nil && known.info != nil && known.err == nil && os.SameFile(known.info, info) && known.info.Size() == info.Size() &&
		known.info.ModTime().Equal(info.ModTime()) && known.at.Sub(info.ModTime()) > coarse {
		return known, true
	}
	f := file{info: info, at: now}
	f.task, _, f.err = s.read(id)
	if _, gone := errors.AsType[*NotFound](f.err); gone {
		return file{}, false
	}
	return f, true
}
