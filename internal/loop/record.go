package loop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/proc"
)

const (
	recordFile = "run.json"
	maxRecord  = 1 << 20 // bytes

	heartbeat = 30 * time.Second
	// silence is how old a heartbeat is when its owner counts as dead where the kernel cannot be asked for it.
	silence = 10 * heartbeat
)

// Record is run.json: whose run it is. Fields that this build does not know are kept.
type Record struct {
	Kind    string   `json:"kind"` // "green", "ralph"
	Title   string   `json:"title,omitempty"`
	Command []string `json:"command,omitempty"` // as it was started
	Tree    string   `json:"tree,omitempty"`    // the working tree that it has to itself
	Limits  Limits   `json:"limits"`

	proc.ID             // the owner: pid and start, as the kernel keeps it
	BootID    string    `json:"boot_id,omitempty"`
	Host      string    `json:"host,omitempty"`
	Started   time.Time `json:"started_at"`
	Heartbeat time.Time `json:"heartbeat_at"` // every 30 s

	Worker *Worker `json:"worker,omitempty"` // that works now
}

// Limits are what ends a run, as far as it has any.
type Limits struct {
	Iterations    int     `json:"iterations,omitempty"`
	Attempts      int     `json:"attempts,omitempty"` // of one task
	WorkerSeconds float64 `json:"worker_s,omitempty"`
	GateSeconds   float64 `json:"gate_s,omitempty"`
	Seconds       float64 `json:"all_s,omitempty"` // the whole run
	USD           float64 `json:"usd,omitempty"`
}

// Worker is the leader of a worker's process group, on the same boot as the owner.
type Worker struct {
	proc.ID
	Started time.Time `json:"started_at"`
}

// readRecord reads a run.json of vx; nil where there is none. ralph.sh may have a file of that name for its own ends.
func readRecord(dir string) (*Record, error) {
	r, _, err := readRecordFile(dir)
	return r, err
}

func readRecordFile(dir string) (*Record, []byte, error) {
	data, _, err := atomicfile.ReadPlain(filepath.Join(dir, recordFile), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, data, fmt.Errorf("%s: %w", filepath.Join(dir, recordFile), err)
	}
	if r.Kind == "" || r.PID <= 0 {
		return nil, data, nil
	}
	return &r, data, nil
}

// save writes run.json over the one that is there, whose unknown fields stay.
func (r *Record) save(dir string) error {
	_, old, err := readRecordFile(dir)
	if err != nil && old == nil {
		return err
	}
	data, err := json.Marshal(r)
	if err == nil {
		data, err = keepUnknown(old, data)
	}
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, recordFile), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("run.json: %w", err)
	}
	return nil
}

// known are the names of run.json's fields in this build.
var known = func() map[string]bool {
	names := map[string]bool{"pid": true, "start": true}
	for f := range reflect.TypeFor[Record]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}()

// keepUnknown is the new object with what the old one has besides. Limits do not change while a run lasts: the old ones
// stay as they are, with what is unknown in them.
func keepUnknown(old, data []byte) ([]byte, error) {
	var was, is map[string]json.RawMessage
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, err
	}
	if json.Unmarshal(old, &was) == nil {
		for name, value := range was {
			if !known[strings.ToLower(name)] || name == "limits" {
				is[name] = value
			}
		}
	}
	out, err := json.MarshalIndent(is, "", "  ")
	return append(out, '\n'), err
}

// mine is the identity of this process as a record has it.
func (r *Record) mine() {
	r.ID, r.BootID = proc.Self(), proc.BootID()
	r.Host, _ = os.Hostname()
}

// here reports whether the kernel that the owner runs, or ran, on can be asked for it.
func (r *Record) here() bool {
	host, err := os.Hostname()
	return err == nil && (r.Host == "" || r.Host == host)
}

// gone reports whether the owner has ended, by its process's identity. Where the kernel cannot say, its heartbeat does.
func (r *Record) gone(now time.Time) bool {
	if r.here() {
		if boot := proc.BootID(); boot != "" && r.BootID != "" && boot != r.BootID {
			return true
		}
		if s := r.Status(); s != proc.Unknown {
			return s == proc.Gone
		}
	}
	return now.Sub(r.Heartbeat) > silence
}
