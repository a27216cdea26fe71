// Package pace slows down the waking of a client whose turns wake each other, or fail: it keeps, for each client of a
// project, when it was given something. It wakes nobody and knows no wake.
//
// What it keeps is one small file a client, written whole and not synced: a crash of the machine forgets it, and with it
// the client.
package pace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vx/internal/claude"
	"vx/internal/proc"
	"vx/internal/state"
)

// A turn whose own work wakes the next turn costs money, and nothing in the client stops it. So more than many
// deliveries to one client within window, without a person's prompt between them, are slowed down: the interval
// doubles with each, from first to last. The person's next prompt ends it, and so does calm: no wake for
// window beyond the interval.
const (
	many   = 20
	window = 10 * time.Minute
	first  = 30 * time.Second
	last   = 30 * time.Minute
)

// Pace is what a client was given, kept in its project's clients/<pid>-<start>.json. Times are since boot, sleep
// included.
type Pace struct {
	Client    proc.ID         `json:"client"`
	Boot      string          `json:"boot"`
	Delivered []time.Duration `json:"delivered_ns"`      // the latest, oldest first
	Doubled   int             `json:"doubled,omitempty"` // 0: no brake; 1: the first interval
}

// Interval is how long the client is left alone after each delivery; 0: it is not on the brake.
func (p *Pace) Interval() time.Duration {
	if p.Doubled == 0 {
		return 0
	}
	return min(first<<min(p.Doubled-1, 16), last)
}

// Rest is how long the client is not to be woken yet.
func (p *Pace) Rest(now time.Duration) time.Duration {
	if len(p.Delivered) == 0 {
		return 0
	}
	return max(0, p.Delivered[len(p.Delivered)-1]+p.Interval()-now)
}

// Note counts a delivery.
func (p *Pace) Note(now time.Duration) {
	if n := len(p.Delivered); n > 0 && now-p.Delivered[n-1] > p.Interval()+window {
		p.Delivered, p.Doubled = nil, 0
	}
	p.Delivered = append(p.Delivered, now)
	p.Delivered = slices.DeleteFunc(p.Delivered, func(at time.Duration) bool { return now-at > window })
	if p.Doubled > 0 || len(p.Delivered) > many {
		p.Doubled++
	}
	p.Delivered = p.Delivered[max(0, len(p.Delivered)-many-1):]
}

// failedWaits is how long wakes wait after one, two, three, and four or more turns in a row that ended in an API error:
// a turn on a failing service is lost, and the wakes that it was to tell with it.
var failedWaits = [...]time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute}

// AfterFailure is how long wakes are to wait still for n failed turns, the last of which ended ago. A clock that was set
// back does not make it longer.
func AfterFailure(n int, ago time.Duration) time.Duration {
	if n == 0 {
		return 0
	}
	wait := failedWaits[min(n, len(failedWaits))-1]
	return min(max(0, wait-ago), wait)
}

// Failing tells of a running Claude Code how many of its last turns failed, one after the other, and how long wakes are to
// wait still because of that. Both are 0 where that is not known.
func Failing(client proc.ID) (turns int, wait time.Duration) {
	s, ok := claude.SessionOf(client)
	if !ok {
		return 0, 0
	}
	turns, last := claude.Failures(s.Transcript())
	return turns, AfterFailure(turns, time.Since(last))
}

func file(project *state.Project, client proc.ID) string {
	return project.Join("clients", fmt.Sprintf("%d-%d.json", client.PID, client.Start))
}

// Read is the zero pace where there is none, or one of another boot.
func Read(project *state.Project, client proc.ID) (Pace, error) {
	p := Pace{Client: client, Boot: proc.BootID()}
	data, err := os.ReadFile(file(project, client))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	var old Pace
	if err == nil {
		err = json.Unmarshal(data, &old)
	}
	if err != nil {
		return p, fmt.Errorf("pace of client %d: %w", client.PID, err)
	}
	if old.Client == client && old.Boot == p.Boot {
		p = old
	}
	return p, nil
}

// Write is not synced to the disk: it is worth nothing after the machine's next boot.
func (p *Pace) Write(project *state.Project) error {
	path := file(project, p.Client)
	data, err := json.Marshal(p)
	if err == nil {
		err = os.Mkdir(filepath.Dir(path), 0o700)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("pace of client %d: %w", p.Client.PID, err)
	}
	temp := path + "." + strconv.Itoa(os.Getpid())
	if err = os.WriteFile(temp, data, 0o600); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return fmt.Errorf("pace of client %d: %w", p.Client.PID, err)
	}
	return nil
}

// Forget removes the files of clients that are gone, and that of a client whose person is back.
func Forget(project *state.Project, back proc.ID) error {
	return each(project, func(path string, client proc.ID) error {
		if client == back || client.Status() == proc.Gone {
			return os.Remove(path)
		}
		return nil
	})
}

func each(project *state.Project, f func(path string, client proc.ID) error) error {
	entries, err := os.ReadDir(project.Join("clients"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("paces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		// A temporary file of one who died while writing goes with the client that it names.
		name, _, _ := strings.Cut(e.Name(), ".json")
		pid, start, _ := strings.Cut(name, "-")
		var client proc.ID
		var err1, err2 error
		client.PID, err1 = strconv.Atoi(pid)
		client.Start, err2 = strconv.ParseUint(start, 10, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		if err := f(project.Join("clients", e.Name()), client); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Braked is a client that is woken slowly, because its turns wake each other.
type Braked struct {
	Client   proc.ID
	Interval time.Duration // between two deliveries
	Next     time.Time     // not before
}

// Brakes are the clients of a project that are woken slowly now. Nothing is changed.
func Brakes(project *state.Project) ([]Braked, error) {
	var all []Braked
	now := proc.SinceBoot()
	err := each(project, func(path string, client proc.ID) error {
		if !strings.HasSuffix(path, ".json") || client.Status() == proc.Gone {
			return nil
		}
		p, err := Read(project, client)
		if err == nil && p.Rest(now) > 0 {
			all = append(all, Braked{client, p.Interval(), time.Now().Add(p.Rest(now))})
		}
		return err
	})
	return all, err
}
