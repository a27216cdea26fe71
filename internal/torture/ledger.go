//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"vx/internal/wake"
)

// ledger knows every wake of a project, and what the model was told.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account // by id, and missions by "task/end" too
	all      []*account
	wrong    []string // torn, invented, and what else must not be
}

// account is one wake that a producer was started with. A mission's status goes from one number to the next; folded
// ones go further.
type account struct {
	id, task, title string
	from, to        int
	placed          bool // surely in the queue: not killed before
	told            int  // how often the model was told
	excused         int  // of those, that may be followed by another
	kept            bool // in .bad
	covered         bool // told or kept as part of a mission's longer way
}

// outcome is what became of the wakes of one project or more.
type outcome struct{ put, told, kept, folded, lost, twice, excused int }

func (o outcome) plus(p outcome) outcome {
	return outcome{
		o.put + p.put, o.told + p.told, o.kept + p.kept, o.folded + p.folded, o.lost + p.lost, o.twice + p.twice, o.excused + p.excused,
	}
}

func (o outcome) String() string {
	never := o.put - o.told - o.kept - o.folded - o.lost
	return fmt.Sprintf("%d wakes, %d told, %d folded, %d kept in .bad, %d whose producer died before; lost %d, twice %d",
		o.put, o.told, o.folded, o.kept, never, o.lost, o.twice)
}

func newLedger() *ledger { return &ledger{accounts: map[string]*account{}} }

// open enters a wake before its producer is started.
func (l *ledger) open(w wake.Wake) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &account{id: w.ID, task: w.TaskID, title: w.Title}
	if a.task != "" {
		a.from, a.to = status(w.OldStatus), status(w.NewStatus)
		l.accounts[end(a.task, a.to)] = a
	}
	l.accounts[w.ID] = a
	l.all = append(l.all, a)
	return a
}

// place says that a wake is surely in the queue.
func (l *ledger) place(a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.placed = true
}

func end(task string, to int) string { return task + "/" + strconv.Itoa(to) }

// status takes the number out of "s12"; -1 for anything else.
func status(s string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "s"))
	if err != nil {
		return -1
	}
	return n
}

func (l *ledger) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

var (
	headLine    = regexp.MustCompile(`^vx: news, not an error: (\d+) wakes? for this project \(delivery [0-9a-z]{16}\)\.`)
	messageLine = regexp.MustCompile(`^- message (\S+): (.*)$`)
	missionLine = regexp.MustCompile(`^- mission (\S+): s(\d+) -> s(\d+)$`)
)

// lastLine is how every message ends.
const lastLine = "vx status shows this project.\n"

// tell enters a text that the model was given. excused says that nothing can have shown so to the queue: it may give the
// same wakes once more.
func (l *ledger) tell(text string, excused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(text, "\n")
	n := 0
	for i, line := range lines {
		var a *account
		if m := messageLine.FindStringSubmatch(line); m != nil {
			if a = l.accounts[m[1]]; a != nil && a.title != m[2] {
				l.wrong = append(l.wrong, fmt.Sprintf("torn: %q was put as %q", line, a.title))
			}
		} else if m := missionLine.FindStringSubmatch(line); m != nil {
			from, to := status(m[2]), status(m[3])
			if a = l.accounts[end(m[1], to)]; a != nil {
				if lines[i+1] != "    > "+a.title {
					l.wrong = append(l.wrong, fmt.Sprintf("torn: %q under %q, was put as %q", lines[i+1], line, a.title))
				}
				l.cover(a.task, from, to)
			}
		} else {
			continue
		}
		n++
		if a == nil {
			l.wrong = append(l.wrong, "invented: "+line)
			continue
		}
		a.told++
		if excused {
			a.excused++
		}
	}
	if m := headLine.FindStringSubmatch(lines[0]); m == nil || m[1] != strconv.Itoa(n) || !strings.HasSuffix(text, lastLine) {
		l.wrong = append(l.wrong, fmt.Sprintf("torn: %d wakes in a text of %d bytes that begins %.100q", n, len(text), text))
	}
}

// cover marks what a mission's way from one status to another includes. l.mu is held.
func (l *ledger) cover(task string, from, to int) {
	for _, a := range l.all {
		if a.task == task && a.from >= from && a.to <= to {
			a.covered = true
		}
	}
}

// keep enters a file of .bad. Only what the rules send there may be there: three claims without an emission, or a second
// text that did not reach the model.
func (l *ledger) keep(bad wake.Bad) {
	data, err := os.ReadFile(bad.Path)
	var w wake.Wake
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[w.ID]
	switch {
	case err != nil:
		l.wrong = append(l.wrong, fmt.Sprintf("torn: .bad/%s: %v", bad.Name, err))
		return
	case a == nil:
		l.wrong = append(l.wrong, fmt.Sprintf("invented: .bad/%s: id %q", bad.Name, w.ID))
		return
	case w.Reaps < 2 && w.PutBacks < 1:
		l.wrong = append(l.wrong, fmt.Sprintf(".bad/%s was reaped %d times and put back %d times only", bad.Name, w.Reaps, w.PutBacks))
	}
	a.kept = true
	if a.task != "" {
		l.cover(a.task, status(w.OldStatus), a.to)
	}
}

// close draws the balance once nothing is in the queue any more.
func (l *ledger) close() outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := outcome{put: len(l.all)}
	for _, a := range l.all {
		ends := a.told
		if a.kept {
			ends++
		}
		switch {
		case a.told > 0:
			o.told++
		case a.kept:
			o.kept++
		case a.covered:
			o.folded++
		case a.placed:
			o.lost++
			l.wrong = append(l.wrong, fmt.Sprintf("lost: %s %q", a.id, a.title))
		}
		if extra := ends - 1; extra > 0 {
			o.excused += min(extra, a.excused)
			if extra > a.excused {
				o.twice++
				l.wrong = append(l.wrong, fmt.Sprintf("twice: %s %q was told %d times, %d of them excused, kept %v", a.id, a.title, a.told, a.excused, a.kept))
			}
		}
	}
	return o
}
