//go:build !windows

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vx/install"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

// scene is a project in which one operation is tried.
type scene struct {
	dir    *state.Dir
	queue  *wake.Queue
	ledger *ledger
	client *client // that is alive no more, but for its transcript
	fault  string  // the step at which it was

	n        int
	refused  []*account // whose put returned an error
	torn     int        // files that are to end in .bad
	delivery *wake.Delivery
	// What the settings file may hold; nil is no file.
	settings [][]byte
}

func newScene(dir *state.Dir, scratch string) (*scene, error) {
	root, err := os.MkdirTemp(scratch, "scene-")
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	s := &scene{dir: dir, queue: wake.Open(dir.Project(root)), ledger: newLedger()}
	s.queue.Grace = 0
	s.client = &client{session: "session", transcript: filepath.Join(root, "session.jsonl")}
	return s, errors.Join(s.queue.Ensure(), s.client.write(userRow("hello there", "human")))
}

func (s *scene) remove() error {
	return errors.Join(os.RemoveAll(s.queue.Project.Root), os.RemoveAll(s.queue.Project.Dir))
}

// put puts the next change of one mission, so that it is folded into what waits; or a message.
func (s *scene) put(kind wake.Kind) error {
	s.n++
	now := time.Now()
	w := wake.Wake{ID: wake.NewID(now), Kind: kind, Detected: now, Title: fmt.Sprintf("%d ended", s.n)}
	if kind == wake.KindMission {
		w.TaskID, w.Key = "m-1", "m-1"
		w.OldStatus, w.NewStatus = fmt.Sprintf("s%d", s.n-1), fmt.Sprintf("s%d", s.n)
	}
	account := s.ledger.open(w)
	_, err := s.queue.Put(context.Background(), w)
	switch {
	case err == nil:
		s.ledger.place(account)
	case strings.Contains(err.Error(), "sync "+s.queue.Dir()+":"): // it waits, and is only not durable yet
	default:
		s.refused = append(s.refused, account)
	}
	return err
}

func (s *scene) recipient(transcript bool) wake.Recipient {
	to := wake.Recipient{Harness: "claude", Session: s.client.session}
	if transcript {
		to.Client = proc.ID{PID: 1 << 30, Start: 1} // gone
		to.Transcript = s.client.transcript
	}
	return to
}

// claim claims what waits and notes whom it goes to.
func (s *scene) claim(transcript bool) (err error) {
	if s.delivery, err = s.queue.Claim(context.Background()); err != nil || s.delivery == nil {
		return err
	}
	return s.delivery.Note(s.recipient(transcript))
}

// deliver does what the hook does. The model reads what was printed, and its client may write that into its transcript.
func (s *scene) deliver(transcript bool) error {
	err := s.claim(transcript)
	d := s.delivery
	s.delivery = nil
	if d == nil {
		return err
	}
	defer d.Close()
	if err != nil {
		return errors.Join(err, d.Release(context.Background(), "not noted"))
	}
	err = d.Emit()
	if transcript {
		if err := s.client.write(turnRow(d.Text)); err != nil {
			s.ledger.complain("transcript: %v", err)
		}
	}
	// Where there is no transcript, an emission that failed may be followed by another.
	s.ledger.tell(d.Text, err != nil && !transcript)
	return err
}

// judge drains the queue, nothing failing any more, and draws the balance.
func (s *scene) judge() {
	if s.delivery != nil {
		s.delivery.Close()
	}
	s.judgeSettings()
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := s.queue.Settle(context.Background())
		if err == nil {
			err = s.deliver(false)
		}
		l, lerr := s.queue.List(0)
		if err = errors.Join(err, lerr); err != nil {
			s.ledger.complain("after %s: %v", s.fault, err)
			return
		}
		n, err := s.queue.Count()
		if err == nil && n+len(l.Claimed)+len(l.Emitted) == 0 {
			s.judgeBad(l.Bad)
			break
		}
		if time.Now().After(deadline) {
			s.ledger.complain("after %s: stuck: %d waiting, %d claimed, %d emitted, %v", s.fault, n, len(l.Claimed), len(l.Emitted), err)
			return
		}
	}
	s.ledger.close()
	for _, a := range s.refused {
		if a.told > 0 || a.covered || a.kept {
			s.ledger.complain("after %s: %q is there, although its put failed", s.fault, a.title)
		}
	}
}

// judgeBad wants the torn files in .bad, and nothing there that the rules did not send there.
func (s *scene) judgeBad(bad []wake.Bad) {
	torn := 0
	for _, b := range bad {
		if strings.HasPrefix(b.Name, "torn-") {
			torn++
			continue
		}
		s.ledger.keep(b)
	}
	if torn != s.torn {
		s.ledger.complain("%d torn files are kept in .bad, want %d", torn, s.torn)
	}
}

// judgeSettings wants the settings file as it was or as it was to be.
func (s *scene) judgeSettings() {
	if s.settings == nil {
		return
	}
	now, err := os.ReadFile(s.settingsFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.ledger.complain("settings: %v", err)
	}
	for _, may := range s.settings {
		if (may == nil) == (err != nil) && bytes.Equal(may, now) {
			return
		}
	}
	s.ledger.complain("after %s: settings hold %d bytes that are neither the old ones nor the new: %.300q", s.fault, len(now), now)
}

func (s *scene) settingsFile() string {
	return filepath.Join(s.queue.Project.Root, ".claude", "settings.json")
}

// theirs is a settings file as users have it.
const theirs = `{
  "permissions": {"allow": ["Bash(make test)"]},
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say 'done && dusted'"}]}
    ]
  }
}
`

func (s *scene) writeSettings(data string) error {
	if err := os.MkdirAll(filepath.Dir(s.settingsFile()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.settingsFile(), []byte(data), 0o644)
}

// apply carries an installer's plan out. Afterwards the file may hold what it would write, or what it held.
func (s *scene) apply(plan func(*state.Dir, string, install.Scope) (*install.Plan, error)) error {
	p, err := plan(s.dir, s.queue.Project.Root, install.Project)
	if err != nil {
		return err
	}
	if len(p.Edits) != 1 {
		return fmt.Errorf("%d edits are planned", len(p.Edits))
	}
	e := p.Edits[0]
	s.settings = [][]byte{e.Old, e.New}
	if e.Makes {
		s.settings[0] = nil
	}
	if e.Removes {
		s.settings[1] = nil
	}
	_, err = p.Apply(context.Background(), s.dir)
	if err == nil {
		s.settings = s.settings[1:]
	}
	return err
}

func (s *scene) release() error {
	d := s.delivery
	s.delivery = nil
	return errors.Join(d.Release(context.Background(), "tried"), d.Close())
}

// abandon leaves the delivery as a crash would.
func (s *scene) abandon() error {
	d := s.delivery
	s.delivery = nil
	return d.Close()
}

func (s *scene) settle() error { return s.queue.Settle(context.Background()) }

// An operation is something that writes.
type operation struct {
	name    string
	prepare func(*scene) error
	do      func(*scene) error
}

func initPlan(dir *state.Dir, root string, scope install.Scope) (*install.Plan, error) {
	return install.Init(dir, root, scope, install.Choices{})
}

// operations are all that write.
var operations = []operation{
	{
		"put",
		func(s *scene) error { return s.put(wake.KindMessage) },
		func(s *scene) error { return s.put(wake.KindMessage) },
	}, {
		"put, folding",
		func(s *scene) error { return s.put(wake.KindMission) },
		func(s *scene) error { return s.put(wake.KindMission) },
	}, {
		"claim and emit",
		some,
		func(s *scene) error { return s.deliver(false) },
	}, {
		"claim and emit, with a transcript",
		some,
		func(s *scene) error { return s.deliver(true) },
	}, {
		"claim, one file being no wake",
		func(s *scene) error {
			path := filepath.Join(s.queue.Dir(), "torn.json")
			old := time.Now().Add(-time.Hour)
			s.torn = 1
			return errors.Join(some(s), os.WriteFile(path, []byte(`{"title":`), 0o600), os.Chtimes(path, old, old))
		},
		func(s *scene) error { return s.deliver(false) },
	}, {
		"release",
		func(s *scene) error { return errors.Join(some(s), s.claim(true)) },
		(*scene).release,
	}, {
		"release, folding into a newer one",
		func(s *scene) error {
			return errors.Join(s.put(wake.KindMission), s.claim(true), s.put(wake.KindMission))
		},
		(*scene).release,
	}, {
		"settle: reap",
		func(s *scene) error { return errors.Join(some(s), s.claim(false), s.abandon()) },
		(*scene).settle,
	}, {
		"settle: delivered",
		func(s *scene) error { return errors.Join(some(s), s.deliver(true)) },
		(*scene).settle,
	}, {
		"settle: put back",
		func(s *scene) error {
			return errors.Join(some(s), s.claim(true), s.delivery.Emit(), s.abandon(), s.put(wake.KindMission))
		},
		(*scene).settle,
	}, {
		"init: edit",
		func(s *scene) error { return s.writeSettings(theirs) },
		func(s *scene) error { return s.apply(initPlan) },
	}, {
		"init: make",
		func(s *scene) error { return nil },
		func(s *scene) error { return s.apply(initPlan) },
	}, {
		"uninstall: edit",
		func(s *scene) error { return errors.Join(s.writeSettings(theirs), s.apply(initPlan)) },
		func(s *scene) error { return s.apply(install.Uninstall) },
	}, {
		"uninstall: remove",
		func(s *scene) error { return s.apply(initPlan) },
		func(s *scene) error { return s.apply(install.Uninstall) },
	},
}

// some puts what a project has at a time.
func some(s *scene) error {
	return errors.Join(s.put(wake.KindMessage), s.put(wake.KindMission), s.put(wake.KindMessage))
}
