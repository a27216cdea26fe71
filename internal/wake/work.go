package wake

import (
	"errors"
	"io/fs"
	"os"

	"vx/internal/atomicfile"
)

// workParts are the entries of a project's directory that hold tasks, what soldiers work in and leave behind, the feedback
// of reviews, and the runs of loops. This package knows of them only that they must not be lost.
func workParts() []string {
	return []string{"tasks", "reports", "pauses", "camps", "forum-inbox", "runs"}
}

// oldMessages is where the messages of forum-inbox are that were acknowledged.
const oldMessages = "forum-inbox/acknowledged"

// takeWork takes over what soldiers did, and feedback. The ids of tasks are random, so that none is in the way of another;
// a message, or a run, whose name is taken gets another, which is its id then.
func (q *Queue) takeWork(from *Queue) error {
	for _, part := range append([]string{oldMessages}, workParts()...) {
		names, err := atomicfile.Names(from.Project.Join(part))
		if err == nil && len(names) > 0 {
			err = os.MkdirAll(q.Project.Join(part), 0o700)
		}
		for _, name := range names {
			at := from.Project.Join(part, name)
			switch {
			case err != nil:
			case name[0] == '.': // the lock, and what a crash left half written
				err = os.Remove(at)
			default:
				err = keepBeside(at, q.Project.Join(part, name))
			}
		}
		if err == nil {
			err = os.Remove(from.Project.Join(part))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
