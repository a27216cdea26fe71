package green

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/wake"
)

const (
	ledgerFile     = "LEDGER.md"
	escalationFile = "ESCALATED.md"
	keptFile       = "green.json"
	maxTask        = 256 << 10 // bytes
	maxQuestion    = 64 << 10  // bytes that are shown
)

// kept is what goes on with an answer.
type kept struct {
	Options
	Passes int     `json:"passes"` // that have begun
	Spent  float64 `json:"spent_usd"`
	Base   string  `json:"base,omitempty"`    // the working tree as it was when it all began, a tree of git
	Store  string  `json:"objects,omitempty"` // where its objects are
}

func (k *kept) save(dir string) error {
	data, err := json.MarshalIndent(k, "", "  ")
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, keptFile), append(data, '\n'), 0o600)
	}
	return err
}

func load(dir string) (kept, error) {
	var k kept
	data, _, err := atomicfile.ReadPlain(filepath.Join(dir, keptFile), 1<<20)
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil {
		return k, fmt.Errorf("%s: %w", filepath.Join(dir, keptFile), err)
	}
	return k, nil
}

func (o *Options) ledger() string     { return filepath.Join(filepath.Dir(o.Task), ledgerFile) }
func (o *Options) escalation() string { return filepath.Join(filepath.Dir(o.Task), escalationFile) }

// readTask is the task's text.
func readTask(path string) (string, error) {
	f, err := open(path, os.O_RDONLY)
	if err != nil {
		return "", fmt.Errorf("task: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTask+1))
	if err == nil && len(data) > maxTask {
		err = fmt.Errorf("%s is larger than %d KB", path, maxTask>>10)
	}
	if err != nil {
		return "", fmt.Errorf("task: %w", err)
	}
	return string(data), nil
}

// open opens a regular file; it does not wait at a FIFO.
func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, &atomicfile.Unfit{Why: path + " is not a regular file"})
	}
	return f, nil
}

// append writes to the ledger in one write, behind a whole line: a writer may have been killed in the middle of one.
func (o *Options) append(text string) error {
	f, err := open(o.ledger(), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() == 0 {
		text = "# LEDGER\n" + text
	} else if err == nil {
		last := make([]byte, 1)
		if _, err = f.ReadAt(last, fi.Size()-1); err == nil && last[0] != '\n' {
			text = "\n" + text
		}
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// question is the text of the escalation file, cleaned, and whether there is one, whatever kind of file it is.
func (o *Options) question() (string, bool, error) {
	if _, err := os.Lstat(o.escalation()); errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	} else if err != nil {
		return "", false, fmt.Errorf("question: %w", err)
	}
	f, err := open(o.escalation(), os.O_RDONLY)
	if err != nil {
		return fmt.Sprintf("(the question cannot be read: %v)\n", err), true, nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxQuestion+1))
	if err != nil {
		return "", true, fmt.Errorf("question: %w", err)
	}
	text := wake.Clean(string(data))
	if len(data) > maxQuestion {
		text = cut(text, maxQuestion) + "\n(cut; the rest is in the file)\n"
	}
	if firstLine(text) == "" {
		text = "(the file is empty)\n"
	}
	return text, true, nil
}

// putAside moves an escalation file to a name of its own, which it returns; "" where there is none.
func (o *Options) putAside(now time.Time) (string, error) {
	stem := filepath.Join(filepath.Dir(o.Task), "ESCALATED-"+now.UTC().Format("20060102-150405"))
	to := stem + ".md"
	for n := 2; ; n++ {
		err := atomicfile.RenameNew(o.escalation(), to)
		switch {
		case err == nil:
			return to, atomicfile.SyncDir(filepath.Dir(to))
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case !errors.Is(err, fs.ErrExist):
			return "", fmt.Errorf("question: %w", err)
		}
		to = fmt.Sprintf("%s-%d.md", stem, n)
	}
}
