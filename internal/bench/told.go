//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"vx/internal/atomicfile"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// told measures the way of a soldier's end to its commander: from the moment that the task's record is saved to the first
// byte of a waiting await. It is measured in turn with that of a wake that is put.
func (b *bench) told() error {
	p, err := b.project("told", "always")
	if err != nil {
		return err
	}
	tasks := task.Open(p)
	soldier, err := tasks.Add(context.Background(), task.Task{Kind: wake.KindMission, Status: task.Running, Title: "work", PromptedAt: time.Now()})
	if err != nil {
		return err
	}
	var ends, puts []time.Duration
	for i := range b.pick(400, 60) {
		d, err := b.heardOf(p, soldier.ID, func() (time.Time, error) { return end(tasks, soldier.ID) })
		if err != nil {
			return err
		}
		ends = append(ends, d)
		if _, err := tasks.Update(context.Background(), soldier.ID, task.Done, func(t *task.Task) error { t.Status = task.Running; return nil }); err != nil {
			return err
		}
		if d, err = b.one(p, fmt.Sprintf("news %d.", i)); err != nil {
			return err
		}
		puts = append(puts, d)
	}
	saved, put := quantile(ends, 0.99), quantile(puts, 0.99)
	b.add(atMost("told",
		fmt.Sprintf("task saved to bytes at a waiting await: p99 %s, p50 %s", show(saved), show(median(ends))),
		fmt.Sprintf("put to bytes: p99 %s, p50 %s", show(put), show(median(puts))), ratio(saved, put), 3, 3))
	return nil
}

// end ends a task's turn and returns when its record was about to be renamed into its place.
func end(tasks *task.Store, id string) (at time.Time, err error) {
	atomicfile.Before = func(step, path string) error {
		if step == "rename" && filepath.Base(filepath.Dir(path)) == "tasks" {
			at = time.Now()
		}
		return nil
	}
	defer func() { atomicfile.Before = nil }()
	_, err = tasks.Transition(context.Background(), id, task.Running, wake.Open(tasks.Project), func(t *task.Task) (wake.Wake, error) {
		t.Status = task.Done
		return wake.Wake{}, nil
	})
	return at, err
}

// heardOf measures one await: from the moment that happen returns to the first byte, which says something of the subject.
func (b *bench) heardOf(p *state.Project, subject string, happen func() (time.Time, error)) (time.Duration, error) {
	all, err := b.awaits([]*state.Project{p})
	if err != nil {
		return 0, err
	}
	defer endAll(all)
	at, err := happen()
	if err != nil {
		return 0, err
	}
	heard, err := all[0].hear(subject)
	return heard.Sub(at), err
}

// hear is when the await's first byte came, which says something of the subject.
func (a *awaiting) hear(subject string) (time.Time, error) {
	select {
	case s := <-a.text:
		if !strings.Contains(s.text, subject) {
			return time.Time{}, fmt.Errorf("the await said %.200q", s.text)
		}
		return s.at, nil
	case <-time.After(time.Minute):
		return time.Time{}, errors.New("no news within a minute")
	}
}
