package sentinel

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/herdr/herdrtest"
	"vx/internal/soldier"
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

func TestAnAgentInAnotherPaneIsNotTakenForAnotherLifeOfItsHerdr(t *testing.T) {
	at := func(pane string, seq uint64) (*task.Task, *herdr.Agent) {
		return &task.Task{Status: task.Running, Agent: "pi", PromptedAt: time.Now(), Herdr: &task.Herdr{Pane: pane}},
			&herdr.Agent{PaneID: pane, Kind: "pi", Status: herdr.Working, Seq: seq, HasSeq: true}
	}
	given, agent := at("w1:p1", 300)
	w := &watch{task: given}
	soldier.Judge(w.task, &soldier.Look{Now: time.Hour, Wall: time.Now(), Agent: agent}, &w.memory)
	again, other := at("w1:p1", 20)
	w.take(again)
	if !w.memory.Backwards(other) {
		t.Error("a sequence that ran backwards in the same pane is not seen")
	}
	again, other = at("w1:p2", 20)
	if w.take(again); w.memory.Backwards(other) {
		t.Error("the sequence of another agent is taken for this one's")
	}
}
