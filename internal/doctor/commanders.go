package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/wake"
)

// awaits says who waits, or that news waits and nobody else does.
func awaits(_ context.Context, p *Patient) []Result {
	if p.Project == nil {
		return nil
	}
	live, left, err := awaiter.Look(p.State, p.Project)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure("look into "+p.State.Awaiters(), "%v", err)
	}
	if len(live) > 0 {
		var names []string
		for _, e := range live {
			names = append(names, fmt.Sprintf("for %s since %s", whose(e.Harness, e.Client.PID), p.clock(e.Since)))
		}
		return ok("%d waiting, %s", len(live), strings.Join(names, ", "))
	}
	since := ""
	// What a killed one left says that the end which is known was not the last.
	if at := awaiter.Ended(p.Project); len(left) == 0 && !at.IsZero() {
		since = " since " + p.clock(at)
	}
	n, err := wake.Open(p.Project).Count()
	if err != nil {
		return failure("", "%v", err)
	}
	return p.unawaited(n, since)
}

// unawaited says what becomes of so many wakes. Where a commander lives that will hear of them nothing is wrong.
func (p *Patient) unawaited(n int, since string) []Result {
	// What the hook's gate goes by; a session may still be in a pane although this shell is not.
	c, err := p.Project.Config()
	inPanes := err == nil && c.Await == "" && os.Getenv("HERDR_WORKSPACE_ID") == ""
	commanders, _ := commander.Look(p.State, p.Project) // what cannot be read has a check of its own
	switch {
	case n == 0 && inPanes && len(commanders) == 0:
		return info("no await%s, and nothing waits; outside of herdr's panes there is none without vx init --await always", since)
	case n == 0:
		return info("no await%s, and nothing waits", since)
	}
	message := fmt.Sprintf("no await%s, %s", since, commander.Outlook(n, commanders, c.Nudge))
	switch {
	case len(commanders) > 0:
		return info("%s", message)
	case inPanes:
		return warning("vx init --await always, if the session is not in a herdr pane", "%s", message)
	}
	return warning("start claude there, or give it a prompt", "%s", message)
}

// commanders says who is to be woken.
func commanders(_ context.Context, p *Patient) []Result {
	if p.Project == nil {
		return nil
	}
	live, err := commander.Look(p.State, p.Project)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return warning("vx commander list; one that cannot be read is made anew by its next vx dispatch", "%v", err)
	}
	if len(live) == 0 {
		return nil
	}
	var names []string
	for _, e := range live {
		name := whose(e.Harness, e.Process.PID)
		if e.Pane != "" {
			name += " in pane " + e.Pane
		}
		if !e.Waits {
			name += ", without an await"
		}
		names = append(names, name)
	}
	return ok("%s", strings.Join(names, "; "))
}

// shared warns of commanders who take wakes from each other, on purpose or not.
func shared(_ context.Context, p *Patient) []Result {
	if p.Project == nil {
		return nil
	}
	live, _ := commander.Look(p.State, p.Project) // what cannot be read has a check of its own
	if len(live) < 2 {
		return nil
	}
	var names []string
	for _, e := range live {
		names = append(names, whose(e.Harness, 0))
	}
	others := "the other is not told"
	if len(live) > 2 {
		others = "the others are not told"
	}
	return warning("vx status and vx forum inbox, where nothing is lost",
		"%d commanders are live in this project (%s) and a wake is delivered once, to whichever asks first, so %s",
		len(live), strings.Join(names, ", "), others)
}

// whose is what a commander is called.
func whose(harness string, pid int) string {
	name := harness
	if name == "" {
		name = "a client"
	}
	if pid != 0 {
		name += fmt.Sprintf(" (process %d)", pid)
	}
	return name
}
