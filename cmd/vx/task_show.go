//go:build !windows

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"vx/internal/dispatch"
	"vx/internal/state"
	"vx/internal/status"
	"vx/internal/task"
	"vx/internal/wake"
)

type taskShow struct {
	ID   string `arg:"" name:"id" help:"The task; its id may be shortened."`
	JSON bool   `name:"json" help:"Print JSON."`
	place
}

func (c *taskShow) Run(std stdio) error {
	dir, err := state.Look()
	if errors.Is(err, fs.ErrNotExist) {
		return &task.NotFound{ID: c.ID}
	}
	if err != nil {
		return err
	}
	root, err := c.root(dir)
	if err != nil {
		return err
	}
	t, err := task.Open(dir.Project(root)).Get(c.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return std.json(t)
	}
	w := &statusPrinter{out: std.out}
	w.task(t)
	return w.err
}

// field prints a line with what is known, nothing where it is not.
func (w *statusPrinter) field(name, format string, args ...any) {
	text := printable(fmt.Sprintf(format, args...))
	if strings.Trim(text, " ,") != "" {
		w.line("%-10s %s", name+":", text)
	}
}

// text prints lines that others have written, so that they can be told from ours; the last of too many.
func (w *statusPrinter) text(name, text string, most int) {
	text = strings.TrimSpace(wake.Clean(text))
	if text == "" {
		return
	}
	w.line("%s:", name)
	lines := strings.Split(text, "\n")
	if cut := len(lines) - most; cut > 0 {
		w.line("  … %d lines before; --json has them", cut)
		lines = lines[cut:]
	}
	for _, line := range lines {
		w.line("  > %s", strings.TrimRight(line, " \t"))
	}
}

const (
	mostPrompt = 40 // lines
	mostOutput = 60
)

func (w *statusPrinter) task(t task.Task) {
	w.field("task", "%s", t.ID)
	w.field("title", "%s", t.Title)
	w.field("status", "%s, since %s", t.Status, clock(status.Since(t)))
	w.field("waits for", "%s", status.Waits(t))
	w.field("kind", "%s", t.Kind)
	w.field("agent", "%s", strings.Join(words(t.Agent, t.Model, t.Effort), ", "))
	w.field("arguments", "%s", short(quoted(t.Args), 200))
	if h := t.Herdr; h != nil {
		w.field("pane", "%s", strings.Join(words(h.Pane, h.Agent, h.Socket), ", "))
	}
	if s := t.Session; s != nil {
		w.field("process", "%d", s.PID)
	}
	if c := t.Camp; c != nil {
		w.field("camp", "%s", c.Path)
		w.field("branch", "%s, from %s", c.Branch, c.Base)
	}
	w.field("works in", "%s", t.Dir)
	w.field("report", "%s", t.ReportPath)
	w.field("commander", "%s", strings.Join(words(t.CommanderPane, t.CommanderProject), ", "))
	for _, at := range t.Redispatches {
		w.field("again", "%s, to another agent", clock(at))
	}
	w.decision(t.Decision)
	if e := t.Evidence; e != nil {
		w.field("evidence", "%s, by %s, at %s", e.State, e.By, clock(e.At))
		for _, says := range e.Says {
			w.field("  says", "%s", says)
		}
	}
	w.text("note", t.Note, mostOutput)
	w.text("prompt", t.Prompt, mostPrompt)
	for _, a := range t.Amendments {
		w.text("later, "+clock(a.At), a.Text, mostPrompt)
	}
	w.text("its last output", t.Output, mostOutput)
	w.field("next", "%s", nextFor(t))
}

func (w *statusPrinter) decision(d *task.Decision) {
	if d == nil {
		return
	}
	w.field("asks", "%s", d.Question)
	for _, option := range d.Options {
		w.field("  option", "%s", option)
	}
	w.field("answer", "%s", d.Answer)
	if d.Dismissed {
		w.field("answer", "dismissed")
	}
}

// quoted are arguments as a shell would take them.
func quoted(args []string) string {
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = state.Quote(arg)
	}
	return strings.Join(all, " ")
}

func words(all ...string) (some []string) {
	for _, word := range all {
		if word != "" {
			some = append(some, word)
		}
	}
	return some
}

// nextFor names the commands that go with a task's status.
func nextFor(t task.Task) string {
	id := dispatch.Short(t.ID)
	switch t.Status {
	case task.Pending:
		return "if its dispatch was cut short: vx strike " + id
	case task.Blocked:
		return "vx decide " + id + " ANSWER, or vx decide " + id + " --dismiss"
	case task.Done:
		return "vx land " + id + ", vx ship " + id + ", or vx prompt " + id + " TEXT"
	case task.Unconfirmed:
		return "vx prompt " + id + " TEXT, vx land " + id + ", or vx strike " + id
	case task.Interrupted:
		return "vx redispatch " + id + ", or vx strike " + id
	case task.Shipped:
		return "vx prompt " + id + " TEXT, vx land " + id + ", or once it is merged vx strike " + id
	case task.Landed:
		return "vx strike " + id
	case task.Running:
		return "you are woken when its turn ends"
	}
	return ""
}
