package hook

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

	"vx/internal/proc"
	"vx/internal/state"
)

// A turn whose own work wakes the next turn costs money, and nothing in the client stops it. So more than paceMany
// deliveries to one client within paceWindow, without a person's prompt between them, are slowed down: the interval
// doubles with each, from paceFirst to paceLast. The person's next prompt ends it, and so does calm: no wake for
// paceWindow beyond the interval.
const (
	paceMany   = 20
	paceWindow = 10 * time.Minute
	paceFirst  = 30 * time.Second
	paceLast   = 30 * time.Minute
)

// pace is what a client was given, kept in its project's clients/<pid>-<start>.json. Times are since boot, sleep
// included.
type pace struct {
	Client    proc.ID         `json:"client"`
	Boot      string          `json:"boot"`
	Delivered []time.Duration `json:"delivered_ns"`      // the latest, oldest first
	Doubled   int             `json:"doubled,omitempty"` // 0: no brake; 1: the first interval
}

func (p *pace) interval() time.Duration {
	if p.Doubled == 0 {
		return 0
	}
	return min(paceFirst<<min(p.Doubled-1, 16), paceLast)
}

// rest is how long the client is not to be woken yet.
func (p *pace) rest(now time.Duration) time.Duration {
	if len(p.Delivered) == 0 {
		return 0
	}
	return max(0, p.Delivered[len(p.Delivered)-1]+p.interval()-now)
}

// note counts a delivery.
func (p *pace) note(now time.Duration) {
	if n := len(p.Delivered); n > 0 && now-p.Delivered[n-1] > p.interval()+paceWindow {
		p.Delivered, p.Doubled = nil, 0
	}
	p.Delivered = append(p.Delivered, now)
	p.Delivered = slices.DeleteFunc(p.Delivered, func(at time.Duration) bool { return now-at > paceWindow })
	if p.Doubled > 0 || len(p.Delivered) > paceMany {
		p.Doubled++
	}
	p.Delivered = p.Delivered[max(0, len(p.Delivered)-paceMany-1):]
}

func paceFile(project *state.Project, client proc.ID) string {
	return project.Join("clients", fmt.Sprintf("%d-%d.json", client.PID, client.Start))
}

// readPace is the zero pace where there is none, or one of another boot.
func readPace(project *state.Project, client proc.ID) (pace, error) {
	p := pace{Client: client, Boot: proc.BootID()}
	data, err := os.ReadFile(paceFile(project, client))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	var old pace
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

// write is not synced to the disk: it is worth nothing after the machine's next boot.
func (p *pace) write(project *state.Project) error {
	path := paceFile(project, p.Client)
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

// forgetPaces removes the files of clients that are gone, and that of a client whose person is back.
func forgetPaces(project *state.Project, back proc.ID) error {
	return eachPace(project, func(path string, client proc.ID) error {
		if client == back || client.Status() == proc.Gone {
			return os.Remove(path)
		}
		return nil
	})
}

func eachPace(project *state.Project, f func(path string, client proc.ID) error) error {
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
	err := eachPace(project, func(path string, client proc.ID) error {
		if !strings.HasSuffix(path, ".json") || client.Status() == proc.Gone {
			return nil
		}
		p, err := readPace(project, client)
		if err == nil && p.rest(now) > 0 {
			all = append(all, Braked{client, p.interval(), time.Now().Add(p.rest(now))})
		}
		return err
	})
	return all, err
}
