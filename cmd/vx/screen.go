//go:build !windows

package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"vx/internal/screen"
)

type screenCommand struct {
	File  string `arg:"" name:"file" help:"The text of the pane, or - for stdin."`
	Agent string `name:"agent" enum:"claude,codex,pi,opencode" default:"claude" placeholder:"KIND" help:"What runs in the pane: claude (the default), codex, pi or opencode."`
	Title string `name:"title" placeholder:"T" help:"The terminal's title, where it is known."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

func (screenCommand) Help() string {
	return "For example: herdr pane read w1:p1 --source detection | vx screen -. The state is idle, working, background, blocked or unknown; " +
		"below it stands what showed it. Report a wrong one with the text."
}

// maxScreen is how much text is read: herdr hands out no more in one answer.
const maxScreen = 16 << 20

// screenReport is what the text of a pane says.
type screenReport struct {
	screen.Reading
	Question string   `json:"question,omitempty"` // of a needs-decision line
	Options  []string `json:"options,omitempty"`
}

func (c *screenCommand) Run(std stdio) error {
	text, err := c.text(std.in)
	if err != nil {
		return err
	}
	report := screenReport{Reading: screen.Read(c.Agent, text, c.Title)}
	report.Question, report.Options, _ = screen.Decision(c.Agent, text, "")
	if c.JSON {
		return std.json(report)
	}
	fmt.Fprintln(std.out, report.State)
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(std.out, "%-9s %s\n", name+":", printable(value))
		}
	}
	field("by", report.By)
	field("evidence", report.Evidence)
	field("asks", report.Question)
	field("options", strings.Join(report.Options, " | "))
	return nil
}

func (c *screenCommand) text(stdin io.Reader) (string, error) {
	in := stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return "", &noScreen{err}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxScreen))
	if err != nil {
		return "", &noScreen{err}
	}
	return string(text), nil
}

// noScreen says that there is nothing to be read.
type noScreen struct{ err error }

func (e *noScreen) Error() string { return "screen: " + e.err.Error() }
func (e *noScreen) Hint() string  { return "vx screen FILE, or - for what comes on stdin" }
