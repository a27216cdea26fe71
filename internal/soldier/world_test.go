package soldier

import (
	"strings"
	"testing"
	"time"

	"vx/internal/herdr"
	"vx/internal/task"
)

// world is a soldier's surroundings, from which a look takes what Judge asks for. Its clocks are set by hand.
type world struct {
	t    *testing.T
	task task.Task
	m    *Memory
	now  time.Duration
	wall time.Time

	held     bool
	agent    *herdr.Agent
	pane     Pane
	client   *Client
	text     Text
	proof    Proof
	pause    Pause
	fallback bool
	answer   string
	pending  string

	wakes []string // statuses, and "dialog"
	asked Need     // at the last look
}

// dispatched is a mission that was given to a soldier a moment ago, which has not moved.
func dispatched(t *testing.T) *world {
	start := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	return &world{
		t: t, m: new(Memory), now: time.Hour, wall: start,
		task: task.Task{
			ID: "0123456789abcdef", Kind: "mission", Status: task.Running, Prompt: "fix the parser", PromptedAt: start,
			Camp:  &task.Camp{Path: "/camp", Branch: "vx/fix", Base: "main"},
			Herdr: &task.Herdr{Pane: "w1:p2", TerminalID: "term_1", Agent: "fix", StateChangeSeq: 10},
			Agent: "pi", Head: "aaaa",
		},
		agent: &herdr.Agent{TerminalID: "term_1", PaneID: "w1:p2", Name: "fix", Kind: "pi", Status: herdr.Idle, Seq: 10, HasSeq: true, CWD: "/camp"},
		pane:  PaneEmpty,
		text:  Text{Text: idleScreen, Stable: true},
		proof: Proof{Head: "aaaa"},
	}
}

// Screens of Pi, which asks least of them: rules over the full width, and a spinner in the upper one while it works.
var (
	rule       = strings.Repeat("─", 80)
	idleScreen = " Fixed it.\n\n" + rule + "\n\n" + rule + footer
	busyScreen = " Fixed it.\n\n── ⠼ Working " + rule[:67*len("─")] + "\n\n" + rule + footer
)

const (
	footer = "\n~/proj (main)\n↑1.2k ↓300 $0.01 2.1%/200k (auto)                                       mock-1\n"
	alien  = "something that nobody has ever seen\n"
)

// look judges until nothing more is asked for, and does what the verdict says.
func (w *world) look() Verdict {
	w.t.Helper()
	o := &Look{Now: w.now, Wall: w.wall, Held: w.held, Agent: w.agent}
	w.asked = 0
	for range 20 {
		v := Judge(&w.task, o, w.m)
		w.asked |= v.Need
		if v.Need == 0 {
			w.apply(v)
			return v
		}
		if v.Need&NeedAgain != 0 {
			w.pass(time.Second)
			o = &Look{Now: w.now, Wall: w.wall, Held: w.held, Agent: w.agent}
		}
		w.fill(o, v.Need)
	}
	w.t.Fatal("Judge asks again and again")
	return Verdict{}
}

func (w *world) fill(o *Look, need Need) {
	if need&NeedPane != 0 {
		o.Pane = &w.pane
	}
	if need&NeedClient != 0 {
		o.Client = &Client{}
		if w.client != nil {
			o.Client = w.client
		}
	}
	if need&NeedText != 0 {
		if w.agent != nil && w.agent.Status == herdr.Working {
			w.t.Error("a busy agent is read")
		}
		text := w.text
		o.Text = &text
	}
	if need&NeedProof != 0 {
		o.Proof = &w.proof
	}
	if need&NeedPause != 0 {
		o.Pause = &w.pause
	}
	if need&NeedExplain != 0 {
		o.Fallback = &w.fallback
	}
	if need&NeedAnswer != 0 {
		o.Answer = &w.answer
	}
	if need&NeedPending != 0 {
		o.Pending = &w.pending
	}
}

func (w *world) apply(v Verdict) {
	was := w.task.Status
	if !v.Changes(&w.task) {
		return
	}
	v.Apply(&w.task, w.wall)
	w.task.UpdatedAt = w.wall
	if was != w.task.Status && !was.May(w.task.Status) {
		w.t.Errorf("%s -> %s is no move", was, w.task.Status)
	}
	switch {
	case v.Dialog:
		w.wakes = append(w.wakes, "dialog")
	case v.News():
		w.wakes = append(w.wakes, string(v.To))
	}
}

// pass lets time go by, awake.
func (w *world) pass(d time.Duration) { w.now += d; w.wall = w.wall.Add(d) }

// sweep looks every five seconds for that long.
func (w *world) sweep(d time.Duration) {
	w.t.Helper()
	for end := w.now + d; w.now < end; {
		w.pass(min(5*time.Second, end-w.now))
		w.look()
	}
}

// works has the agent seen working, as it is after the prompt was taken.
func (w *world) works() {
	w.t.Helper()
	w.state(herdr.Working)
	w.sweep(10 * time.Second)
	w.is(task.Running)
}

// state moves the agent.
func (w *world) state(s herdr.Status) {
	w.agent.Status = s
	w.agent.Seq++
}

func (w *world) commits() {
	w.proof.Head, w.proof.Commit, w.proof.At = w.proof.Head+"b", true, w.wall
}

func (w *world) is(want task.Status) {
	w.t.Helper()
	if w.task.Status != want {
		w.t.Fatalf("at %v: %s, want %s (note %q, evidence %+v)", w.now-time.Hour, w.task.Status, want, w.task.Note, w.task.Evidence)
	}
}

// woke checks what the commander was told.
func (w *world) woke(want ...string) {
	w.t.Helper()
	if len(want) != len(w.wakes) {
		w.t.Fatalf("wakes %q, want %q", w.wakes, want)
	}
	for i := range want {
		if w.wakes[i] != want[i] {
			w.t.Fatalf("wakes %q, want %q", w.wakes, want)
		}
	}
}
