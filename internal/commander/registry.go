package commander

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vx/internal/atomicfile"
	"vx/internal/lock"
	"vx/internal/proc"
	"vx/internal/state"
)

// Entry is a commander as a project knows it. What is not known is empty.
type Entry struct {
	Harness  string    `json:"harness"` // "claude", "pi", "opencode"
	Session  string    `json:"session,omitempty"`
	Process  proc.ID   `json:"process"` // that it runs in; zero where only its await is known
	Pane     string    `json:"pane,omitempty"`
	Socket   string    `json:"socket,omitempty"`      // of the herdr that the pane is in
	Terminal string    `json:"terminal_id,omitempty"` // herdr's: it stays with what runs in a pane that is moved
	Since    time.Time `json:"since"`
	Server   *Server   `json:"server,omitempty"`
	Waits    bool      `json:"waits"` // it has a live await; not kept on disk

	told time.Time // when its record was written last
}

// Server is where an OpenCode can be reached.
type Server struct {
	URL       string `json:"url,omitempty"` // "": from within its own process alone
	Version   string `json:"version,omitempty"`
	Directory string `json:"directory,omitempty"`
}

const (
	folder    = "commanders"
	lockName  = ".lock"
	maxRecord = 64 << 10 // bytes; real ones have a few hundred
	patience  = 5 * time.Second
)

// Register makes a commander known to the project whose wakes it gets. What is known of it already and is not said now is
// kept, unknown fields too.
func Register(p *state.Project, e Entry) error {
	if err := e.check(); err != nil {
		return fmt.Errorf("register commander: %w", err)
	}
	unlock, err := enter(p)
	if err != nil {
		return fmt.Errorf("register commander: %w", err)
	}
	defer unlock()
	path := p.Join(folder, fileOf(e.Process))
	if was, err := read(path); err == nil && !was.gone(e.Process) {
		e = e.over(was.Entry)
	}
	e.Since = cmp.Or(e.Since, time.Now().UTC().Truncate(time.Second))
	fields, err := e.onto(path)
	if err == nil {
		err = clear(path)
	}
	if err == nil {
		err = atomicfile.Write(path, fields, 0o600)
	}
	if err != nil {
		return fmt.Errorf("register commander: %w", err)
	}
	return nil
}

// Leave forgets a commander. That it was not known is no error.
func Leave(p *state.Project, process proc.ID) error {
	if _, err := os.Lstat(p.Join(folder)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := enter(p)
	if err == nil {
		defer unlock()
		err = os.Remove(p.Join(folder, fileOf(process)))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget commander: %w", err)
	}
	return nil
}

// enter takes the registry's lock, and sweeps out what writers left that died with it: whoever writes holds it.
func enter(p *state.Project) (unlock func(), err error) {
	if err := p.Ensure(); err != nil {
		return nil, err
	}
	dir := p.Join(folder)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() {
		return nil, errors.Join(err, fmt.Errorf("%s is no directory", dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := lock.Wait(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	sweep(dir)
	return func() { l.Unlock() }, nil
}

// sweep removes half-written files. That it cannot is no trouble: nobody reads them.
func sweep(dir string) {
	names, _ := atomicfile.Names(dir)
	for _, name := range names {
		hidden, ok := strings.CutPrefix(name, ".")
		of, _, cut := strings.Cut(hidden, ".json")
		if _, ours := processOf(of + ".json"); ok && cut && ours {
			os.Remove(filepath.Join(dir, name))
		}
	}
}

// over is what is known of a commander once this has been said of it too.
func (e Entry) over(was Entry) Entry {
	e.Session = cmp.Or(e.Session, was.Session)
	if e.Pane == "" || e.Pane == was.Pane && e.Socket == was.Socket {
		e.Pane, e.Socket, e.Terminal = was.Pane, was.Socket, cmp.Or(e.Terminal, was.Terminal)
	}
	if !was.Since.IsZero() {
		e.Since = was.Since
	}
	if e.Server == nil {
		e.Server = was.Server
	}
	return e
}

// onto is the content of the commander's file: its own fields, and of the file that is there the ones that are not known.
func (e Entry) onto(path string) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if data, _, err := atomicfile.ReadPlain(path, maxRecord); err == nil {
		json.Unmarshal(data, &fields) // what is no object has no fields
	}
	for _, name := range []string{"harness", "session", "process", "pane", "socket", "terminal_id", "since", "server", "boot"} {
		delete(fields, name)
	}
	data, err := json.Marshal(record{e, proc.BootID()})
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	delete(fields, "waits")
	if err == nil {
		data, err = json.MarshalIndent(fields, "", "  ")
	}
	return append(data, '\n'), err
}

// clear removes what is no file: a link would be written through.
func clear(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || fi.Mode().IsRegular():
		return err
	}
	return os.Remove(path)
}

// record is what a commander's file holds.
type record struct {
	Entry
	Boot string `json:"boot,omitempty"` // of the machine: start times are counted from it
}

// gone reports whether the process has ended: by its start time, and by that of the machine.
func (r record) gone(id proc.ID) bool {
	now := proc.BootID()
	return id.Status() == proc.Gone || r.Boot != "" && now != "" && r.Boot != now
}

// fileOf is named after the process, so that of a file that cannot be read it is known whether it is of use to anybody.
func fileOf(id proc.ID) string { return fmt.Sprintf("%d-%d.json", id.PID, id.Start) }

// processOf is the process that a file is named after.
func processOf(name string) (id proc.ID, ok bool) {
	pid, start, _ := strings.Cut(strings.TrimSuffix(name, ".json"), "-")
	var errs [2]error
	id.PID, errs[0] = strconv.Atoi(pid)
	id.Start, errs[1] = strconv.ParseUint(start, 10, 64)
	return id, errors.Join(errs[:]...) == nil && name == fileOf(id)
}

// read reads a commander's file. Of one that is not what it should be only the name counts.
func read(path string) (record, error) {
	var r record
	data, fi, err := atomicfile.ReadPlain(path, maxRecord)
	if err != nil {
		return r, err
	}
	err = json.Unmarshal(data, &r)
	if err == nil {
		err = r.check()
	}
	if err == nil && fileOf(r.Process) != filepath.Base(path) {
		err = fmt.Errorf("names process %d", r.Process.PID)
	}
	r.Waits, r.told = false, fi.ModTime()
	return r, err
}

// maxText is far above the longest name, path or address.
const maxText = 4096

// check refuses what cannot be a commander, or not be shown.
func (e Entry) check() error {
	if e.Harness == "" {
		return errors.New("no harness")
	}
	if e.Process.PID <= 0 || e.Process.Start == 0 {
		return errors.New("no process, or its start time is not known")
	}
	texts := []string{e.Harness, e.Session, e.Pane, e.Socket, e.Terminal}
	if e.Server != nil {
		texts = append(texts, e.Server.URL, e.Server.Version, e.Server.Directory)
	}
	for _, text := range texts {
		if len(text) > maxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return fmt.Errorf("unusable text %.40q", text)
		}
	}
	if e.Server != nil && e.Server.URL != "" {
		return checkURL(e.Server.URL)
	}
	return nil
}

// checkURL refuses what nothing can be posted to, and what would keep a password in a file.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
		err = errors.New("want http://HOST:PORT")
	}
	if err != nil {
		return fmt.Errorf("server's address: %w", err)
	}
	return nil
}
