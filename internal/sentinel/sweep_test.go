package sentinel

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/state"
	"vx/internal/task"
	"vx/internal/wake"
)

// crowd is a machine with many tasks at work, spread over projects, in one herdr.
func crowd(b testing.TB, projects, tasks int) (*sentinel, *herdrtest.Server) {
	b.Helper()
	dir, err := state.OpenAt(b.TempDir() + "/state")
	if err != nil {
		b.Fatal(err)
	}
	srv := herdrtest.New(b, herdrtest.Options{})
	for i := range tasks {
		p := dir.Project(fmt.Sprintf("/srv/p%d", i%projects))
		if i < projects {
			if err := wake.Open(p).Ensure(); err != nil {
				b.Fatal(err)
			}
		}
		name := fmt.Sprintf("s%d", i)
		pane := srv.Agent(herdrtest.Agent{Kind: "claude", Name: name, Title: "◐ Fix the parser"})
		pane.Working()
		_, err := task.Open(p).Add(context.Background(), task.Task{
			Kind: wake.KindMission, Status: task.Running, Agent: "claude", PromptedAt: time.Now().Add(-time.Minute),
			Camp:  &task.Camp{Path: "/camps/" + name, Branch: "vx/" + name, Base: "main"},
			Herdr: &task.Herdr{Socket: srv.Socket, Pane: pane.ID, Agent: name},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	s := newSentinel(Config{Dir: dir, Log: slog.New(slog.DiscardHandler), Over: func() string { return "" }}, 1)
	s.sweep(context.Background())
	s.work.Wait()
	return s, srv
}

func BenchmarkSweep(b *testing.B) {
	for _, size := range []struct{ projects, tasks int }{{1, 10}, {50, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", size.projects, size.tasks), func(b *testing.B) {
			s, _ := crowd(b, size.projects, size.tasks)
			time.Sleep(3 * time.Second) // until what was just made is old enough to be trusted
			b.ReportAllocs()
			for b.Loop() {
				s.sweep(context.Background())
				s.work.Wait()
			}
		})
	}
}
