package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// stand stands in for the test that a fake herdr wants: it keeps the complaints and ends what was begun.
type stand struct {
	mu       sync.Mutex
	wrong    []string
	cleanups []func()
}

func (s *stand) Helper() {}

func (s *stand) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// Fatalf is a fault of the bench itself.
func (s *stand) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (s *stand) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// end ends what was begun, the last first, and returns the first complaint.
func (s *stand) end() error {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
	s.cleanups = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) > 0 {
		return fmt.Errorf("%d complaints of the fake herdr, the first: %s", len(s.wrong), s.wrong[0])
	}
	return nil
}

// watched is a machine of its own: a state directory whose tasks all run in one herdr.
type watched struct {
	*stand
	home     string
	herdr    *herdrtest.Server
	spinning []*herdrtest.Pane // whose titles move
}

// spinner is the title of a client at work.
var spinner = [2]string{"⠂ Fix the parser", "⠐ Fix the parser"}

// spin moves the titles, half of those that could at a time, so that no two lists are alike.
func (w *watched) spin(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		for j, pane := range w.spinning {
			if (i+j)%2 == 0 {
				pane.Title(spinner[(i+j)/2%2])
			}
		}
		time.Sleep(time.Second)
	}
}

// watch makes tasks that run, in so many projects. Half of the soldiers are of a client that keeps a record of itself, and
// half of one that does not. For all of those records one stands, of this process: it costs the same to read.
func (b *bench) watch(projects, tasks int) (_ *watched, err error) {
	w := &watched{stand: new(stand), home: filepath.Join(b.scratch, fmt.Sprintf("watched-%d", tasks))}
	w.herdr = herdrtest.New(w.stand, herdrtest.Options{})
	dir, err := state.OpenAt(w.home)
	if err = errors.Join(err, b.record()); err != nil {
		return w, err
	}
	for i := range projects {
		p := dir.Project(filepath.Join(b.scratch, fmt.Sprintf("watched-%d-%d", tasks, i)))
		if err := wake.Open(p).Ensure(); err != nil {
			return w, err
		}
		for j := range tasks / projects {
			if err := w.add(p, fmt.Sprintf("s%d-%d", i, j), j%2 == 0); err != nil {
				return w, err
			}
		}
	}
	return w, nil
}

// record makes this process a client at work, by its record.
func (b *bench) record() error {
	self, err := proc.Find(os.Getpid())
	if err != nil {
		return err
	}
	dir := filepath.Join(b.scratch, ".claude", "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf(`{"pid":%d,"procStart":"%d","sessionId":"0b0e7b1c-5f1e-4a3a-9d55-3c1b7a9b7d10","cwd":%q,"startedAt":%d,"version":"2.1.332",`+
		`"peerProtocol":1,"kind":"interactive","entrypoint":"cli","name":"s1","nameSource":"user","status":"busy","updatedAt":%[4]d,"statusUpdatedAt":%[4]d}`,
		self.PID, self.Start, b.scratch, time.Now().UnixMilli())
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", self.PID)), []byte(text), 0o600)
}

// add makes a task whose soldier works.
func (w *watched) add(p *state.Project, name string, claude bool) error {
	a := herdrtest.Agent{Kind: "pi", Name: name, CWD: p.Join("camps", name)}
	if claude {
		a.Kind, a.Title = "claude", spinner[0]
		a.Processes = []herdrtest.Process{{PID: os.Getpid(), Name: "claude"}}
	}
	pane := w.herdr.Agent(a)
	pane.Working()
	if claude {
		w.spinning = append(w.spinning, pane)
	}
	_, err := task.Open(p).Add(context.Background(), task.Task{
		Kind: wake.KindMission, Status: task.Running, Agent: a.Kind, Prompt: "Fix the parser.", Title: "Fix the parser", PromptedAt: time.Now().Add(-time.Minute),
		Camp:  &task.Camp{Path: a.CWD, Branch: "vx/" + name, Base: "main"},
		Herdr: &task.Herdr{Socket: w.herdr.Socket, Pane: pane.ID, Agent: name, StateChangeSeq: pane.Seq() - 1},
	})
	return err
}

// requests are how many the herdr was sent, and how many of them asked for the list.
func (w *watched) requests() (all, lists int) {
	return len(w.herdr.Requests("")), len(w.herdr.Requests("agent.list"))
}

// environment is that of a sentinel that looks after the machine.
func (w *watched) environment() []string { return append(os.Environ(), "VEXILLUM_HOME="+w.home) }
